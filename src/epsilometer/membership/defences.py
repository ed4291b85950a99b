"""Defences against membership inference by name: trainings that are not private, but may tell less."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from epsilometer.errors import InvalidInput, unknown_name
from epsilometer.subjects import PlainRecipe


@dataclass(frozen=True)
class Defence:
    """What it is, and the settings that make it, as they usually are."""

    summary: str
    settings: Mapping[str, Any] = field(default_factory=dict)


DEFENCES: dict[str, Defence] = {
    "none": Defence("plain training, to compare with"),
    "early-stopping": Defence("ends when the loss on held-out records falls no more", {"patience": 3}),
    "l2": Defence("a penalty on the squares of weights", {"l2": 1e-3}),
    "label-smoothing": Defence("labels that are not quite sure", {"label_smoothing": 0.3}),
    "adversarial": Defence("adversarial regularisation (Nasr et al. 2018)", {"adversarial": 3.0}),
    "adversarial-l2": Defence("adversarial regularisation with a penalty", {"adversarial": 3.0, "l2": 1.3e-3}),
}
_OWN = ("patience", "l2", "label_smoothing", "adversarial")  # settings that are a defence


def defence_named(name: str, settings: Mapping[str, Any] | None = None) -> PlainRecipe:
    """A training with that defence; `settings` are those of `PlainRecipe`, and win over the usual ones.

    >>> defence_named("l2", {"l2": 0.01}).in_words()
    'l2 0.01'
    """
    if name not in DEFENCES:
        raise unknown_name("name", name, DEFENCES)
    usual = DEFENCES[name].settings
    for key in _OWN:
        if key in (settings or {}) and key not in usual:
            raise InvalidInput(key, (settings or {})[key], f"nothing with the defence {name!r}", "name that defence")
    return PlainRecipe(**{**usual, **(settings or {})})
