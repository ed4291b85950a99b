"""What the steps of recorded trainings cost records: one by one, or summed over each training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from epsilometer.arrays import Floats
from epsilometer.instances.composition import Step
from epsilometer.instances.moments import Levels
from epsilometer.instances.paths import Paths
from epsilometer.instances.plan import MEAN_ORDERS, InstancePlan


class Costs(Protocol):
    """Log-moments of steps at checkpoints. A step without a checkpoint costs what the last checkpoint says, which is a
    guess; whoever wants a bound does not `guess`, and it has the worst case."""

    def step(self, checkpoint: int, order: float, trainings: slice) -> Floats:
        """ln M of the step at a checkpoint: trainings × records."""
        ...


@dataclass(frozen=True, eq=False)
class OfLevels:
    """By the sum rule."""

    plan: InstancePlan
    levels: Levels  # trainings × checkpoints × records

    def step(self, checkpoint: int, order: float, trainings: slice) -> Floats:
        found: Floats = self.plan.moments.of_levels(order)[self.levels[trainings, checkpoint]]
        return found


@dataclass(frozen=True, eq=False)
class OfMoments:
    """By the mean rule; between its orders on a line, since log-moments are convex, and 0 at order 1."""

    plan: InstancePlan
    found: Floats  # trainings × checkpoints × orders × records

    def step(self, checkpoint: int, order: float, trainings: slice) -> Floats:
        found, worst = self.found[trainings, checkpoint], self.plan.moments.of_levels(order)[-1]
        shape = (len(found), found.shape[-1])
        if order > MEAN_ORDERS[-1]:
            return np.full(shape, worst)
        above = int(np.searchsorted(MEAN_ORDERS, order))
        low = found[:, above - 1] if above else np.zeros(shape)
        start = float(MEAN_ORDERS[above - 1]) if above else 1.0
        part = (order - start) / (MEAN_ORDERS[above] - start)
        return np.asarray(np.minimum((1.0 - part) * low + part * found[:, above], worst))


def paths_of(costs: Costs, plan: InstancePlan, trainings: slice = slice(None), *, guess: bool = True) -> Paths:
    """Σ_t ln M_t of these trainings at any order."""
    times = steps_of(plan)

    def summed(order: float) -> Floats:
        worst = float(plan.moments.of_levels(order)[-1])
        total: Floats = np.asarray(0.0 if guess else (plan.recipe.steps - plan.checkpoints) * worst)
        for checkpoint, count in enumerate(times.tolist()):
            total = total + (count if guess else 1) * costs.step(checkpoint, order, trainings)
        return total

    return summed


def steps_of(plan: InstancePlan) -> NDArray[np.int64]:
    """How many steps each checkpoint stands for."""
    times = np.full(plan.checkpoints, plan.interval)
    times[-1] = plan.recipe.steps - plan.interval * (plan.checkpoints - 1)
    return times


def one_by_one(costs: Costs, plan: InstancePlan) -> Step:
    """As `composition` wants them."""
    return lambda step, order: costs.step(step // plan.interval, order, slice(None))
