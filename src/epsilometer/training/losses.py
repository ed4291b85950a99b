"""How good a model is, from its outputs: the loss of single records, and how many it gets right."""

from __future__ import annotations

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.training.models import Array, Labels


def record_losses(logits: Array, y: Labels, loss: str = "cross-entropy") -> Floats:
    """One loss a record, in double precision; `loss` is one of the recipe's, or "scored": minus the label's output.

    >>> record_losses(np.zeros((1, 4)), np.array([2])).round(4).tolist()
    [1.3863]
    """
    outputs = np.asarray(logits, np.float64)
    wanted = np.zeros_like(outputs)
    wanted[np.arange(len(y)), y] = 1.0
    losses: Floats
    if loss == "cross-entropy":
        losses = np.logaddexp.reduce(outputs, axis=1) - (outputs * wanted).sum(axis=1)
    elif loss == "logistic":
        losses = (np.logaddexp(0.0, outputs) - outputs * wanted).sum(axis=1)
    elif loss == "scored":
        losses = -(outputs * wanted).sum(axis=1)
    else:
        losses = 0.5 * ((outputs - wanted) ** 2).sum(axis=1)
    return losses


def accuracy(logits: Array, y: Labels) -> float:
    """The share of records whose label has the largest output.

    >>> accuracy(np.array([[1.0, 2.0], [2.0, 1.0]]), np.array([1, 1]))
    0.5
    """
    return float(np.mean(np.argmax(logits, axis=1) == y))
