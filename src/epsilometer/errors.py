"""What can go wrong, in words that help: argument, value, what was expected, remedy."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable

from epsilometer.deprecated import moved

__getattr__ = moved(__name__, {"RelationMismatch": "epsilometer.errors:NeighboursMismatch"})

# What code raises that takes data from outside for its own: other types, missing keys, numbers beyond all range, lists
# in lists without end. Whoever reads such data catches these, and says whose data they are.
MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, StopIteration, TypeError, ValueError)


class EpsilometerError(Exception):
    """Base of every error that Epsilometer raises on purpose."""


class InconclusiveAudit(UserWarning):
    """A test in which an audit was too weak to say anything: it has passed, and shown nothing."""


class InvalidInput(EpsilometerError, ValueError):
    """An argument has a value that cannot be used.

    >>> raise InvalidInput("delta", 1.5, "a number in [0, 1)", "a common choice is 1e-5")
    Traceback (most recent call last):
    ...
    epsilometer.errors.InvalidInput: delta = 1.5: expected a number in [0, 1); a common choice is 1e-5
    """

    def __init__(self, argument: str, value: object, expected: str, remedy: str = "") -> None:
        self.argument, self.value, self.expected, self.remedy = argument, value, expected, remedy
        what = "is missing" if value is None else f"= {one_line(_shown(value))}"
        text = f"{one_line(argument)} {what}: expected {expected}"
        super().__init__(f"{text}; {remedy}" if remedy else text)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """Errors travel between processes."""
        return type(self), (self.argument, self.value, self.expected, self.remedy)

    def renamed(self, argument: str) -> InvalidInput:
        """The same error about an argument that the user knows by another name."""
        return InvalidInput(argument, self.value, self.expected, self.remedy)


class EvidenceMismatch(EpsilometerError, TypeError):
    """A bound was given evidence for which it is not valid."""


class NeighboursMismatch(EpsilometerError, ValueError):
    """Two statements about different neighbours, in relation or unit, were about to be compared."""

    def __init__(self, first: str, first_said: str, second: str, second_said: str, differ_in: str = "relation") -> None:
        self._parts = (first, first_said, second, second_said, differ_in)
        if differ_in == "unit":
            text = (
                f"{first} speaks of one {first_said}, {second} of one {second_said}: "
                f"epsilons of different units cannot be compared; state both for one unit"
            )
        else:
            text = (
                f"{first} speaks of the {first_said} relation, {second} of {second_said}: "
                f"epsilons of different relations cannot be compared; state both under one relation"
            )
        super().__init__(text)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), self._parts


def unknown_name(argument: str, value: object, valid: Iterable[str]) -> InvalidInput:
    """The error for a name that is not one of `valid`, with the nearest valid name suggested."""
    names = sorted(valid, key=_by_value)
    given = str(value).lower()
    near = difflib.get_close_matches(given, names, n=1, cutoff=0.5)
    near = near or [name for name in names if given and name.startswith(given)]
    remedy = f"did you mean {near[0]!r}?" if near else ""
    return InvalidInput(argument, value, "one of " + ", ".join(names), remedy)


def _by_value(name: str) -> tuple[float, str]:
    """Numbers before words, and 2 before 16."""
    try:
        value = float(name)
    except ValueError:
        value = math.nan
    return (math.inf, f"~{name}") if math.isnan(value) else (value, name)  # words after the number inf


def _shown(value: object) -> str:
    try:
        return repr(value)
    except ValueError:  # Python writes no number of more than some 4300 digits
        return "a number of thousands of digits"


def one_line(text: str, limit: int = 100) -> str:
    """Short enough for an error message, and without line breaks."""
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"
