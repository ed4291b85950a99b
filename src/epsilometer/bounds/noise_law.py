"""Does the noise that is seen have the law that is stated? One e-process over steps, valid whenever one looks.

Stated is independent Gaussian noise of deviation 1 (in the units given here) in every coordinate. Refuted is that the
noise is so, *or wider*: a larger deviation, or anything added to it that does not depend on it, makes each size
stochastically larger (Anderson), and what follows of sizes smaller on average. Several kinds of evidence are averaged,
each a supermartingale under the statement, so that the average is one, and ever reaches 1/α with probability α at most:

- the sum of squares of all coordinates, and of each parameter's, against smaller deviations s: of n values with sum of
  squares q the likelihood ratio is s⁻ⁿ·exp(−½(s⁻² − 1)q), which falls in q;
- how many sizes are beyond some levels, against fewer (a law that is cut off, or peaked, with the right variance);
- how many values lie on a coarse grid, against most of them (noise that was drawn in bfloat16 or float16); where sums
  in floating point have a grid of their own, nobody looks (see `noise_sample`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.errors import InvalidInput
from epsilometer.noise_sample import GRIDS, LEVELS, Counts, NoiseSample

SMALLER = np.array([0.02, 0.1, 0.3, 0.5, 0.7, 0.8, 0.88, 0.94, 0.975])
SMALLER_SHARES = np.array([0.01, 0.01, 0.01, 0.02, 0.03, 0.08, 0.24, 0.25, 0.35])  # most where evidence grows slowly
_ALL, _EACH, _LATER, _LEVELS, _GRIDS = 0.84, 0.08, 0.02, 0.04, 0.02  # shares: most where evidence grows slowly
_EXPECTED = 2.0 * special.ndtr(-np.asarray(LEVELS))  # beyond each level
_FEWER = np.array([0.0, 0.25, 0.75])  # of these, in the alternatives
_NEAR_GRID = 0.1  # 2·NEAR of a flat density; with room for the smallest values, which sums may have rounded
_ON_GRID = 0.9  # in the alternative: sums are rounded


@dataclass(frozen=True)
class Suspicion:
    """What speaks most against the statement: in which parameter (none: in all), and what was seen."""

    what: str
    parameter: str | None
    log_e_value: float

    def __str__(self) -> str:
        return f"{self.parameter or 'all parameters'}: {self.what}"


class NoiseLaw:
    """Takes the noise of one step after another.

    >>> rng, law = np.random.default_rng(0), NoiseLaw()
    >>> for _ in range(3):
    ...     law.add(NoiseSample.of({"weight": rng.normal(size=500), "bias": rng.normal(0, 0.3, 20)}))
    >>> law.refuted_at, str(law.leading)
    (1, 'bias: noise × 0.279 of what is stated')
    """

    def __init__(self, confidence: float = 0.95) -> None:
        self._needed = -math.log1p(-validate.confidence(confidence))
        self._all = np.log(SMALLER_SHARES)
        self._places: dict[str, int] = {}  # of parameters in what follows
        self._each = np.zeros((0, len(SMALLER)))
        self._prices = np.zeros(0)
        self._first = 0  # parameters in the first step that has any
        self._sizes, self._squares = np.zeros(0), np.zeros(0)  # over all steps
        self._fewer = np.zeros((len(LEVELS), len(_FEWER)))
        self._grids = np.zeros(2 * len(GRIDS))
        self._counted, self._beyond = 0, np.zeros(len(LEVELS))
        self.steps = 0
        self.refuted_at: int | None = None

    def add(self, sample: NoiseSample | None) -> None:
        """One step; none of one in which nothing was seen."""
        if sample is not None:
            _require(sample)
            self._weigh(sample)
            self._count(sample.counts)
        self.steps += 1
        if self.refuted_at is None and self.log_e_value >= self._needed:
            self.refuted_at = self.steps

    def _weigh(self, sample: NoiseSample) -> None:
        seen = [(name, size, squares) for name, size, squares in
                zip(sample.names, sample.sizes, sample.squares, strict=True) if size]  # fmt: skip
        self._make_room([name for name, *_ in seen])
        places = [self._places[name] for name, *_ in seen]
        sizes = np.array([size for _, size, _ in seen], np.float64)
        squares = np.array([square for *_, square in seen], np.float64)
        gains = _scale_gains(sizes, squares)
        self._all += gains.sum(axis=0)
        self._each[places] += gains
        self._sizes[places] += sizes
        self._squares[places] += squares

    def _make_room(self, names: list[str]) -> None:
        """Parameters of the first step share alike; later ones get less and less, so that there may be any number."""
        new = [name for name in names if name not in self._places]
        if not new:
            return
        if not self._places:
            self._first = len(new)
            prices = np.full(len(new), _EACH / len(new))
        else:
            later = len(self._places) - self._first + np.arange(len(new))
            prices = _LATER / ((later + 1.0) * (later + 2.0))
        self._places.update({name: len(self._places) + place for place, name in enumerate(new)})
        self._prices = np.append(self._prices, prices)
        self._each = np.append(self._each, np.tile(np.log(SMALLER_SHARES), (len(new), 1)), axis=0)
        self._sizes, self._squares = (np.append(one, np.zeros(len(new))) for one in (self._sizes, self._squares))

    def _count(self, counts: Counts) -> None:
        beyond, near = np.array(counts.beyond, np.float64), np.array(counts.on_grid, np.float64)
        self._counted, self._beyond = self._counted + counts.counted, self._beyond + beyond
        self._fewer += _level_gains(counts.counted, beyond)
        self._grids += _grid_gains(counts.fine, near)

    @property
    def seen(self) -> bool:
        """Was there any noise to look at?"""
        return bool(self._places)

    @property
    def coordinates(self) -> int:
        """Of all steps and parameters: how many values of noise were looked at."""
        return int(self._sizes.sum())

    @property
    def log_e_value(self) -> float:
        """Of now; it may have been larger before."""
        each = np.log(self._prices)[:, None] + self._each
        fewer, grids = (
            self._fewer + math.log(_LEVELS / self._fewer.size),
            self._grids + math.log(_GRIDS / self._grids.size),
        )
        parts = (self._all + math.log(_ALL), each, fewer, grids)
        return float(np.logaddexp.reduce(np.concatenate([part.ravel() for part in parts])))

    @property
    def leading(self) -> Suspicion:
        """What speaks most against the statement."""
        what, parameter, log = max(self._parts(), key=lambda part: part[2])
        return Suspicion(what, parameter, log)

    def _parts(self) -> list[tuple[str, str | None, float]]:
        logs = np.log(self._prices) + special.logsumexp(self._each, axis=1)
        whole = math.log(_ALL) + float(special.logsumexp(self._all))
        parts: list[tuple[str, str | None, float]] = [(_scaled(self._sizes.sum(), self._squares.sum()), None, whole)]
        for (name, place), log in zip(self._places.items(), logs, strict=True):
            parts.append((_scaled(self._sizes[place], self._squares[place]), name, float(log)))
        price = math.log(_LEVELS / self._fewer.size)
        for place, level in enumerate(LEVELS):
            share = self._beyond[place] / max(self._counted, 1)
            words = f"{share:.3g} of it is beyond {level:g} deviations, where {_EXPECTED[place]:.3g} should be"
            parts.append((words, None, price + float(special.logsumexp(self._fewer[place]))))
        for place, log in enumerate(self._grids):
            words = f"it lies on a grid, as numbers of {GRIDS[place % len(GRIDS)]} binary digits do"
            parts.append((words, None, math.log(_GRIDS / len(self._grids)) + float(log)))
        return parts


def _require(sample: NoiseSample) -> None:
    for name, size, squares in zip(sample.names, sample.sizes, sample.squares, strict=True):
        if not (math.isfinite(squares) and squares >= 0 and size >= 0):
            remedy = "leave that step out: add(None)"  # one infinity would blind it for ever
            raise InvalidInput("noise", f"{name}: {squares}", "finite sums of squares", remedy)
    counts = sample.counts
    beyond, grids = (
        ("beyond", counts.beyond, LEVELS, counts.counted),
        ("on_grid", counts.on_grid, 2 * GRIDS, counts.fine),
    )
    for name, found, kinds, most in (beyond, grids):
        if len(found) != len(kinds) or not all(0 <= count <= most for count in found):
            raise InvalidInput(name, found, f"{len(kinds)} counts of at most {most}")


def _scaled(size: float, squares: float) -> str:
    return f"noise × {math.sqrt(squares / max(size, 1)):.3g} of what is stated"


def _scale_gains(size: float | Floats, squares: Floats) -> Floats:
    """Of smaller deviations, which are the last axis."""
    gains: Floats = -np.multiply.outer(size, np.log(SMALLER)) - np.multiply.outer(squares, 0.5 * (SMALLER**-2 - 1.0))
    return gains


def _level_gains(counted: int, beyond: Floats) -> Floats:
    """Logarithms of likelihood ratios of binomial counts, levels × alternatives; each falls in the count."""
    fewer, hits = np.outer(_EXPECTED, _FEWER), np.asarray(beyond, np.float64)[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):
        lost = np.where(hits > 0, hits * np.log(_FEWER), 0.0)
    gains: Floats = lost + (counted - hits) * (np.log1p(-fewer) - np.log1p(-_EXPECTED)[:, None])
    return gains


def _grid_gains(counted: int, near: Floats) -> Floats:
    rest = math.log((1.0 - _ON_GRID) / (1.0 - _NEAR_GRID))
    gains: Floats = near * math.log(_ON_GRID / _NEAR_GRID) + (counted - near) * rest
    return gains
