"""Old public names: they work for one release more, with a warning that says the new one."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def moved(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """A module's `__getattr__` for names that are elsewhere now: old name → "new.module" or "new.module:new_name".

    >>> import epsilometer.errors
    >>> find = moved("old.room", {"Wrong": "epsilometer.errors:InvalidInput"})
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     find("Wrong") is epsilometer.errors.InvalidInput
    True
    >>> str(told[0].message)
    'old.room.Wrong is now epsilometer.errors.InvalidInput, and this name will go with the next release'
    """

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        place, _, new = names[name].partition(":")
        found = f"{place}.{new or name}"
        words = f"{module}.{name} is now {found}, and this name will go with the next release"
        warnings.warn(words, DeprecationWarning, stacklevel=2)
        return getattr(importlib.import_module(place), new or name)

    return find


def renamed_attributes(cls: type, names: Mapping[str, str]) -> None:
    """For a class of the user's own that defines an attribute under its old name: it has the new one too."""
    for old, new in names.items():
        if old in vars(cls) and new not in vars(cls):
            words = f"{cls.__name__}.{old} is now {new}, and the old name will go with the next release"
            warnings.warn(words, DeprecationWarning, stacklevel=4)
            setattr(cls, new, vars(cls)[old])


def moved_property(old: str, new: str, read: Callable[[Any], Any]) -> Any:
    """A property under its old name, which reads what the new one has."""

    def get(self: Any) -> Any:
        words = f"{type(self).__name__}.{old} is now {new}, and the old name will go with the next release"
        warnings.warn(words, DeprecationWarning, stacklevel=2)
        return read(self)

    return property(get)
