"""What a training promises: points (ε, δ) and whole trade-off curves, for one kind of neighbours.

A claim limits every test that tries to tell the two worlds apart. The one function that says how is
`max_tpr(fpr)`: the largest true-positive rate that the claim allows at a false-positive rate. All else
(trade-off function, region of error pairs, group privacy) follows from it.
"""

from __future__ import annotations

import functools
import hashlib
import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.deprecated import moved
from epsilometer.errors import EvidenceMismatch, InvalidInput
from epsilometer.figures import Curve, Drawable, TradeOff
from epsilometer.neighbours import RECORD, AnyNeighbours, Neighbours, Relation, SpeaksOfNeighbours, sensitivity

__all__ = [
    "LARGEST_MU", "Claim", "CurveClaim", "Floats", "GaussianClaim", "Neighbours", "PointClaim", "Relation",
    "StepClaim", "group_max_tpr", "point_max_tpr",
]  # fmt: skip
__getattr__ = moved(__name__, {"require_same_relation": "epsilometer.neighbours:require_same_neighbours"})

LARGEST_EXPONENT = 700.0  # e to that is a number yet
_SHOWN = np.unique(np.concatenate([[0.0], np.geomspace(1e-4, 1e-2, 13), np.linspace(0.02, 1.0, 50)]))  # in pictures
LARGEST_MU = 1e7  # beyond it ε is over 5e13, and double precision ends


def require_claim(claim: object) -> None:
    """Refuse what is no claim."""
    validate.instance("claim", claim, Claim, "a claim such as PointClaim(epsilon, delta)")


class Claim(Drawable, SpeaksOfNeighbours):
    """A promise about every pair of neighbouring data sets."""

    statement: ClassVar[str] = "its trade-off curve"  # what is refuted, if the claim is
    of_single_steps: ClassVar[bool] = False  # or of the whole training

    @abstractmethod
    def _max_tpr(self, fpr: Floats) -> Floats:
        """`max_tpr` for a single differing unit, on an array of rates in [0, 1]."""

    @abstractmethod
    def epsilon_at(self, delta: float) -> float:
        """The smallest ε such that the claim implies (ε, δ); infinite where there is none."""

    @abstractmethod
    def describe(self) -> str:
        """The claim in one line."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The claim as plain data."""

    def max_tpr(self, fpr: ArrayLike, group_size: int = 1) -> Floats:
        """The largest true-positive rate that the claim allows at this false-positive rate.

        For worlds that differ in `group_size` units (records, users) the limit is applied once for each of them on the
        way from one world to the other (Dong, Roth & Su 2022, Theorem 2.14: group privacy of f-DP). For an
        (ε, δ) point this is tighter than the usual (kε, δ·Σe^{iε}).

        >>> claim = PointClaim(math.log(50), 0.0)
        >>> claim.max_tpr([0.01, 0.5]).round(4).tolist()
        [0.5, 0.99]
        >>> claim.max_tpr(0.01, group_size=2).round(4).item()
        0.99
        """
        rates = np.asarray(fpr, dtype=np.float64)
        if np.any(~((rates >= 0) & (rates <= 1))):
            raise InvalidInput("fpr", fpr, "rates in [0, 1]")
        return self._group_max_tpr(rates, validate.group_size(group_size))

    def _group_max_tpr(self, rates: Floats, size: int) -> Floats:
        for _ in range(size):
            rates = np.clip(self._max_tpr(rates), rates, 1.0)  # guessing is always allowed
        return rates

    def min_fnr(self, fpr: ArrayLike, group_size: int = 1) -> Floats:
        """The trade-off function: the least false-negative rate at this false-positive rate."""
        return 1.0 - self.max_tpr(fpr, group_size)

    def allows(self, fpr: float, fnr: float, group_size: int = 1) -> bool:
        """Whether an error pair (of exact rates) lies in the region that the claim allows.

        >>> PointClaim(1.0, 0.0).allows(fpr=0.1, fnr=0.6)
        False
        """
        validate.real("fnr", fnr, above=0, below=1, closed="[]")
        return bool(self.max_tpr(fpr, group_size) >= 1.0 - fnr)

    @property
    def only_delta(self) -> float | None:
        """The one δ of which it speaks; none for a curve, which speaks of all."""
        return None

    @property
    def strongest(self) -> Claim:
        """What it allows at most, as a claim about error pairs."""
        return self

    def curve(self, label: str = "", says: str = "claim", group_size: int = 1) -> Curve:
        """Its largest true-positive rates as a line."""
        tpr = self.max_tpr(_SHOWN, group_size)
        return Curve(label or self.describe(), tuple(_SHOWN.tolist()), tuple(np.round(tpr, 6).tolist()), says)

    def figure(self) -> TradeOff:
        return TradeOff(f"What is allowed by {self.describe()}", (self.curve(),))

    @property
    def is_vacuous(self) -> bool:
        """Whether the claim allows everything, so that nothing can refute it."""
        return bool(self.max_tpr(0.0) >= 1.0)


