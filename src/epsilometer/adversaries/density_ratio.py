"""A learned density ratio of two laws of releases, whatever these are: numbers, vectors, choices, or a mixture of them.

Every entry of a release, and a few summaries (sum, largest, its place), has a table: how much oftener its values came
in world 1. Where entries have few values, or are made to have few, so has the whole release
(`cells`). A logistic regression puts these logarithms together. Tables and regression are fitted on different releases.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.adversaries.logistic import fitted_logistic
from epsilometer.arrays import Floats

BINS = 64  # of a column
MOST_ENTRIES, WITH_LAST_BITS = 64, 4  # of a release that are looked at one by one
COMMON, ATOMS = 0.005, 4  # how often a value comes that has a bin of its own, and how many of them may
FEW, COARSE = 16, 6  # values of an entry that count as few; bins of one that has more, for cells
MOST_CELLS = 4096
NOTHING, HIGH, LOW = 1.7e308, 1.6e308, -1.6e308  # stand for NaN and infinities
Table = Mapping[str, NDArray[Any]]
_WEIGHTS = np.random.default_rng(2017).integers(1, 2**63, MOST_ENTRIES, dtype=np.uint64) | np.uint64(1)


def fit_ratio(outs: Floats, ins: Floats) -> dict[str, NDArray[Any]]:
    """What is learned from as many releases of each world, a row each."""
    half = len(outs) // 2
    first, second = np.vstack([outs[:half], ins[:half]]), _alternating(outs[half:], ins[half:])
    worlds = np.repeat([0, 1], half)
    columns = np.hstack([_columns(first), last_bits(_entries(first)[:, :WITH_LAST_BITS])])
    edges = [_edges(column, BINS) for column in columns.T]
    learned: dict[str, NDArray[Any]] = {
        "edges": np.stack([np.r_[e, np.full(BINS - len(e), np.inf)] for e in edges]),
        "ratios": np.stack([_ratios(_binned(e, c), worlds, BINS + 1) for e, c in zip(edges, columns.T, strict=True)]),
        "width": np.array(outs.shape[1]),
        "keys": np.zeros(0, np.uint64),
        "key_ratios": np.zeros(0),
    }
    entries = _entries(first)
    coarse = [_edges(column, COARSE, FEW) for column in entries.T]
    learned["coarse"] = np.stack([np.r_[e, np.full(FEW - len(e), np.inf)] for e in coarse])
    keys, places = np.unique(_keys(entries, learned["coarse"]), return_inverse=True)
    if entries.shape[1] > 1 and len(keys) <= min(MOST_CELLS, max(half // 4, 16)):
        learned["keys"], learned["key_ratios"] = keys, _ratios(places, worlds, len(keys))
    features = _features(second, learned)
    learned["weights"] = fitted_logistic(features, np.arange(len(second)) % 2)[:-1]
    return learned


def ratio_scores(rows: Floats, learned: Table) -> Floats:
    """The learned logarithm of the density ratio, up to a constant: the higher, the more like world 1."""
    scores: Floats = _features(rows, learned) @ learned["weights"]
    return scores


def cell_scores(rows: Floats, learned: Table) -> Floats:
    """By whole releases alone; 0 for those that were not seen while learning."""
    entries = _entries(of_width(rows, int(learned["width"])))
    keys, found = learned["keys"], _keys(entries, learned["coarse"])
    place = np.minimum(np.searchsorted(keys, found), len(keys) - 1)
    scores: Floats = np.where(keys[place] == found, learned["key_ratios"][place], 0.0)
    return scores


def of_width(rows: Floats, width: int) -> Floats:
    """Releases of so many entries: NaN where there are fewer, and no more."""
    missing = np.full((len(rows), max(width - rows.shape[1], 0)), np.nan)
    return np.hstack([rows[:, :width], missing])


def last_bit_scores(rows: Floats, learned: Table) -> Floats:
    """By nothing but how fine a grid the first entries lie on: in a correct mechanism it tells nothing."""
    wide = of_width(rows, int(learned["width"]))
    columns = last_bits(_entries(wide)[:, :WITH_LAST_BITS])
    scores: Floats = np.sum(_looked_up(columns, learned, len(learned["edges"]) - columns.shape[1]), axis=0)
    return scores


def _looked_up(columns: Floats, learned: Table, first: int = 0) -> list[Floats]:
    """The logarithm of the ratio for each column, of which the first is that of the table `first`."""
    tables = zip(learned["edges"][first:], learned["ratios"][first:], columns.T, strict=False)
    return [ratios[_binned(edges[np.isfinite(edges)], column)] for edges, ratios, column in tables]


def _features(rows: Floats, learned: Table) -> Floats:
    by_column = _looked_up(_columns(of_width(rows, int(learned["width"]))), learned)
    whole = [cell_scores(rows, learned)] if len(learned["keys"]) else []
    return np.column_stack([*by_column, *whole])


def _columns(rows: Floats) -> Floats:
    """Entries and summaries, a column each."""
    entries = _entries(rows)
    parts = [entries]
    if rows.shape[1] > 1:
        with np.errstate(over="ignore"):
            total = np.where(np.abs(entries) < LOW * -0.9, entries, 0.0).sum(axis=1)
        parts.append(np.column_stack([total, entries.max(axis=1), entries.argmax(axis=1)]))
    return np.hstack(parts)


def _entries(rows: Floats) -> Floats:
    return np.nan_to_num(rows[:, :MOST_ENTRIES], nan=NOTHING, posinf=HIGH, neginf=LOW)


def last_bits(values: Floats) -> Floats:
    """The power of two of the last bit that is set: how fine the grid is that a number lies on.

    >>> last_bits(np.array([[1.0, 0.75, 2.0**-30, 12.0]])).tolist()
    [[0.0, -2.0, -30.0, 2.0]]
    """
    mantissas, exponents = np.frexp(values)
    whole = np.ldexp(mantissas, 53).astype(np.int64)
    lowest = np.log2(np.maximum(whole & -whole, 1).astype(np.float64))
    return np.where(whole == 0, 0.0, lowest + exponents - 53)


def _edges(column: Floats, bins: int, few: int | None = None) -> Floats:
    """Where bins begin: at every value, if there are few of them, else at those that are common and at quantiles."""
    values, counts = np.unique(column, return_counts=True)
    if len(values) <= (few or bins):
        return values
    common = counts >= COMMON * len(column)
    atoms = values[common][np.argsort(-counts[common], kind="stable")[:ATOMS]]
    rest = column[~np.isin(column, atoms)]
    quantiles = np.linspace(0.0, 1.0, bins - 2 * ATOMS * (few is None) + 1)[1:-1]
    between = np.quantile(rest, quantiles, method="nearest") if len(rest) else rest
    return np.unique(np.concatenate([atoms, np.nextafter(atoms, np.inf), between]))


def _binned(edges: Floats, column: Floats) -> NDArray[np.intp]:
    return np.searchsorted(edges, column, side="right")


def _ratios(places: NDArray[np.intp], worlds: NDArray[np.int64], length: int) -> Floats:
    out, present = (np.bincount(places[worlds == world], minlength=length) for world in (0, 1))
    ratios: Floats = np.log((present + 1.0) / (out + 1.0))
    return ratios


def _keys(entries: Floats, coarse: Floats) -> NDArray[np.uint64]:
    """A number for each combination of bins."""
    keys = np.zeros(len(entries), np.uint64)
    for edges, column, weight in zip(coarse, entries.T, _WEIGHTS, strict=False):
        keys += _binned(edges[np.isfinite(edges)], column).astype(np.uint64) * weight
    return keys


def _alternating(outs: Floats, ins: Floats) -> Floats:
    return np.stack([outs, ins], axis=1).reshape(-1, outs.shape[1])
