"""Attack models that are learned from references, whose members the attacker knows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from epsilometer.adversaries.logistic import logistic_weights
from epsilometer.claims import Floats
from epsilometer.evidence import Coins
from epsilometer.membership.attack import Attack, Seen
from epsilometer.membership.signals import BLACK_BOX

FEWEST = 40  # examples of a class from which a model of its own is learned
PENALTY = 1e-3
MOST = 100_000  # examples: so many tell as much as more, and references come in pairs that fit together


class LearnedAttack(Attack):
    """A model of its own for every class that has enough examples, and one for all others: logistic regression on
    signals and their squares. Examples are the references' records, in or out."""

    least_references: ClassVar[int] = 2

    @abstractmethod
    def features(self, seen: Seen) -> Sequence[str]:
        """The signals that it looks at."""

    def scores(self, seen: Seen) -> Floats:
        names = self.features(seen)
        used = slice(0, max(2, MOST // len(seen.y) // 2 * 2))
        known, inside, target = seen.references.models(used).of(names), seen.member[used], seen.target.of(names)
        centre, spread = known.mean(axis=(0, 1)), known.std(axis=(0, 1)) + 1e-12
        known, target = _with_squares((known - centre) / spread), _with_squares((target - centre) / spread)
        everybody = _weights(known.reshape(-1, known.shape[-1]), inside.ravel())
        scores = np.zeros(len(seen.y))
        for label in range(seen.classes):
            rows = seen.y == label
            if not rows.any():
                continue
            these = inside[:, rows].ravel()
            own = len(these) >= FEWEST and these.any() and not these.all()
            weights = _weights(known[:, rows].reshape(len(these), -1), these) if own else everybody
            scores[rows] = target[rows] @ weights[:-1] + weights[-1]
        return scores


def _with_squares(values: Floats) -> Floats:
    bounded = np.clip(values, -8.0, 8.0)
    return np.concatenate([bounded, bounded**2], axis=-1)


def _weights(x: Floats, inside: Coins) -> Floats:
    return logistic_weights(x, inside.astype(np.int64), PENALTY)


@dataclass(frozen=True)
class ShadowAttack(LearnedAttack):
    """Shadow models with an attack model for each class (Shokri et al. 2017), on the label's log-odds, the three
    largest chances, entropies, and whether the prediction is right."""

    name: ClassVar[str] = "shadow"
    summary: ClassVar[str] = "an attack model for each class, learned from shadow models (Shokri et al. 2017)"

    def features(self, seen: Seen) -> Sequence[str]:
        return BLACK_BOX


@dataclass(frozen=True)
class WhiteBoxAttack(LearnedAttack):
    """The same with what is seen inside (Nasr et al. 2019): norms of every layer's gradient and hidden outputs."""

    name: ClassVar[str] = "white-box"
    summary: ClassVar[str] = "an attack model on each layer's gradient and outputs, and the loss (Nasr et al. 2019)"
    white_box: ClassVar[bool] = True

    def features(self, seen: Seen) -> Sequence[str]:
        return seen.target.names