@dataclass(frozen=True)
class PointClaim(Claim):
    """(ε, δ)-differential privacy.

    >>> PointClaim(1.0, 1e-5).describe()
    '(ε = 1, δ = 1e-05), add-remove'
    """

    statement: ClassVar[str] = "the point (ε, δ)"
    epsilon: float
    delta: float = 0.0
    relation: Relation = Relation.ADD_REMOVE
    unit: str = RECORD

    def __post_init__(self) -> None:
        validate.epsilon(self.epsilon)
        validate.delta(self.delta)
        self._settle_neighbours()

    def _max_tpr(self, fpr: Floats) -> Floats:
        return point_max_tpr(fpr, np.float64(self.epsilon), np.float64(self.delta))

    def _group_max_tpr(self, rates: Floats, size: int) -> Floats:
        return group_max_tpr(rates, np.float64(self.epsilon), self.delta, size)

    def epsilon_at(self, delta: float) -> float:
        """ε at another δ, for the worst mechanism that the point allows.

        >>> PointClaim(1.0, 1e-5).epsilon_at(1e-5)
        1.0
        """
        if validate.delta(delta) < self.delta or math.isinf(self.epsilon):
            return math.inf
        # The worst mechanism has δ(ε') = δ + (1−δ)(e^ε − e^ε')/(1 + e^ε) for ε' ≤ ε; all divided by e^ε.
        shrink = math.exp(-self.epsilon)
        ratio = 1.0 - (delta - self.delta) / (1.0 - self.delta) * (1.0 + shrink)
        return max(0.0, self.epsilon + math.log(ratio)) if ratio > 0 else 0.0

    @property
    def only_delta(self) -> float:
        return self.delta

    def group(self, size: int) -> PointClaim:
        """The usual point that follows for groups of `size` units; `max_tpr(·, size)` is tighter.

        >>> PointClaim(0.5, 1e-6).group(2)
        PointClaim(epsilon=1.0, delta=2.64...e-06, relation=<Relation.ADD_REMOVE: 'add-remove'>, unit='record')
        """
        validate.group_size(size)
        exponents = min(self.epsilon, 1e6) * np.arange(size) + (math.log(self.delta) if self.delta else -math.inf)
        delta = float(np.exp(np.minimum(exponents, 0.0)).sum())  # a summand over 1 makes the sum over 1
        return PointClaim(self.epsilon * size, min(delta, np.nextafter(1.0, 0.0).item()), self.relation, self.unit)

    def describe(self) -> str:
        return f"(ε = {self.epsilon:.4g}, δ = {self.delta:.4g}), {self.neighbours}"

    def to_dict(self) -> dict[str, Any]:
        return {
            "form": "point",
            "epsilon": self.epsilon,
            "delta": self.delta,
            **self.neighbours.identity(),
        }


