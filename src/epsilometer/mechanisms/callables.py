"""Mechanisms of other people: anything that can be called, such as a measurement of OpenDP."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilometer import validate
from epsilometer.claims import Claim
from epsilometer.errors import InvalidInput
from epsilometer.mechanisms.mechanism import Mechanism
from epsilometer.mechanisms.sensitivity import Sensitivity
from epsilometer.neighbours import Neighbours, require_same_neighbours

MOST_NUMBERS = 10_000  # of one release


@dataclass(frozen=True, eq=False)
class CallableMechanism(Mechanism):
    """`function(value)`, `function(value, rng)` or, fastest, `function(value, rng, size)`, and what it claims.

    Each call is given a copy of the value: one that is changed in place would make later releases depend on earlier
    ones, and what depends on each other accuses falsely. Functions without an `rng` use the global generators of Python
    and numpy, which are seeded, or randomness of their own. Releases may be numbers, arrays, texts, or lists of these.

    >>> def noisy(value, rng, size):
    ...     return value + rng.laplace(0.0, 1.0, size)
    >>> from epsilometer.claims import PointClaim
    >>> CallableMechanism(noisy, PointClaim(1.0)).release(2.0, np.random.default_rng(0), 3).shape
    (3, 1)
    """

    function: Callable[..., Any]
    stated: Claim
    sensitivity: Sensitivity | None = None  # type: ignore[assignment]
    name: ClassVar[str] = "callable"

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InvalidInput("mechanism", self.function, "something that can be called with a value")
        if self.sensitivity is not None:
            require_same_neighbours("the claim", self.stated.neighbours, "the sensitivity", self.sensitivity.neighbours)

    @property
    def has_sensitivity(self) -> bool:
        return self.sensitivity is not None

    @property
    def claim(self) -> Claim:
        return self.stated

    @property
    def neighbours(self) -> Neighbours:
        return self.stated.neighbours

    @property
    def places(self) -> int:
        """How many arguments it takes: a value, a generator, a number of releases."""
        try:
            signature = inspect.signature(self.function)
        except (TypeError, ValueError):  # written in C
            return 1
        for places in (3, 2, 1):
            try:
                signature.bind(*range(places))
            except TypeError:
                continue
            return places
        raise InvalidInput("mechanism", self.describe(), "a function of (value), (value, rng) or (value, rng, size)")

    def accept(self, value: Any) -> Any:
        return value

    def describe(self) -> str:
        name = getattr(self.function, "__qualname__", None) or type(self.function).__name__
        return str(getattr(self.function, "shown", name))

    def release(self, value: Any, rng: np.random.Generator, size: int | None = None) -> Any:
        """As numbers: a row a release."""
        rows = self._releases(value, rng, 1 if size is None else validate.whole("size", size, least=1))
        return rows[0] if size is None else rows

    def _releases(self, value: Any, rng: np.random.Generator, size: int) -> NDArray[np.float64]:
        places = self.places
        if places == 3:
            return as_rows(self.function(deepcopy(value), rng, size), size)
        if places == 1:
            seed = int(rng.integers(2**32))
            random.seed(seed)
            np.random.seed(seed)  # noqa: NPY002 (it is the user's code that draws from it)
            return _table([_numbers(self.function(deepcopy(value))) for _ in range(size)])
        return _table([_numbers(self.function(deepcopy(value), rng)) for _ in range(size)])


def as_rows(outputs: Any, size: int) -> NDArray[np.float64]:
    """Releases as numbers, a row each; shorter ones are filled with NaN, and what is no number has its hash.

    >>> as_rows([[1.0], [2.0, 3.0], "dark"], 3).shape
    (3, 2)
    """
    if not isinstance(outputs, np.ndarray | Sequence) or isinstance(outputs, str) or len(outputs) != size:
        came = f"{len(outputs)}" if hasattr(outputs, "__len__") else type(outputs).__name__
        raise InvalidInput("what the mechanism returned", came, f"{size} releases, one a row")
    if isinstance(outputs, np.ndarray) and outputs.dtype.kind in "biuf":
        return _of_some_width(np.asarray(outputs, np.float64).reshape(size, -1))
    return _table([_numbers(one) for one in outputs])


def _table(rows: list[list[float]]) -> NDArray[np.float64]:
    width = max(map(len, rows), default=0)
    return _of_some_width(np.array([row + [np.nan] * (width - len(row)) for row in rows]).reshape(len(rows), -1))


def _of_some_width(table: NDArray[np.float64]) -> NDArray[np.float64]:
    if not 1 <= table.shape[1] <= MOST_NUMBERS:
        expected = f"from 1 to {MOST_NUMBERS:,} numbers"
        raise InvalidInput("what the mechanism returned", f"{table.shape[1]} numbers", expected)
    return table


def _numbers(value: Any) -> list[float]:
    if value is None:
        return [float("nan")]
    if isinstance(value, bool | int | float | np.number):
        return [float(value)]
    if isinstance(value, np.ndarray | list | tuple):
        return [number for item in value for number in _numbers(item)]
    import zlib

    return [float(zlib.crc32(str(value).encode()))]
