"""Pairs of neighbouring values worth a try: one entry moves, all do, some against others, at random, corners."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.errors import InvalidInput
from epsilometer.mechanisms import Domain, Mechanism, Sensitivity
from epsilometer.subjects.releases import as_written

GAPS = (0.0, 2.0, 4.0, 7.0, 9.0, 12.0)  # between entries, in Δ/ε: what is rare tells most of choices
RANDOM = 3
Pair = tuple[Any, Any]


def candidates(mechanism: Mechanism, entries: int, epsilon: float, rng: np.random.Generator) -> list[Pair]:
    """Values that differ by the sensitivity; `epsilon` says how far apart entries have to be to matter."""
    stated = mechanism.sensitivity
    if not mechanism.has_sensitivity:
        remedy = "give two neighbours, or a sensitivity and a norm in which to look for them"
        raise InvalidInput("neighbours", None, "what one record can change", remedy)
    entries = mechanism.domain.entries or entries
    if stated.norm == "records":
        found = _replaced(mechanism.domain, entries, rng)
    else:
        moves = list(_moves(stated, entries, rng))
        found = ((base, base + move) for base in _bases(stated.amount / epsilon, entries, rng) for move in moves)
    distinct: dict[tuple[float, ...], Pair] = {}
    for one, other in found:
        distinct.setdefault((*one.tolist(), *other.tolist()), (as_written(one), as_written(other)))
    return list(distinct.values())


def _bases(unit: float, entries: int, rng: np.random.Generator) -> Iterator[Floats]:
    yield np.zeros(entries)
    for gap in GAPS[1:] if entries > 1 else ():
        first = np.zeros(entries)
        first[0] = -gap * unit
        yield first
    for level in (-2.0, 2.0) if entries > 1 else ():  # around a threshold
        yield np.full(entries, level * unit)
    if entries > 1:
        yield rng.normal(0.0, unit, entries)


def _moves(stated: Sensitivity, entries: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Of the length of the sensitivity."""
    alone = np.zeros(entries)
    alone[0] = 1.0
    shapes = [alone]
    if entries > 1:
        last, against, halves = alone[::-1], 2.0 * alone - 1.0, np.where(np.arange(entries) < entries // 2, 1.0, -1.0)
        shapes += [last, np.ones(entries), against, against[::-1], halves]
        shapes += [rng.choice([-1.0, 1.0], entries) for _ in range(RANDOM)]
    norm = {"l1": 1, "l2": 2, "linf": np.inf}[stated.norm]
    for shape in shapes:
        yield shape * stated.amount / np.linalg.norm(shape, norm)


def _replaced(domain: Domain, entries: int, rng: np.random.Generator) -> Iterator[tuple[Floats, Floats]]:
    """Corners, mixtures of corners and random values, of which one entry becomes another."""
    low, high = (end if np.isfinite(end) else side for end, side in ((domain.low, 0.0), (domain.high, 1.0)))

    def drawn() -> Floats:
        values = rng.uniform(low, high, entries)
        return np.rint(values) if domain.whole else values

    mixed = np.where(np.arange(entries) % 2 == 0, low, high)
    for base in (np.full(entries, low), np.full(entries, high), mixed, *(drawn() for _ in range(RANDOM))):
        for place in {0, entries - 1}:
            for value in (low, high, drawn()[0]):
                other = base.copy()
                other[place] = value
                if value != base[place]:
                    yield base, other
