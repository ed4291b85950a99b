"""Methods asked for by name, and said as plain data."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass, replace
from operator import attrgetter
from typing import Any

from epsilometer.bounds.method import Method
from epsilometer.bounds.methods import METHODS
from epsilometer.bounds.named_method import Settings
from epsilometer.evidence import Evidence


def default_method(takes: type[Evidence], seed: int = 0) -> Method:
    """The default for a kind of evidence."""
    return method_named(takes.usual_method, seed=seed)


def method_named(name: str, threshold: float | None = None, seed: int = 0) -> Method:
    """The method of that name; `threshold` is for `fixed` and only for it, `seed` for those that draw.

    >>> method_named("fixed", 0.5)
    ClopperPearson(thresholds=Fixed(threshold=0.5))
    """
    known = METHODS.named(name, where=attrgetter("judges"))
    return known.method(Settings(threshold=threshold, seed=seed))


def mirrored(method: Method) -> Method:
    """The same method for scores whose sign was turned; those by ranks are their own."""
    parts = {name: getattr(method, name) for name in getattr(method, "__dataclass_fields__", {})}
    turned = {name: part.mirrored() for name, part in parts.items() if hasattr(part, "mirrored")}
    return replace(method, **turned) if turned else method  # type: ignore[type-var]


def method_as_dict(method: Method) -> dict[str, Any]:
    """A method with its settings as plain data."""
    settings = asdict(method)  # type: ignore[call-overload]
    for key in settings:
        part = getattr(method, key)
        if is_dataclass(part) and hasattr(part, "name"):  # a strategy
            settings[key] = {"name": part.name, **settings[key]}
    return {"name": method.name, **settings}
