"""One step's noise in one parameter, boiled down to what tests of its law need; numpy only, for hooks use it too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

LEVELS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5)  # deviations; float32 generators of frameworks end near 5.8
GRIDS = (8, 11)  # binary digits of bfloat16 and of float16
NEAR = 1.0 / 32.0  # of a grid's step, on either side
FINE = 2.0**-21  # deviations: finer than the finest grid, but for the smallest values
LARGE = 8.0  # deviations: no noise


@dataclass(frozen=True)
class NoiseSample:
    """Noise in units of the deviation that is stated: the sum of squares of all `size` coordinates; of `counted` of
    them, how many are beyond each of LEVELS; and of `fine` ones, how many lie on a grid as coarse as each of GRIDS
    allows, in units of the deviation or as they are.

    Noise that was read off a sum in floating point lies on the grid of that sum, which is no fault of the noise: only
    coordinates whose sum has steps below FINE deviations are looked at for grids, and none of more than LARGE.
    """

    name: str
    size: int
    squares: float
    counted: int = 0
    beyond: tuple[int, ...] = (0,) * len(LEVELS)
    fine: int = 0
    on_grid: tuple[int, ...] = (0,) * (2 * len(GRIDS))

    @classmethod
    def of(
        cls, name: str, values: ArrayLike, scale: float = 1.0, sums: NDArray[np.floating[Any]] | None = None
    ) -> NoiseSample:
        """Of all values of a parameter, whose deviation should be `scale`; `sums` are what the noise was added to, in
        the type of number in which that was done (none: nothing was added).

        >>> NoiseSample.of("weight", [0.5, -3.25, 1.0, 0.3])
        NoiseSample(name='weight', size=4, squares=11.9025, counted=4, beyond=(2, 1, ...), fine=4, on_grid=(3, 3, 3, 3))
        """
        raw = np.asarray(values, np.float64).ravel()
        units = raw / scale
        fine = np.abs(units) < LARGE
        if sums is not None:
            steps = np.spacing(np.abs(sums).ravel() + np.asarray(scale, sums.dtype)).astype(np.float64)
            fine &= steps < FINE * scale
        beyond = tuple(int(np.count_nonzero(np.abs(units) > level)) for level in LEVELS)
        grids = tuple(on_grid(values[fine], digits) for values in (units, raw) for digits in GRIDS)
        return cls(name, raw.size, float(units @ units), raw.size, beyond, int(fine.sum()), grids)


def on_grid(values: NDArray[np.float64], digits: int) -> int:
    """How many are, but for little, numbers of so many binary digits. Of a smooth law it is a share 2·NEAR.

    >>> on_grid(np.array([1.5, 1.0039, 0.3333]), 8)
    1
    """
    significands = np.ldexp(np.abs(np.frexp(values)[0]), digits)  # in [2^(digits − 1), 2^digits), or 0
    with np.errstate(invalid="ignore"):  # infinities are near nothing
        return int(np.count_nonzero(np.abs(significands - np.rint(significands)) < NEAR))
