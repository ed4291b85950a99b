"""What is asked of a loader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from epsilometer import validate
from epsilometer.data.dataset import Dataset
from epsilometer.data.files import Files
from epsilometer.data.selection import select

TRAIN, TEST = "train", "test"


@dataclass(frozen=True)
class Request:
    """Which part of a data set, which classes of it, how many records of each, and where its files may come from."""

    part: str = TRAIN
    classes: Sequence[str | int] | None = None
    per_class: int | None = None
    files: Files = field(default_factory=Files)
    clusters: int | None = None  # classes to make, where a data set's classes are clusters

    def __post_init__(self) -> None:
        if self.per_class is not None:  # before anything is read or downloaded
            validate.whole("data.per_class", self.per_class, least=1)

    def dataset(
        self,
        name: str,
        features: Callable[[NDArray[np.int64]], NDArray[np.float32]],
        labels: NDArray[np.generic],
        *,
        classes: int,
        class_names: tuple[str, ...] = (),
        shape: tuple[int, ...] = (),
    ) -> Dataset:
        """The records asked for; `features` is called with their rows only, as all of them may not fit in memory."""
        chosen = select(labels, classes, class_names, self.classes, self.per_class)
        x = features(chosen.rows)
        return Dataset(name, x, chosen.labels, chosen.classes, chosen.class_names, shape)


@dataclass(frozen=True)
class Source:
    """An entry in the table of data sets."""

    summary: str
    load: Callable[[Request], Dataset]
    parts: tuple[str, ...] = (TRAIN, TEST)
    clustered: bool = False  # whether its classes are clusters, as many as are asked for
