"""What a trial may give: one finite number, or one for each canary. Nothing else is stored, read or judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.errors import InvalidInput

_OF_A_TRIAL = "correct whatever gave it, and run the same again: finished trials are kept"
OF_A_STORE = "no trial gives that: move the store away, and start again"


def require_scores(
    results: Mapping[tuple[int, int], Any], adversary: str, length: int | None, remedy: str = _OF_A_TRIAL
) -> dict[tuple[int, int], Floats]:
    """The same results as arrays, if each has `length` finite numbers; where nobody says the length, all have the same.

    A trial with fifty scores would count as fifty trials, and show what nobody has seen.
    """
    if (rows := _as_rows(list(results.values()), length)) is not None:
        return dict(zip(results, rows, strict=True))
    found = {}
    for trial, given in results.items():
        found[trial] = _require(trial, given, adversary, length, remedy)
        length = len(found[trial])
    return found


def _as_rows(values: list[Any], length: int | None) -> list[Floats] | None:
    """The same for all at once, which is ten times as fast; none if one has to be looked at more closely."""
    kinds = set(map(type, values))
    if kinds == {float}:
        table = np.array(values)[:, None]
    elif kinds == {np.ndarray} and len({(one.dtype, one.shape) for one in values}) == 1 and values[0].ndim == 1:
        table = np.concatenate(values).reshape(len(values), -1)
    else:
        return None
    fits = table.dtype == np.float64 and table.shape[1] and length in (None, table.shape[1])
    return list(table) if fits and np.isfinite(table).all() else None


def _require(trial: tuple[int, int], given: Any, adversary: str, length: int | None, remedy: str) -> Floats:
    scores = _as_floats(given)
    came: object = None
    if scores is None:
        came = _told(given)
    elif scores.ndim != 1 or not len(scores) or length not in (None, len(scores)):
        came = f"array of shape {scores.shape}"
    elif not np.isfinite(scores).all():
        came = float(scores[~np.isfinite(scores)][0])
    else:
        return scores
    world, index = trial
    numbers = "finite numbers" if length is None else f"{length} finite numbers"
    expected = "one finite number" if length == 1 else f"{numbers}, one for each canary"
    raise InvalidInput(f"score of {adversary} in trial {index} of world {world}", came, expected, remedy)


def _as_floats(given: Any) -> Floats | None:
    """Numbers in double precision; none for what holds no numbers: text, truth values, objects, ragged lists."""
    try:
        values = np.atleast_1d(np.asarray(given))
    except (TypeError, ValueError, RuntimeError):
        return None
    return values.astype(np.float64) if values.dtype.kind in "iuf" else None


def _told(given: Any) -> object:
    """In plain types: errors travel between processes."""
    if given is None or isinstance(given, str | bool):
        return given
    shape = getattr(given, "shape", ())
    return f"array of {given.dtype}" if shape else f"{type(given).__name__} {given!r}"
