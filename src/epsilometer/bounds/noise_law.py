"""Does the noise that is seen have the law that is stated? One e-process over steps, valid whenever one looks.

Stated is independent Gaussian noise of deviation 1 (in the units given here) in every coordinate. Refuted is that the
noise is so, *or wider*: a larger deviation, or anything added to it that does not depend on it, makes each size
stochastically larger (Anderson), and what follows of sizes smaller on average. Several kinds of evidence are averaged,
each a supermartingale under the statement, so that the average is one, and ever reaches 1/α with probability α at most:

- the sum of squares of all coordinates, and of each parameter's, against smaller deviations (see `noise_process`);
- how many sizes are beyond some levels, against fewer (a law that is cut off, or peaked, with the right variance);
- how many values lie on a coarse grid, against most of them (noise that was drawn in bfloat16 or float16); where sums
  in floating point have a grid of their own, nobody looks (see `NoiseSample`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.bounds.noise_process import SMALLER, SMALLER_SHARES
from epsilometer.errors import InvalidInput
from epsilometer.noise_sample import GRIDS, LEVELS, NoiseSample

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
    """Takes the noise of one step after another, a sample for each parameter.

    >>> rng, law = np.random.default_rng(0), NoiseLaw()
    >>> for _ in range(3):
    ...     law.add([NoiseSample.of("weight", rng.normal(size=500)), NoiseSample.of("bias", rng.normal(0, 0.3, 20))])
    >>> law.refuted_at, str(law.leading)
    (1, 'bias: noise × 0.279 of what is stated')
    """

    def __init__(self, confidence: float = 0.95) -> None:
        self._needed = -math.log1p(-validate.confidence(confidence))
        self._all = np.log(SMALLER_SHARES)
        self._each: dict[str, Floats] = {}
        self._prices: dict[str, float] = {}
        self._first = 0  # parameters in the first step
        self._fewer = np.zeros((len(LEVELS), len(_FEWER)))
        self._grids = np.zeros(2 * len(GRIDS))
        self._seen: dict[str, tuple[int, float]] = {}  # coordinates and sum of squares, over all steps
        self._counted, self._beyond = 0, np.zeros(len(LEVELS))
        self.steps = 0
        self.refuted_at: int | None = None

    def add(self, samples: Sequence[NoiseSample]) -> None:
        """One step; of one in which nothing was seen there are no samples."""
        for sample in samples:
            _require(sample)
        self.steps += 1
        self._price([sample.name for sample in samples])
        self._all += _scale_gains(sum(one.size for one in samples), sum(one.squares for one in samples))
        for one in samples:
            self._each[one.name] += _scale_gains(one.size, one.squares)
            size, squares = self._seen.get(one.name, (0, 0.0))
            self._seen[one.name] = (size + one.size, squares + one.squares)
        counted = sum(one.counted for one in samples)
        if counted:
            beyond = np.sum([one.beyond for one in samples], axis=0)
            self._counted, self._beyond = self._counted + counted, self._beyond + beyond
            self._fewer += _level_gains(counted, beyond)
        fine = sum(one.fine for one in samples)
        if fine:
            self._grids += _grid_gains(fine, np.sum([one.on_grid for one in samples], axis=0))
        if self.refuted_at is None and self.log_e_value >= self._needed:
            self.refuted_at = self.steps

    def _price(self, names: Sequence[str]) -> None:
        """Parameters of the first step share alike; later ones get less and less, so that there may be any number."""
        new = [name for name in dict.fromkeys(names) if name not in self._prices]
        for name in new:
            later = len(self._prices) - self._first
            self._prices[name] = _EACH / len(new) if not self._first else _LATER / ((later + 1) * (later + 2))
            self._each[name] = np.log(SMALLER_SHARES)
        self._first = self._first or len(new)

    @property
    def log_e_value(self) -> float:
        """Of now; it may have been larger before."""
        return float(special.logsumexp([log for *_, log in self._parts()]))

    @property
    def leading(self) -> Suspicion:
        """What speaks most against the statement."""
        what, parameter, log = max(self._parts(), key=lambda part: part[2])
        return Suspicion(what, parameter, log)

    def _parts(self) -> list[tuple[str, str | None, float]]:
        parts: list[tuple[str, str | None, float]] = []
        size = sum(size for size, _ in self._seen.values())
        squares = sum(squares for _, squares in self._seen.values())
        parts.append((_scaled(size, squares), None, math.log(_ALL) + float(special.logsumexp(self._all))))
        for name, logs in self._each.items():
            log = math.log(self._prices[name]) + float(special.logsumexp(logs))
            parts.append((_scaled(*self._seen[name]), name, log))
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
    if not (math.isfinite(sample.squares) and sample.squares >= 0 and sample.size >= sample.counted >= 0):
        remedy = "leave that step out: add([])"  # one infinity would blind it for ever
        raise InvalidInput("noise", f"{sample.name}: {sample.squares}", "finite sums of squares", remedy)
    beyond, grids = (
        ("beyond", sample.beyond, LEVELS, sample.counted),
        ("on_grid", sample.on_grid, 2 * GRIDS, sample.fine),
    )
    for name, found, kinds, most in (beyond, grids):
        if len(found) != len(kinds) or not all(0 <= count <= most for count in found):
            raise InvalidInput(name, found, f"{len(kinds)} counts of at most {most}")


def _scaled(size: int, squares: float) -> str:
    return f"noise × {math.sqrt(squares / max(size, 1)):.3g} of what is stated"


def _scale_gains(size: int, squares: float | Floats) -> Floats:
    """Of smaller deviations, which are the last axis."""
    gains: Floats = -size * np.log(SMALLER) - 0.5 * (SMALLER**-2 - 1.0) * np.asarray(squares)[..., None]
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
