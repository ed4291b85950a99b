"""Attacks on the target's outputs alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from epsilometer.arrays import Floats
from epsilometer.membership.attack import Attack, Seen
from epsilometer.membership.signals import MINUS_LOSS, ROBUST


@dataclass(frozen=True)
class LossAttack(Attack):
    """A small loss means member (Yeom et al. 2018). The threshold is left to whoever reads the curve."""

    name: ClassVar[str] = "loss"
    summary: ClassVar[str] = "a small loss means member (Yeom et al. 2018)"
    reads: ClassVar[tuple[str, ...]] = ("log_chance", MINUS_LOSS)

    def scores(self, seen: Seen) -> Floats:
        return seen.target.first_of(*self.reads)


@dataclass(frozen=True)
class EntropyAttack(Attack):
    """A sure prediction means member, whatever the label (Salem et al. 2019)."""

    name: ClassVar[str] = "entropy"
    summary: ClassVar[str] = "a small prediction entropy means member; the label is not looked at"
    reads: ClassVar[tuple[str, ...]] = ("entropy",)

    def scores(self, seen: Seen) -> Floats:
        return -seen.target["entropy"]


@dataclass(frozen=True)
class ModifiedEntropyAttack(Attack):
    """A sure and right prediction means member (Song & Mittal 2021)."""

    name: ClassVar[str] = "modified-entropy"
    summary: ClassVar[str] = "a small entropy, where confident mistakes count as large (Song & Mittal 2021)"
    reads: ClassVar[tuple[str, ...]] = ("modified_entropy",)

    def scores(self, seen: Seen) -> Floats:
        return -seen.target["modified_entropy"]


@dataclass(frozen=True)
class LabelOnlyAttack(Attack):
    """A label that survives noise means member (Choquette-Choo et al. 2021): the share of noisy copies that get it.

    Of two records that survive alike, the one whose own label is right goes first.
    """

    name: ClassVar[str] = "label-only"
    summary: ClassVar[str] = (
        "a label that survives noise means member; no chances are seen (Choquette-Choo et al. 2021)"
    )
    reads: ClassVar[tuple[str, ...]] = (ROBUST,)
    asks: ClassVar[bool] = True

    def scores(self, seen: Seen) -> Floats:
        scores: Floats = seen.target[ROBUST] + seen.target["correct"]
        return scores
