"""Two worlds that differ in poisoned records."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epsilometer.claims import Relation
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.training import Array

CONTRASTS = {
    "label": "world 0 has the poisoned records as well, with their likely label",
    "row": "world 0 has the natural records that the poison takes the place of",
}


@dataclass(frozen=True, eq=False)
class Poison:
    """Records `x` with label `label`; a clean model would rather give them `likely`."""

    x: Array
    label: int
    likely: int

    def worlds(
        self, data: Dataset, relation: Relation, rows: NDArray[np.int64], contrast: str
    ) -> tuple[Dataset, Dataset]:
        """Worlds 0 and 1, which differ in as many records as `x` has, by the given relation.

        Under `replace` the poison takes the place of `rows`, and both worlds have as many records as the data.
        """
        if relation is Relation.REPLACE:
            out_data = data.with_rows(rows, self.x, self.likely) if contrast == "label" else data
            return out_data, data.with_rows(rows, self.x, self.label)
        in_data = data
        for row in self.x:
            in_data = in_data.plus(row, self.label)
        return data, in_data


def rows_to_poison(data: Dataset, copies: int, seed: np.random.SeedSequence) -> NDArray[np.int64]:
    """Random rows; those of fewer copies are among those of more."""
    if copies >= len(data):
        raise InvalidInput("copies", copies, f"fewer than the {len(data)} records of {data.name}")
    return np.random.default_rng(seed).permutation(len(data))[:copies]
