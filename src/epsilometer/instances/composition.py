"""Steps composed one by one by what they cost in expectation over trainings, as in Thudi et al. (2024).

`paths` composes whole trainings instead, which gives less: it is what results use, and this is what they are compared
with.

Let X and Y be the models of n steps on two neighbouring data sets, M_t = exp((a−1)·D_a(X_t‖Y_t)) the moment of step t
at the model before it, and p > 1. Hölder's inequality, applied to the last step and then to those before it, gives

    (α−1)·D_α(X‖Y) ≤ Σ_{i=0}^{n−1} (p−1)^i/p^{i+1} · ln E[M_{n−i}^p at order a_i],   a_0 = α.

i = 0 is the *last* step. Orders grow towards the first one: a_{i+1} = g(a_i), with

- g(a) = pa/(p−1) − 1/(p−1), if the expectation is over trainings of X (the paper's −1/p is valid and looser);
- g(a) = pa/(p−1), if it is over trainings of Y: then Hölder is applied to E_Y[R^a·M] instead of E_X[R^(a−1)·M].

So trainings on the data *with* the record bound both directions, and nobody need train without each record.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.errors import InvalidInput

DIRECTIONS = {
    "with-without": "the divergence from trainings with the record to those without it",
    "without-with": "the opposite one",
}
Step = Callable[[int, float], Floats]  # (step, order) → log-moments, a row a training, a column a record


@dataclass(frozen=True)
class Holder:
    """One way to compose: an order to start from, and p.

    >>> way = Holder(order=8.0, p=5.0)
    >>> way.orders(3, "with-without").tolist()  # of the last step, the one before it, and the first
    [8.0, 9.75, 11.9375]
    >>> way.weights(3).round(3).tolist()
    [0.2, 0.16, 0.128]
    """

    order: float
    p: float

    def __post_init__(self) -> None:
        validate.real("order", self.order, above=1, remedy="8 is what Thudi et al. use")
        validate.real("p", self.p, above=1, remedy="some multiple of the number of steps does well")

    def orders(self, steps: int, direction: str) -> Floats:
        """a_i for i = 0, the last step, to the first one."""
        if direction not in DIRECTIONS:
            raise InvalidInput("direction", direction, "one of " + ", ".join(DIRECTIONS))
        with np.errstate(over="ignore"):
            growth = (self.p / (self.p - 1.0)) ** np.arange(steps)
        # pa/(p−1) − 1/(p−1) leaves 1 where it is: a − 1 grows by p/(p−1) each time.
        orders = 1.0 + (self.order - 1.0) * growth if direction == "with-without" else self.order * growth
        return np.asarray(orders, np.float64)

    def weights(self, steps: int) -> Floats:
        """(p−1)^i/p^{i+1}, i as in `orders`."""
        return np.asarray(((self.p - 1.0) / self.p) ** np.arange(steps) / self.p, np.float64)


def expected(step: Step, steps: int, way: Holder, direction: str) -> Floats:
    """(α−1)·D_α of the whole training for each record, with the mean over the given trainings for the expectation.

    An estimate: these trainings may have missed one in which the record costs far more.
    """
    total: Floats = np.zeros(())
    for i, (order, weight) in enumerate(zip(way.orders(steps, direction), way.weights(steps), strict=True)):
        seen = way.p * step(steps - 1 - i, float(order))
        total = total + weight * (special.logsumexp(seen, axis=0) - math.log(len(seen)))
    return total


def at_worst(worst: Callable[[float], float], steps: int, order: float) -> float:
    """(α−1)·D_α of the whole training for any record: moments of steps add up (Mironov 2017)."""
    return steps * worst(order)
