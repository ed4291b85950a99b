"""Attacks whose models are learned from references, whose members the attacker knows."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.errors import unknown_name
from epsilometer.evidence import Coins
from epsilometer.membership.attack import Attack, Seen
from epsilometer.membership.attack_models import FITS, Examples, network, scores_by_class, scores_with_label
from epsilometer.membership.signals import BLACK_BOX

MOST = 100_000  # examples: so many tell as much as more, and references come in pairs that fit together


class LearnedAttack(Attack):
    """An attack model, fitted on the references' records, in or out; those of the target are no examples."""

    least_references: ClassVar[int] = 2
    reads: ClassVar[tuple[str, ...]] = BLACK_BOX

    @abstractmethod
    def signals(self, seen: Seen) -> tuple[Floats, Floats]:
        """What it looks at: of references (models × records × signals), and of the target (records × signals)."""

    @abstractmethod
    def judged(self, examples: Examples, seen: Seen, target: Floats) -> Floats:
        """The target's scores, by a model of these examples."""

    def scores(self, seen: Seen) -> Floats:
        used = slice(0, max(2, MOST // len(seen.y) // 2 * 2))
        known, target = self.signals(seen)
        known = known[used]
        inside = seen.member[: len(known)]
        y = np.tile(seen.y, len(known))
        examples = Examples(known.reshape(len(y), -1), y, inside.ravel(), seen.classes)
        return self.judged(examples, seen, target)


@dataclass(frozen=True)
class ShadowAttack(LearnedAttack):
    """Shadow models with an attack model for each class (Shokri et al. 2017), on the label's log-odds, the three
    largest chances, entropies, and whether the prediction is right. The paper's attack models are networks."""

    model: str = "logistic"
    name: ClassVar[str] = "shadow"
    summary: ClassVar[str] = "an attack model for each class, learned from shadow models (Shokri et al. 2017)"

    def __post_init__(self) -> None:
        if self.model not in FITS:
            raise unknown_name("model", self.model, FITS)

    def signals(self, seen: Seen) -> tuple[Floats, Floats]:
        return seen.references.of(BLACK_BOX), seen.target.of(BLACK_BOX)

    def judged(self, examples: Examples, seen: Seen, target: Floats) -> Floats:
        return scores_by_class(FITS[self.model], examples, target, seen.y)


@dataclass(frozen=True)
class WhiteBoxAttack(LearnedAttack):
    """A network on what is seen inside (Nasr et al. 2019): each layer's gradient and outputs (see inside.py), the
    prediction, the loss and the label."""

    name: ClassVar[str] = "white-box"
    summary: ClassVar[str] = "an attack network on each layer's gradient and outputs, and the loss (Nasr et al. 2019)"
    white_box: ClassVar[bool] = True

    def signals(self, seen: Seen) -> tuple[Floats, Floats]:
        return seen.references.values, seen.target.values

    def judged(self, examples: Examples, seen: Seen, target: Floats) -> Floats:
        return scores_with_label(network, examples, target, seen.y)


@dataclass(frozen=True)
class WhiteBoxByRecord(WhiteBoxAttack):
    """The same, with each signal also as its difference to the record's mean over references without it: some records
    are hard for every model (Watson et al. 2022), which is what LiRA and RMIA live on."""

    name: ClassVar[str] = "white-box-by-record"
    summary: ClassVar[str] = "white-box, with signals also relative to references without the record"
    least_references: ClassVar[int] = 4

    def signals(self, seen: Seen) -> tuple[Floats, Floats]:
        known, target = super().signals(seen)
        known_relative, relative = _relative(known, target, seen.member)
        known = known[: len(known_relative)]  # a last one that has no partner is left out
        return np.concatenate([known, known_relative], axis=-1), np.concatenate([target, relative], axis=-1)


def _relative(known: Floats, target: Floats, member: Coins) -> tuple[Floats, Floats]:
    """Signals less the record's mean over references without it.

    A reference is compared with other pairs only. Its own pair has one model without the record, which is itself or
    the other: with it, who is in would be compared with one model more than who is out, and so give itself away.
    """
    pairs = len(known) // 2
    out = np.where(member[: 2 * pairs, :, None], 0.0, known[: 2 * pairs])
    of_pairs = out[0::2] + out[1::2]  # the one model of each pair that is without the record
    total = of_pairs.sum(axis=0)
    compared = np.repeat(total - of_pairs, 2, axis=0) / (pairs - 1)
    return known[: 2 * pairs] - compared, target - total / pairs
