"""Records of an adversary's own: of the same kind as those that are trained on, and none of them."""

from __future__ import annotations

from typing import Any

from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput, unknown_name

SOURCES = {
    "same": "the records that are trained on: all but one are known to whom differential privacy protects from",
    "held-out": "others of the same kind, which the data hold out: of what is trained on nothing is known",
}


def require_source(setting: str, value: str) -> None:
    if not isinstance(value, str) or value not in SOURCES:
        raise unknown_name(setting, value, SOURCES)


def held_out_of(data: Dataset, setting: str, least: int = 1) -> Dataset:
    """The records that the data hold out, if they are as many as are needed."""
    others = data.held_out
    if others is None or len(others) < least:
        held = 0 if others is None else len(others)
        expected = f"data that hold out at least {least} records ({data.name} hold out {held})"
        raise InvalidInput(setting, "held-out", expected, 'say more in data.held_out, or use "same"')
    return others


def read_of(data: Any, source: str) -> dict[str, Any]:
    """What of held-out records decides a game, as `Adversary.reads` has it."""
    others = getattr(data, "held_out", None)
    return {"held_out_sha256": others.fingerprint()} if source == "held-out" and others is not None else {}
