"""One step's noise, boiled down to what tests of its law need; numpy only, for hooks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

LEVELS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5)  # deviations; float32 generators of frameworks end near 5.8
GRIDS = (8, 11)  # binary digits of bfloat16 and of float16
NEAR = 1.0 / 32.0  # of a grid's step, on either side
LARGE = 8.0  # deviations: no noise
_STEPS = 2.0 ** np.array(GRIDS)[:, None]
_TAIL = 1.0  # deviations that noise adds to a sum, for the grid that it is on

# Noise that was read off a sum in floating point lies on the grid of that sum, which is no fault of the noise. What may
# be looked at depends on the steps of that grid, in deviations:
WEIGHED = 0.5  # rounding to coarser ones may lose noise; to finer ones it adds some, a hundredth at most
COUNTED = 2.0**-6  # coarser ones move values from one side of a level to the other
FINE = 2.0**-21  # finer than the finest grid that is looked for, but for the smallest values


@dataclass(frozen=True)
class Counts:
    """Of `counted` coordinates, how many are beyond each of LEVELS, in units of the deviation that is stated; and of
    `fine` ones, how many lie on a grid as coarse as each of GRIDS allows, in these units or as they are."""

    counted: int = 0
    beyond: tuple[int, ...] = (0,) * len(LEVELS)
    fine: int = 0
    on_grid: tuple[int, ...] = (0,) * (2 * len(GRIDS))

    @classmethod
    def of(
        cls, values: ArrayLike, scale: float | NDArray[np.float64] = 1.0, steps: float | NDArray[np.float64] = 0.0
    ) -> Counts:
        """Of values whose deviation should be `scale`, read off sums of which neighbours are `steps` apart (0: the
        noise was seen as it was drawn). None of more than LARGE is looked at for grids.

        >>> Counts.of([0.5, -3.25, 1.0, 0.3])
        Counts(counted=4, beyond=(2, 1, 1, 1, 1, 1, 0, 0, 0), fine=4, on_grid=(3, 3, 3, 3))
        """
        raw = np.abs(np.asarray(values, np.float64).ravel())
        units = raw / scale
        apart = np.broadcast_to(np.divide(steps, scale), raw.shape)
        counted, fine = units[apart <= COUNTED], (apart < FINE) & (units < LARGE)
        within = np.searchsorted(np.sort(counted), LEVELS, side="right")
        grids = on_grids(np.stack([units[fine], raw[fine]]))
        return cls(
            len(counted), tuple((len(counted) - within).tolist()), int(fine.sum()), tuple(grids.ravel().tolist())
        )


@dataclass(frozen=True)
class NoiseSample:
    """Of each parameter, how many coordinates are weighed (none: it had no part in the step) and the sum of their
    squares, in units of the deviation that is stated; of some coordinates of all parameters, `counts`."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    squares: tuple[float, ...]
    counts: Counts = field(default_factory=Counts)

    @classmethod
    def of(
        cls,
        noise: Mapping[str, ArrayLike],
        scale: float = 1.0,
        sums: Mapping[str, NDArray[np.floating[Any]]] | None = None,
    ) -> NoiseSample:
        """Of all values of each parameter, whose deviation should be `scale`; `sums` are those from which the noise
        was read, before it was added, in their own type of number (none: the noise was seen as it was drawn).

        >>> NoiseSample.of({"weight": [0.5, -3.25], "bias": [1.0]}).squares
        (10.8125, 1.0)
        """
        values = {name: np.asarray(one, np.float64).ravel() for name, one in noise.items()}
        steps = {name: np.zeros(0) if sums is None else steps_of(sums[name], scale) for name in values}
        weighed = {
            name: one / scale if sums is None else one[steps[name] <= WEIGHED * scale] / scale
            for name, one in values.items()
        }
        every = np.concatenate([*values.values(), np.zeros(0)])
        apart = np.concatenate([*steps.values(), np.zeros(0)]) if sums is not None else 0.0
        return cls(
            tuple(values),
            tuple(len(one) for one in weighed.values()),
            tuple(float(one @ one) for one in weighed.values()),
            Counts.of(every, scale, apart),
        )


def steps_of(sums: NDArray[np.floating[Any]], scale: float) -> NDArray[np.float64]:
    """How far numbers are apart that noisy sums can be, where noise of this deviation comes to these sums. It follows
    from the sums alone: to choose coordinates by what the noise made of them would bend its law.

    >>> steps_of(np.array([0.0, 1e6], np.float32), 1.0)
    array([1.1920929e-07, 6.2500000e-02])
    """
    largest = np.abs(np.ravel(sums)) + np.asarray(_TAIL * scale, sums.dtype)
    steps: NDArray[np.float64] = np.spacing(largest).astype(np.float64)
    return steps


def on_grids(values: NDArray[np.float64]) -> NDArray[np.intp]:
    """How many are, but for little, numbers of so few binary digits as each of GRIDS has; values in the last axis. Of a
    smooth law it is a share 2·NEAR.

    >>> on_grids(np.array([1.5, 1.0039, 1.001, 0.3333]))
    array([1, 3])
    """
    significands = np.frexp(values)[0][..., None, :] * _STEPS  # in [2^(digits − 1), 2^digits), or 0
    with np.errstate(invalid="ignore"):  # infinities are near nothing
        off = np.abs(significands - np.rint(significands)) < NEAR
    found: NDArray[np.intp] = np.count_nonzero(off, axis=-1)
    return found
