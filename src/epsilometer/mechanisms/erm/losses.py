"""Losses of linear models, with the two numbers that privacy rests on: how steep and how curved they can be.

A loss is a function of the score s = θ·x and the target y. Its gradient in θ is slope·x, so ‖x‖ ≤ B makes it
(steepest·B)-Lipschitz and (curvature_limit·B²)-smooth.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.errors import InvalidInput, unknown_name


class Loss(ABC):
    """Convex in the score, and differentiable."""

    name: ClassVar[str]
    classifies: ClassVar[bool]  # targets are −1 and 1

    @property
    @abstractmethod
    def curvature_limit(self) -> float:
        """The largest second derivative."""

    @abstractmethod
    def value(self, scores: Floats, targets: Floats) -> Floats: ...

    @abstractmethod
    def slope(self, scores: Floats, targets: Floats) -> Floats:
        """The derivative by the score."""

    @abstractmethod
    def curvature(self, scores: Floats, targets: Floats) -> Floats:
        """The second derivative, where there is one (almost everywhere)."""

    @abstractmethod
    def steepest(self, reach: float, target_norm: float) -> float:
        """The largest |slope| at scores of size `reach` and targets of size `target_norm` at most; may be infinite."""


@dataclass(frozen=True)
class Logistic(Loss):
    """ln(1 + e^{−ys}).

    >>> import math
    >>> loss = Logistic()
    >>> loss.steepest(math.inf, 1.0), loss.curvature_limit
    (1.0, 0.25)
    """

    name: ClassVar[str] = "logistic"
    classifies: ClassVar[bool] = True

    @property
    def curvature_limit(self) -> float:
        return 0.25

    def value(self, scores: Floats, targets: Floats) -> Floats:
        return np.logaddexp(0.0, -targets * scores)

    def slope(self, scores: Floats, targets: Floats) -> Floats:
        slopes: Floats = -targets * special.expit(-targets * scores)
        return slopes

    def curvature(self, scores: Floats, targets: Floats) -> Floats:
        likely = special.expit(scores)
        curvatures: Floats = likely * (1.0 - likely)
        return curvatures

    def steepest(self, reach: float, target_norm: float) -> float:
        return 1.0


@dataclass(frozen=True)
class SmoothedHinge(Loss):
    """The hinge with its corner rounded on [1 − h, 1 + h] (what Chaudhuri et al. 2011 call the Huber loss).

    >>> loss = SmoothedHinge(half_width=0.5)
    >>> loss.value(np.array([-1.0, 1.0, 2.0]), np.ones(3)).tolist(), loss.curvature_limit
    ([2.0, 0.125, 0.0], 1.0)
    """

    half_width: float = 0.5
    name: ClassVar[str] = "smoothed-hinge"
    classifies: ClassVar[bool] = True

    def __post_init__(self) -> None:
        validate.real("half_width", self.half_width, above=0, remedy="the hinge itself is not differentiable")

    @property
    def curvature_limit(self) -> float:
        return 1.0 / (2.0 * self.half_width)

    def value(self, scores: Floats, targets: Floats) -> Floats:
        short, h = 1.0 - targets * scores, self.half_width
        return np.where(short > h, short, np.clip(short + h, 0.0, 2.0 * h) ** 2 / (4.0 * h))

    def slope(self, scores: Floats, targets: Floats) -> Floats:
        short, h = 1.0 - targets * scores, self.half_width
        return -targets * np.clip((short + h) / (2.0 * h), 0.0, 1.0)

    def curvature(self, scores: Floats, targets: Floats) -> Floats:
        return np.where(np.abs(1.0 - targets * scores) <= self.half_width, self.curvature_limit, 0.0)

    def steepest(self, reach: float, target_norm: float) -> float:
        return 1.0


@dataclass(frozen=True)
class Huber(Loss):
    """½r² for residuals r = s − y of size `threshold` at most, and linear beyond: so no target is too far off.

    >>> Huber(threshold=0.5).slope(np.array([0.2, 9.0]), np.zeros(2)).tolist()
    [0.2, 0.5]
    """

    threshold: float = 1.0
    name: ClassVar[str] = "huber"
    classifies: ClassVar[bool] = False

    @property
    def curvature_limit(self) -> float:
        return 1.0

    def __post_init__(self) -> None:
        validate.real("threshold", self.threshold, above=0, remedy="beyond it, the loss is linear")

    def value(self, scores: Floats, targets: Floats) -> Floats:
        size, t = np.abs(scores - targets), self.threshold
        return np.where(size <= t, size**2 / 2.0, t * size - t**2 / 2.0)

    def slope(self, scores: Floats, targets: Floats) -> Floats:
        return np.clip(scores - targets, -self.threshold, self.threshold)

    def curvature(self, scores: Floats, targets: Floats) -> Floats:
        return np.where(np.abs(scores - targets) <= self.threshold, 1.0, 0.0)

    def steepest(self, reach: float, target_norm: float) -> float:
        return min(self.threshold, reach + target_norm)


@dataclass(frozen=True)
class Squared(Loss):
    """½(s − y)²: as steep as scores and targets are large, so both need a limit.

    >>> import math
    >>> Squared().steepest(2.0, 1.0), Squared().steepest(math.inf, 1.0)
    (3.0, inf)
    """

    name: ClassVar[str] = "squared"
    classifies: ClassVar[bool] = False

    @property
    def curvature_limit(self) -> float:
        return 1.0

    def value(self, scores: Floats, targets: Floats) -> Floats:
        return np.asarray((scores - targets) ** 2 / 2.0)

    def slope(self, scores: Floats, targets: Floats) -> Floats:
        return scores - targets

    def curvature(self, scores: Floats, targets: Floats) -> Floats:
        return np.ones(np.broadcast_shapes(scores.shape, targets.shape))

    def steepest(self, reach: float, target_norm: float) -> float:
        return reach + target_norm


LOSSES: dict[str, type[Loss]] = {one.name: one for one in (Logistic, SmoothedHinge, Huber, Squared)}


def loss_named(name: object, *, classifies: bool, corner: float) -> Loss:
    """The loss of that name for classes or for numbers; `corner` is the half width or the threshold of those with one.

    >>> loss_named("huber", classifies=False, corner=2.0)
    Huber(threshold=2.0)
    """
    fitting = {key: kind for key, kind in LOSSES.items() if kind.classifies == classifies}
    if not isinstance(name, str) or name not in fitting:
        raise unknown_name("loss", name, fitting)
    if name in ("logistic", "squared"):
        return fitting[name]()
    try:
        return fitting[name](corner)  # type: ignore[call-arg]
    except InvalidInput as error:
        raise error.renamed("corner") from None
