"""What an adversary may need, and what a subject may grant: sees, controls, knows."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from epsilometer.errors import unknown_name

Power = TypeVar("Power", bound=enum.StrEnum)


class Sees(enum.StrEnum):
    """What of a training is seen; each includes those before it."""

    RELEASE = "release"  # whatever comes out, as numbers
    PREDICTIONS = "predictions"
    FINAL_MODEL = "final-model"
    EVERY_MODEL = "every-model"  # and hence every update


class Controls(enum.StrEnum):
    """What of a training is chosen by the adversary."""

    RECORDS = "records"
    RECORDS_IN_STEPS = "records-in-steps"
    GRADIENTS = "gradients"
    INITIAL_WEIGHTS = "initial-weights"
    DATA = "data"


WORDS = {
    Sees.RELEASE: "what is released",
    Sees.PREDICTIONS: "the final model's predictions",
    Sees.FINAL_MODEL: "the final model",
    Sees.EVERY_MODEL: "every model during training",
    Controls.RECORDS: "few records",
    Controls.RECORDS_IN_STEPS: "a record, anew before every step",
    Controls.GRADIENTS: "the gradients of records",
    Controls.INITIAL_WEIGHTS: "the weights to start from",
    Controls.DATA: "all records",
}
_IMPLIED: dict[Controls, set[Controls]] = {
    Controls.RECORDS_IN_STEPS: {Controls.RECORDS},
    Controls.GRADIENTS: {Controls.RECORDS, Controls.RECORDS_IN_STEPS},
    Controls.DATA: {Controls.RECORDS},
}


@dataclass(frozen=True)
class ThreatModel:
    """What an adversary sees, controls and knows."""

    sees: Sees
    controls: tuple[Controls, ...]
    knows: str = "recipe and data"

    def __str__(self) -> str:
        controlled = " and ".join(WORDS[power] for power in self.controls) or "nothing"
        return f"sees {WORDS[self.sees]}, controls {controlled}, knows {self.knows}"


@dataclass(frozen=True)
class Access:
    """What a training grants to those who attack it: everything, if nothing is said.

    >>> blackbox = Access("final-model", ["records"])
    >>> blackbox.lacks(ThreatModel(Sees.EVERY_MODEL, (Controls.GRADIENTS,)))
    ['every-model', 'gradients']
    """

    sees: Sees = Sees.EVERY_MODEL
    controls: frozenset[Controls] = frozenset(Controls)

    def __init__(self, sees: str = Sees.EVERY_MODEL, controls: Iterable[str] = tuple(Controls)) -> None:
        given = {_named("controls", word, Controls) for word in ([controls] if isinstance(controls, str) else controls)}
        object.__setattr__(self, "sees", _named("sees", sees, Sees))
        object.__setattr__(self, "controls", frozenset(given.union(*(_IMPLIED.get(power, set()) for power in given))))

    def lacks(self, threat: ThreatModel) -> list[str]:
        """The powers that an adversary needs and is not granted."""
        unseen = [threat.sees.value] if _depth(threat.sees) > _depth(self.sees) else []
        return unseen + [power.value for power in threat.controls if power not in self.controls]

    def __and__(self, other: Access) -> Access:
        """What both grant."""
        return Access(min(self.sees, other.sees, key=_depth), self.controls & other.controls)

    def __str__(self) -> str:
        return ", ".join([self.sees.value, *(power.value for power in Controls if power in self.controls)])


def _depth(sees: Sees) -> int:
    return list(Sees).index(sees)


def _named(argument: str, word: str, kind: type[Power]) -> Power:
    if word not in [power.value for power in kind]:
        raise unknown_name(argument, word, [power.value for power in kind])
    return kind(word)
