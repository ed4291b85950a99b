"""The statements on which the promise of a training rests, and what is known of each.

An accountant's theorem has premises: every record moves a sum by C at most; noise has the stated law; batches are
sampled as accounted; every step is accounted; and nothing else that is released depends on the data. Whatever is found
out about a training is evidence about one of them, and of one of three kinds: a counterexample needs no confidence; a
test errs with a stated probability; a hint says where to look, and accuses nobody.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any


class Statement(enum.StrEnum):
    """What must be so, or the promise has no proof."""

    CLIPPING = "clipping"
    NOISE = "noise"
    SAMPLING = "sampling"
    ACCOUNTING = "accounting"
    NOTHING_ELSE = "nothing else"


SAYS: Mapping[Statement, str] = {
    Statement.CLIPPING: "each record moves the sum of a step by the clip norm at most",
    Statement.NOISE: "noise of the stated law and scale is added to every sum, fresh in every step",
    Statement.SAMPLING: "batches are sampled as accounted",
    Statement.ACCOUNTING: "every step is accounted, by a valid accountant, within what was asked for",
    Statement.NOTHING_ELSE: "nothing else that is released depends on the data",
}


class Basis(enum.StrEnum):
    """How strong evidence is."""

    COUNTEREXAMPLE = "counterexample"
    TEST = "test"
    HINT = "hint"


class Speaks(enum.StrEnum):
    """For the statement, against it, or not at all."""

    FOR = "for"
    AGAINST = "against"
    NOT = "not"
    ACCEPTED = "accepted"  # against it, and whoever runs the audit accepts that


class Standing(enum.StrEnum):
    """What is known of a statement."""

    BROKEN = "broken"
    HELD = "held"
    ASSUMED = "assumed"
    UNTESTED = "untested"


@dataclass(frozen=True)
class About:
    """One piece of evidence about a statement: who found it (`source`: a check, canaries, the noise, a replay), in one
    plain line; for a test its level, the probability of accusing a right training. `needed` evidence must speak for the
    statement before it counts as held; `remedy` is what would make it speak."""

    statement: Statement
    source: str
    speaks: Speaks
    basis: Basis
    reason: str
    step: int | None = None
    level: float | None = None
    needed: bool = False
    remedy: str = ""

    @property
    def breaks(self) -> bool:
        return self.speaks is Speaks.AGAINST and self.basis is not Basis.HINT


@dataclass(frozen=True)
class Stands:
    """What is known of one statement, and by what; `next` is what would test it."""

    statement: Statement
    standing: Standing
    reason: str
    by: tuple[str, ...] = ()
    basis: Basis | None = None
    step: int | None = None
    next: str = ""

    def assumed(self) -> Stands:
        """The same where somebody vouches for it: what is broken or held is so all the same."""
        if self.standing is not Standing.UNTESTED:
            return self
        return Stands(self.statement, Standing.ASSUMED, f"by whoever runs the audit ({self.reason})", self.by)

    def __str__(self) -> str:
        return f"{self.statement}: {self.standing}: {self.reason}"

    def to_dict(self) -> dict[str, Any]:
        return {
            "statement": self.statement.value,
            "standing": self.standing.value,
            "reason": self.reason,
            "by": list(self.by),
            "basis": self.basis and self.basis.value,
            "step": self.step,
            "next": self.next or None,
        }


def statements(evidence: Iterable[About], assumed: Container[Statement] = ()) -> tuple[Stands, ...]:
    """All five, in order. What nothing has tested, and somebody vouches for, is `assumed`.

    >>> held = About(Statement.NOISE, "noise-law", Speaks.FOR, Basis.TEST, "noise × 1", needed=True)
    >>> broken = About(Statement.CLIPPING, "huge-record", Speaks.AGAINST, Basis.COUNTEREXAMPLE, "adds 1000·C")
    >>> [row.standing.value for row in statements([held, broken])]
    ['broken', 'held', 'untested', 'untested', 'untested']
    """
    pieces = list(evidence)
    rows = (_stands(one, [piece for piece in pieces if piece.statement is one]) for one in Statement)
    return tuple(row.assumed() if row.statement in assumed else row for row in rows)


def _first(piece: About) -> tuple[bool, float]:
    """What needs no confidence comes first, then what says in which step."""
    return piece.basis is not Basis.COUNTEREXAMPLE, math.inf if piece.step is None else piece.step


def _stands(statement: Statement, pieces: list[About]) -> Stands:
    broken = sorted((one for one in pieces if one.breaks), key=_first)
    if broken:
        first, names = broken[0], tuple(dict.fromkeys(one.source for one in broken))
        return Stands(statement, Standing.BROKEN, first.reason, names, first.basis, first.step)
    hints = [one for one in pieces if one.speaks is Speaks.AGAINST]
    missing = [one for one in pieces if one.needed and one.speaks is Speaks.NOT]
    doubts = [*hints, *missing]
    if doubts:
        reason = "; ".join(f"{one.source}: {one.reason}" for one in doubts)
        remedy = next((one.remedy for one in doubts if one.remedy), "")
        return Stands(statement, Standing.UNTESTED, reason, tuple(one.source for one in doubts), None, None, remedy)
    supports = [one for one in pieces if one.speaks is Speaks.FOR]
    accepted = [one for one in pieces if one.speaks is Speaks.ACCEPTED]
    if accepted:
        reason = "; ".join(f"{one.source} is ignored: {one.reason}" for one in accepted)
        return Stands(statement, Standing.ASSUMED, reason, tuple(one.source for one in accepted))
    if not any(one.needed for one in supports):
        return Stands(statement, Standing.UNTESTED, "nothing has tested it")
    strongest = sorted(supports, key=lambda one: not one.needed)
    names = tuple(dict.fromkeys(one.source for one in strongest))
    return Stands(statement, Standing.HELD, strongest[0].reason, names, strongest[0].basis)
