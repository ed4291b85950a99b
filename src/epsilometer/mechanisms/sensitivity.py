"""How far neighbours can be apart, stated as data: an amount, the norm that it is measured in, and the relation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.errors import InvalidInput, unknown_name
from epsilometer.neighbours import Neighbours, Relation, SpeaksOfNeighbours

NORMS = {
    "l1": "the sum of all changes",
    "l2": "the Euclidean length of the change",
    "linf": "the largest change of an entry",
    "records": "the number of entries that change, by whatever",
}
_STRICTER = {"l1": ("l1",), "l2": ("l1", "l2"), "linf": ("l1", "l2", "linf"), "records": ("records",)}


@dataclass(frozen=True, repr=False)
class Sensitivity(SpeaksOfNeighbours):
    """What one record (or user, or other unit) can change: the most that neighbours differ by, in a norm.

    >>> Sensitivity(1.0, "l1").distance([0, 2], [1, 2])
    1.0
    """

    amount: float
    norm: str = "l1"
    relation: Relation = Relation.ADD_REMOVE
    unit: str = Neighbours.unit

    def __post_init__(self) -> None:
        remedy = f"the most that one {self.unit} can change the value"
        validate.real("sensitivity", self.amount, above=0, remedy=remedy)
        if self.norm not in NORMS:
            raise unknown_name("norm", self.norm, NORMS)
        self._settle_neighbours()

    def __repr__(self) -> str:
        """Plans of mechanisms are known by it, so it says of units what these say."""
        unit = {key: value for key, value in self.neighbours.identity().items() if key == "unit"}
        shown = {"amount": self.amount, "norm": self.norm, "relation": self.relation, **unit}
        return f"Sensitivity({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    @classmethod
    def of(cls, given: Sensitivity | float, norm: str) -> Sensitivity:
        """A bare number is meant in that norm; a sensitivity in a norm that bounds less than it is refused.

        >>> Sensitivity.of(2.0, "l2")
        Sensitivity(amount=2.0, norm='l2', relation=<Relation.ADD_REMOVE: 'add-remove'>)
        """
        if not isinstance(given, Sensitivity):
            return cls(given, norm)
        if given.norm not in _STRICTER[norm]:
            remedy = "in d dimensions l2 is at most √d and l1 at most d times linf; l1 is at most √d times l2"
            raise InvalidInput("sensitivity", f"{given.amount:g} in {given.norm}", f"one in {norm}", remedy)
        return given

    def distance(self, one: ArrayLike, other: ArrayLike) -> float:
        """How far two values are apart."""
        a, b = numbers("value", one), numbers("value", other)
        if a.shape != b.shape:
            raise InvalidInput("neighbours", f"{a.shape} and {b.shape}", "values of one shape")
        change = np.abs(a - b).ravel()
        if self.norm == "records":
            return float(np.count_nonzero(change))
        return float(np.linalg.norm(change, {"l1": 1, "l2": 2, "linf": np.inf}[self.norm]))

    def require_neighbours(self, one: ArrayLike, other: ArrayLike) -> None:
        """Refuse values that no one unit could turn into each other."""
        apart = self.distance(one, other)
        if apart == 0:
            raise InvalidInput("neighbours", "two equal values", "values that differ", "equal ones tell nothing")
        if apart > self.amount * (1.0 + 1e-9):
            expected = f"at most the sensitivity, {self.amount:g} in {self.norm}"
            raise InvalidInput("distance of neighbours", apart, expected, f"give values that one {self.unit} can cause")


UNIT = {norm: Sensitivity(1.0, norm) for norm in NORMS}
RECORD = Sensitivity(1.0, "records", Relation.REPLACE)  # one entry is replaced


def numbers(argument: str, value: ArrayLike, *, vector: bool = False) -> Floats:
    """Finite numbers, one or an array of them; `vector` asks for a sequence."""
    try:
        found = np.asarray(value)
        if found.dtype.kind not in "biuf":
            raise TypeError
    except (TypeError, ValueError):
        raise InvalidInput(argument, value, "numbers") from None
    if vector and (found.ndim != 1 or not found.size):
        raise InvalidInput(argument, f"shape {found.shape}", "a sequence of numbers, at least one")
    if not np.isfinite(found).all():
        raise InvalidInput(argument, float(found[~np.isfinite(found)].ravel()[0]), "finite numbers")
    return found.astype(np.float64)