@dataclass(frozen=True)
class GaussianClaim(Claim):
    """μ-Gaussian differential privacy (Dong, Roth & Su 2022): no easier to tell apart than N(0,1) and N(μ,1).

    >>> round(GaussianClaim(1.0).epsilon_at(1e-5), 3)
    4.377
    """

    mu: float
    relation: Relation = Relation.ADD_REMOVE
    unit: str = RECORD

    def __post_init__(self) -> None:
        if not (math.isinf(validate.real("mu", self.mu, above=0, closed="[]")) or self.mu <= LARGEST_MU):
            raise InvalidInput("mu", self.mu, f"at most {LARGEST_MU:g}, or infinity")
        self._settle_neighbours()

    def _max_tpr(self, fpr: Floats) -> Floats:
        return self._group_max_tpr(fpr, 1)

    def _group_max_tpr(self, rates: Floats, size: int) -> Floats:
        if math.isinf(self.mu):
            return np.ones_like(rates)
        tpr: Floats = special.ndtr(special.ndtri(rates) + size * self.mu)
        return np.maximum(tpr, rates)  # guessing is always allowed; the smallest rates vanish in the quantile

    def delta_at(self, epsilon: float) -> float:
        """δ(ε) = Φ(−ε/μ + μ/2) − e^ε·Φ(−ε/μ − μ/2)."""
        validate.epsilon(epsilon)
        if self.mu == 0:
            return 0.0
        if math.isinf(self.mu):
            return 1.0
        first = special.ndtr(-epsilon / self.mu + self.mu / 2)
        second = math.exp(min(0.0, epsilon + special.log_ndtr(-epsilon / self.mu - self.mu / 2)))
        return max(0.0, float(first) - second)

    def epsilon_at(self, delta: float) -> float:
        validate.delta(delta)
        if self.mu == 0 or self.delta_at(0.0) <= delta:
            return 0.0
        if delta == 0 or math.isinf(self.mu):
            return math.inf
        low, high = 0.0, 1.0
        while self.delta_at(high) > delta:
            high *= 2
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if self.delta_at(middle) > delta else (low, middle)
        return high

    @classmethod
    def through(cls, epsilon: float, delta: float, relation: AnyNeighbours = Relation.ADD_REMOVE) -> GaussianClaim:
        """The Gaussian curve that passes through the point (ε, δ).

        >>> round(GaussianClaim.through(4.377, 1e-5).mu, 3)
        1.0
        """
        validate.epsilon(epsilon)
        validate.real("delta", delta, above=0, below=1, remedy="a Gaussian curve has no point with δ = 0")
        said = Neighbours.of(relation)
        if math.isinf(epsilon):
            return cls(math.inf, said.relation, said.unit)
        low, high = 0.0, 1.0
        while cls(high).delta_at(epsilon) < delta:
            high *= 2
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if cls(middle).delta_at(epsilon) < delta else (low, middle)
        return cls(low, said.relation, said.unit)

    def describe(self) -> str:
        return f"{self.mu:.4g}-Gaussian DP, {self.neighbours}"

    def to_dict(self) -> dict[str, Any]:
        return {"form": "gaussian", "mu": self.mu, **self.neighbours.identity()}


