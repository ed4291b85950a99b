"""Checks of arguments, shared by every room: each returns the value or raises `InvalidInput`."""

from __future__ import annotations

import math
import numbers

from epsilometer.errors import InvalidInput


def real(
    argument: str,
    value: object,
    *,
    above: float = -math.inf,
    below: float = math.inf,
    closed: str = "",
    remedy: str = "",
) -> float:
    """A number between `above` and `below`; `closed` holds "[" and/or "]" for ends that belong to it.

    >>> real("delta", 1e-5, above=0, below=1, closed="[")
    1e-05
    """
    left, right = "[" in closed, "]" in closed
    try:
        number = float(value) if isinstance(value, numbers.Real) and not _is_bool(value) else math.nan
    except OverflowError:
        number = math.nan
    low_ok = number >= above if left else number > above
    high_ok = number <= below if right else number < below
    if low_ok and high_ok:
        return number
    expected = f"a number in {'[' if left else '('}{above:g}, {below:g}{']' if right else ')'}"
    raise InvalidInput(argument, value, expected, remedy)


def instance(argument: str, value: object, kind: type, expected: str, remedy: str = "") -> None:
    """An object of that class."""
    if not isinstance(value, kind):
        raise InvalidInput(argument, value, expected, remedy)


def written(argument: str, text: str) -> float:
    """A number as text; one too large or too small for a float is refused rather than taken for infinity or 0.

    >>> written("epsilon", "inf")
    inf
    >>> written("epsilon", "1e400")
    Traceback (most recent call last):
    ...
    epsilometer.errors.InvalidInput: epsilon = '1e400': expected a number of at most 1.8e308; write inf for infinity
    """
    number = float(text)
    if math.isinf(number) and "inf" not in text.lower():
        raise InvalidInput(argument, text, "a number of at most 1.8e308", "write inf for infinity")
    if number == 0 and any(digit in text.lower().partition("e")[0] for digit in "123456789"):
        raise InvalidInput(argument, text, "0, or a number of at least 5e-324", "write 0 for none")
    return number


def whole(argument: str, value: object, *, least: int, most: int | None = None, remedy: str = "") -> int:
    """A whole number that is at least `least`, and at most `most`."""
    if isinstance(value, numbers.Integral) and not _is_bool(value) and int(value) >= least:  # noqa: SIM102
        if most is None or int(value) <= most:
            return int(value)
    expected = f"a whole number ≥ {least}" if most is None else f"a whole number from {least} to {most:,}"
    raise InvalidInput(argument, value, expected, remedy)


def _is_bool(value: object) -> bool:
    """True and False are whole numbers to Python, but not to us."""
    return isinstance(value, bool)


def delta(value: object) -> float:
    return real("delta", value, above=0, below=1, closed="[", remedy="a common choice is 1e-5")


def epsilon(value: object) -> float:
    return real("epsilon", value, above=0, closed="[]")


def group_size(value: object, argument: str = "group_size") -> int:
    """In how many records worlds differ."""
    return whole(argument, value, least=1, most=1000, remedy="1 means that one record differs")


def seed(argument: str, value: object) -> int:
    """Of any generator; as large as TOML's whole numbers may be."""
    return whole(argument, value, least=0, most=2**63 - 1)


def confidence(value: object) -> float:
    return real("confidence", value, above=0, below=1, remedy="0.95 means one false alarm in 20")
