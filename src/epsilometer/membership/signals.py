"""What an attacker reads off a model for each record: a row of named numbers, the same for any model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from epsilometer.arrays import Floats
from epsilometer.training import Array, Labels

BLACK_BOX = ("log_chance", "log_odds", "entropy", "modified_entropy", "first", "second", "third", "correct")
MINUS_LOSS = "minus_loss"  # where nothing else is known of a record
ROBUST = "robust"  # the share of noisy copies that get the record's label
NEVER = -745.0  # the logarithm of a chance that is nil


@dataclass(frozen=True, eq=False)
class Signals:
    """Numbers by name: the last axis has the signals, the one before it the records, and those before these models.

    >>> seen = Signals(BLACK_BOX, black_box(np.zeros((3, 4)), np.array([0, 1, 2])))
    >>> np.exp(seen["log_chance"]).round(2).tolist()
    [0.25, 0.25, 0.25]
    """

    names: tuple[str, ...]
    values: Floats

    def __getitem__(self, name: str) -> Floats:
        found: Floats = self.values[..., self.names.index(name)]
        return found

    def first_of(self, *names: str) -> Floats:
        """The first of these signals that there is."""
        return self[next(name for name in names if name in self.names)]

    def of(self, names: Sequence[str]) -> Floats:
        """These signals only, in this order."""
        found: Floats = self.values[..., [self.names.index(name) for name in names]]
        return found

    def records(self, rows: slice | NDArray[np.bool_]) -> Signals:
        return Signals(self.names, self.values[..., rows, :])

    def models(self, which: int | slice) -> Signals:
        return Signals(self.names, self.values[which])


def black_box(logits: Array, y: Labels) -> Floats:
    """The signals of `BLACK_BOX` for each record (row), from logits or logarithms of chances.

    `log_odds` is ln p_y − ln Σ_{j≠y} p_j (Carlini et al. 2022); `modified_entropy` is that of Song & Mittal (2021),
    −(1 − p_y) ln p_y − Σ_{j≠y} p_j ln(1 − p_j); `first` to `third` are the largest ln p; `correct` is 0 or 1.

    >>> row = black_box(np.log([[0.7, 0.2, 0.1]]), np.array([0]))[0]
    >>> dict(zip(BLACK_BOX, row.round(4).tolist()))["log_odds"]
    0.8473
    """
    outputs = np.asarray(logits, np.float64)
    rows = np.arange(len(outputs))
    logs = np.maximum(outputs - special.logsumexp(outputs, axis=1, keepdims=True), NEVER)
    others = logs.copy()
    others[rows, y] = -np.inf
    chances = np.exp(logs)
    rest = np.maximum(special.logsumexp(others, axis=1), NEVER)  # ln(1 − p_y), without cancellation
    odds = logs[rows, y] - rest
    own = -np.logaddexp(0.0, -odds)  # ln p_y once more: the surest records differ where p_y rounds to 1
    entropy = -(chances * logs).sum(axis=1)
    not_others = np.log1p(-np.minimum(np.exp(others), 1.0 - 1e-16))
    modified = -np.exp(rest) * own - (np.exp(others) * not_others).sum(axis=1)
    ranked = -np.sort(-logs, axis=1)[:, :3]
    top = np.full((len(logs), 3), NEVER)  # two classes have no third
    top[:, : ranked.shape[1]] = ranked
    correct = (np.argmax(outputs, axis=1) == y).astype(np.float64)
    return np.column_stack([own, odds, entropy, modified, top, correct])