@dataclass(frozen=True, repr=False)
class StepClaim(Claim):
    """What a training states of its mechanism, of each step given all before it: a record that the step uses for sure
    is no easier to tell than N(0, 1) from N(μ, 1). Accountants need this to add up steps, and say what ε follows.

    >>> StepClaim.of_noise(1.25).describe()
    'each step is 0.8-Gaussian DP (noise multiplier 1.25), add-remove'
    """

    statement: ClassVar[str] = "what it states of its steps"
    of_single_steps: ClassVar[bool] = True
    mu: float | tuple[float, ...]  # of every step, or of one after another
    relation: Relation = Relation.ADD_REMOVE
    unit: str = RECORD

    def __post_init__(self) -> None:
        self._settle_neighbours()
        try:
            mus = np.asarray(self.mu, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidInput("mu", self.mu, "a number, or one for each step") from None
        if mus.ndim > 1 or not mus.size:
            raise InvalidInput("mu", self.mu, "a number, or one for each step, at least 1")
        object.__setattr__(self, "mu", tuple(mus.tolist()) if mus.ndim else mus.item())
        for mu in {*mus.ravel().tolist()}:
            GaussianClaim(mu)

    @classmethod
    def of_noise(cls, noise_multiplier: float, relation: AnyNeighbours = Relation.ADD_REMOVE) -> StepClaim:
        """What a noise multiplier states: σ in N(0, (σC)²), added to a sum of gradients of norm C at most."""
        validate.real("noise_multiplier", noise_multiplier, above=0, closed="[")
        said = Neighbours.of(relation)
        reach = sensitivity(said.relation)
        return cls(reach / noise_multiplier if noise_multiplier > 0 else math.inf, said.relation, said.unit)

    @functools.cached_property
    def strongest(self) -> GaussianClaim:
        """The limit of the step that promises least."""
        return GaussianClaim(max(self.mu) if isinstance(self.mu, tuple) else self.mu, self.relation, self.unit)

    def strengths(self, steps: int) -> Floats:
        """μ of each of so many steps."""
        if isinstance(self.mu, tuple) and len(self.mu) != steps:
            raise InvalidInput("mu", f"{len(self.mu)} values", f"one for each of {steps} steps")
        return np.broadcast_to(np.asarray(self.mu, dtype=np.float64), steps)

    @property
    def is_vacuous(self) -> bool:
        return math.isinf(min(self.mu) if isinstance(self.mu, tuple) else self.mu)

    def figure(self) -> TradeOff:
        return TradeOff(f"What one step allows: {self.describe()}", (self.strongest.curve(),))

    def __repr__(self) -> str:
        return f"StepClaim({self.describe()})"

    def _max_tpr(self, fpr: Floats) -> Floats:
        raise EvidenceMismatch("a claim about steps is tested on single steps (bet_on_steps), not on whole trainings")

    def epsilon_at(self, delta: float) -> float:
        raise EvidenceMismatch("what ε follows from a claim about steps is for an accountant to say")

    def describe(self) -> str:
        mu = self.strongest.mu
        most = "at least " if isinstance(self.mu, tuple) and len(set(self.mu)) > 1 else ""
        noise = sensitivity(self.relation) / mu if mu else math.inf
        return f"each step is {mu:.4g}-Gaussian DP (noise multiplier {most}{noise:.4g}), {self.neighbours}"

    def to_dict(self) -> dict[str, Any]:
        mu = list(self.mu) if isinstance(self.mu, tuple) else self.mu
        return {"form": "steps", "mu": mu, **self.neighbours.identity()}


@dataclass(frozen=True, repr=False)
class CurveClaim(Claim):
    """A privacy profile: (εᵢ, δᵢ) for every i at once. This is how an accountant promises a whole trade-off curve.

    Like every claim here it holds for the two worlds in either order. Leaving points out only weakens it, so a
    finite profile of a true one is always safe to refute.

    >>> curve = CurveClaim((0.0, 1.0), (0.3, 0.01), name="an example")
    >>> curve.max_tpr(0.1).round(4).item()  # the second point is the sharper one here
    0.2818
    """

    epsilons: tuple[float, ...]
    deltas: tuple[float, ...]
    relation: Relation = Relation.ADD_REMOVE
    name: str = "a privacy profile"
    unit: str = RECORD

    def __post_init__(self) -> None:
        for name in ("epsilons", "deltas"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        lengths = (len(self.epsilons), len(self.deltas))
        if len(set(lengths)) > 1 or not self.epsilons:
            raise InvalidInput("epsilons and deltas", lengths, "sequences of one length, at least 1")
        for epsilon, delta in zip(self.epsilons, self.deltas, strict=True):
            validate.epsilon(epsilon)
            validate.real("delta", delta, above=0, below=1, closed="[]")
        self._settle_neighbours()

    def _max_tpr(self, fpr: Floats) -> Floats:
        ends, slopes, heights = self._envelope
        piece = np.searchsorted(ends, fpr, side="right")
        return np.clip(slopes[piece] * fpr + heights[piece], 0.0, 1.0)

    @functools.cached_property
    def _envelope(self) -> tuple[Floats, Floats, Floats]:
        """The lowest of the points' lines (two each, see `point_max_tpr`) as pieces: where they end, slope, height."""
        finite = np.array([epsilon < LARGEST_EXPONENT for epsilon in self.epsilons])
        epsilons, deltas = np.asarray(self.epsilons)[finite], np.asarray(self.deltas)[finite]
        slopes = np.r_[np.exp(epsilons), np.exp(-epsilons), 0.0]
        heights = np.r_[deltas, 1.0 - np.exp(-epsilons) * (1.0 - deltas), 1.0]
        order = np.lexsort((heights, -slopes))
        kept: list[tuple[float, float, float]] = []  # where a line becomes the lowest, slope, height
        for slope, height in zip(slopes[order].tolist(), heights[order].tolist(), strict=True):
            begin = 0.0
            while kept:
                first, above, base = kept[-1]
                begin = (height - base) / (above - slope) if above > slope else math.inf
                if begin > first:
                    break
                kept.pop()
                begin = 0.0
            if begin < 1.0 and (not kept or begin > kept[-1][0]):
                kept.append((begin, slope, height))
        begins, slopes, heights = (np.array(column) for column in zip(*kept, strict=True))
        return begins[1:], slopes, heights

    def epsilon_at(self, delta: float) -> float:
        """The smallest ε that follows from the profile at δ: between its points, δ is convex in e^ε.

        >>> CurveClaim((0.0, 1.0), (0.3, 0.1)).epsilon_at(0.1)
        1.0
        """
        validate.delta(delta)
        order = np.argsort(self.epsilons, kind="stable")
        epsilons, deltas = np.asarray(self.epsilons)[order], np.asarray(self.deltas)[order]
        reached = np.flatnonzero(deltas <= delta)
        if not reached.size:
            return math.inf
        i = int(reached[0])
        if i == 0 or deltas[i - 1] <= deltas[i] or math.isinf(epsilons[i]):
            return float(epsilons[i])
        share = (deltas[i - 1] - delta) / (deltas[i - 1] - deltas[i])
        gap = math.expm1(min(epsilons[i] - epsilons[i - 1], 700.0))
        return float(epsilons[i - 1] + math.log1p(share * gap))

    def __repr__(self) -> str:
        return f"CurveClaim({self.name}, {len(self.epsilons)} points, {self.neighbours})"

    def describe(self) -> str:
        return f"the trade-off curve of {self.name}, {self.neighbours}"

    def to_dict(self) -> dict[str, Any]:
        points = np.round([self.epsilons, self.deltas], 9).tolist()  # coarser than rounding on another machine
        return {
            "form": "curve",
            "name": self.name,
            "points": len(self.epsilons),
            "sha256": hashlib.sha256(str(points).encode()).hexdigest(),
            **self.neighbours.identity(),
        }


def point_max_tpr(fpr: Floats, epsilon: Floats | np.float64, delta: Floats | np.float64) -> Floats:
    """min(e^ε·u + δ, 1 − e^{−ε}(1 − u − δ)): both inequalities of Kairouz et al. (2015), on arrays."""
    with np.errstate(divide="ignore", invalid="ignore"):
        direct = np.exp(np.minimum(epsilon + np.log(fpr), 0.0)) + delta  # e^ε·u, unless that is over 1
        complement = 1.0 - np.exp(-epsilon) * (1.0 - fpr - delta)
    direct = np.where(np.isinf(epsilon), 1.0, direct)  # ∞ + ln 0 is not a number; ε = ∞ promises nothing
    rates: Floats = np.clip(np.minimum(direct, complement), 0.0, 1.0)
    return rates


def group_max_tpr(fpr: Floats, epsilon: Floats | np.float64, delta: float, size: int) -> Floats:
    """`point_max_tpr` applied `size` times, in closed form.

    Below the corner (1 − δ)/(1 + e^ε) the first of the two lines is the lower one, from there on the second, and rates
    only grow. So there are j steps along the first line, u → e^ε·u + δ, and then size − j along the second, which is
    the same step backwards for 1 − u.

    >>> group_max_tpr(np.array([0.01, 0.5]), np.float64(1.0), 1e-3, 3).round(4).tolist()
    [0.212, 0.9757]
    """
    if size == 1:
        return np.maximum(point_max_tpr(fpr, epsilon, np.float64(delta)), fpr)
    epsilons = np.minimum(epsilon, LARGEST_EXPONENT)
    corner = (1.0 - delta) / (1.0 + np.exp(epsilons))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        growing = delta / np.expm1(epsilons)  # the fixed point of the first line is −growing
        along = np.where(
            epsilons > 0,
            np.ceil(np.log((corner + growing) / (fpr + growing)) / epsilons),
            np.ceil((corner - fpr) / delta),
        )
        steps = np.clip(np.nan_to_num(along, nan=size, posinf=size, neginf=0.0), 0.0, size)
        up = _first_line(fpr, epsilons, delta, steps)
        left = size - steps
        down = np.exp(-left * epsilons) * (1.0 - up)
        down -= delta * np.where(epsilons > 0, -np.expm1(-left * epsilons) / np.expm1(epsilons), left)
    rates = np.where(left > 0, 1.0 - down, up)
    return np.where(np.isinf(epsilon), 1.0, np.clip(rates, fpr, 1.0))


def _first_line(rate: Floats, epsilon: Floats, delta: float, steps: Floats) -> Floats:
    """e^{jε}·u + δ·(1 + e^ε + … + e^{(j−1)ε}), without overflow where it is over 1 anyhow."""
    grown = np.exp(np.minimum(steps * epsilon + np.log(rate), 0.0))
    added = delta * np.where(epsilon > 0, np.expm1(np.minimum(steps * epsilon, 700.0)) / np.expm1(epsilon), steps)
    return np.minimum(grown + added, 1.0)
