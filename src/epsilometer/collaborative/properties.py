"""Properties that records have or have not: named ones of data sets that we know, or a feature's being large."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from epsilometer import validate
from epsilometer.data import Dataset
from epsilometer.data.adult import CATEGORIES
from epsilometer.errors import InvalidInput, unknown_name

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Marked:
    """Records, and which of them have a property; what says so itself is no feature any more."""

    data: Dataset
    has: Flags
    name: str  # of the property, in words

    def __post_init__(self) -> None:
        flags = np.asarray(self.has)
        if flags.shape != (len(self.data),) or flags.dtype != np.bool_:
            given = f"{flags.dtype} of shape {flags.shape}"
            raise InvalidInput("has", given, f"true or false for each of {len(self.data)} records")


@dataclass(frozen=True)
class NamedProperty:
    """A property that can be asked for by name; `of` is the data set that has it, empty for any."""

    summary: str
    mark: Callable[[Dataset], Marked]
    of: str = ""


def _more_than_its_class(data: Dataset) -> Marked:
    """Nothing is taken out: it is a sum of all features. By class, so that it has nothing to do with the label."""
    size = data.x.mean(axis=1, dtype=np.float64)
    middles = np.array([np.median(size[data.y == label]) for label in range(data.classes)])
    return Marked(data, size > middles[data.y], "more ink than half of its class")


def _category(category: str, columns: tuple[int, ...], words: str) -> Callable[[Dataset], Marked]:
    def mark(data: Dataset) -> Marked:
        features = max(one.stop for one in CATEGORIES.values())
        if data.x.shape[1] != features:
            expected = f"the official one, not {data.x.shape[1]} features"
            raise InvalidInput("data file", "adult.data", expected, "get it again")
        has = data.x[:, CATEGORIES[category]][:, columns].sum(axis=1) > 0
        return Marked(replace(data, x=np.delete(data.x, CATEGORIES[category], axis=1)), has, words)

    return mark


PROPERTIES = {
    "ink": NamedProperty("the sum of all features is above the median of the record's class", _more_than_its_class),
    "sex": NamedProperty("women, of Adult; the columns of sex are taken out", _category("sex", (0,), "women"), "adult"),
    "race": NamedProperty(
        "people who are not white, of Adult; the columns of race are taken out",
        _category("race", (0, 1, 2, 3), "people who are not white"),
        "adult",
    ),
}


def property_named(name: str, data: Dataset) -> Marked:
    """The data with the property of that name."""
    if name not in PROPERTIES:
        raise unknown_name("property.name", name, PROPERTIES)
    found = PROPERTIES[name]
    if found.of not in ("", data.name):
        fits = ", ".join(one for one, known in PROPERTIES.items() if known.of in ("", data.name))
        raise InvalidInput("property.name", name, f"a property of {data.name}: {fits}", "or the number of a feature")
    return found.mark(data)


def property_of_feature(feature: int, data: Dataset, threshold: float | None = None) -> Marked:
    """That a feature is above a threshold, which is its median if nobody says; the feature itself is taken out."""
    remedy = f"{data.name} has features 0 to {data.x.shape[1] - 1}"
    validate.whole("property.feature", feature, least=0, most=data.x.shape[1] - 1, remedy=remedy)
    if data.x.shape[1] < 2:
        raise InvalidInput("data", "one feature", "another one to learn from")
    column = data.x[:, feature].astype(np.float64)
    above = float(np.median(column)) if threshold is None else validate.real("property.threshold", threshold)
    rest = replace(data, x=np.delete(data.x, feature, axis=1), shape=(), held_out=None)
    return Marked(rest, column > above, f"feature {feature} > {above:.4g}")
