"""Which columns of a table say who was in and what was scored, under our names or the usual other ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from epsilometer.errors import InvalidInput

LABEL, LOSS = "label", "loss"
_OTHER = {"world": "member", "member": "world"}
_KIND = {"world": "it has canaries: use --one-run", "member": "it has pairs: leave out --one-run"}
_MEANS = {
    "world": "1 is a training with the canary, 0 one without",
    "member": "1 is a canary that was in, 0 one left out",
}


@dataclass(frozen=True)
class Columns:
    """The names that the two columns have in a file; `side` is what the first of them says: world or member."""

    side: str
    side_name: str
    score_name: str

    @property
    def sign(self) -> float:
        """What turns the second column into scores: a low loss speaks for a member."""
        return -1.0 if self.score_name == LOSS else 1.0

    @property
    def remarks(self) -> list[str]:
        found = []
        if self.side_name == LABEL:
            found.append(f"the column label is read as {self.side}: {_MEANS[self.side]}")
        if self.score_name == LOSS:
            found.append("the column loss is taken to be lower for members: its sign is turned, scores are -loss")
        return found


def find_columns(header: Sequence[str], side: str) -> Columns:
    """The columns for `side` ("world" or "member") and the score, or why they cannot be told.

    >>> find_columns(["loss", "label"], "world")
    Columns(side='world', side_name='label', score_name='loss')
    """
    for name in header:
        if name and header.count(name) > 1:
            raise InvalidInput("header", list(header), f"one column {name}", "rename the others")
    side_name, score_name = _one_of(header, side, LABEL), _one_of(header, "score", LOSS)
    others = {_OTHER[side], "gradient"} & set(header)  # what else is there says what the file is about
    if side_name is None or score_name is None or (side_name == LABEL and others):
        remedy = _KIND[side] if score_name and _OTHER[side] in others else f"start the file with {side},score"
        raise InvalidInput("header", list(header), f"the columns {side} and score", remedy)
    return Columns(side, side_name, score_name)


def _one_of(header: Sequence[str], name: str, synonym: str) -> str | None:
    """Which of the two names is there; both would be a guess."""
    present = [candidate for candidate in (name, synonym) if candidate in header]
    if len(present) > 1:
        raise InvalidInput("header", list(header), f"one of the columns {name} and {synonym}", "rename the other")
    return present[0] if present else None
