"""Every method of audits, by name: the one registry. Packages add to it by entry points (`epsilometer.methods`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any

from epsilometer.bounds.clopper_pearson import ClopperPearson
from epsilometer.bounds.eprocess import EProcess
from epsilometer.bounds.exact_rank import ExactRank
from epsilometer.bounds.method import Method
from epsilometer.bounds.one_run_method import OneRunPoint
from epsilometer.bounds.simultaneous import Simultaneous
from epsilometer.bounds.thresholds import BestOnSame, Fixed, Split, UnionBound
from epsilometer.errors import InvalidInput, unknown_name
from epsilometer.evidence import Evidence

GROUP = "epsilometer.methods"  # entry points of packages that bring methods: a function of a seed each


@dataclass(frozen=True)
class Known:
    """A method that audits can be judged by: what it is, what it assumes, and how it is made from a seed."""

    summary: str
    make: Callable[[int], Method] | None  # none for `fixed`, which needs a threshold
    assumes: str = "independent trials"


METHODS: dict[str, Known] = {
    "exact-rank": Known(
        "planned ranks, calibrated at the least-favourable pair (default)", lambda seed: ExactRank(seed=seed)
    ),
    "exact-rank-union": Known(
        "planned ranks under a union bound: no simulation", lambda _: ExactRank(calibrated=False)
    ),
    "eprocess": Known(
        "betting on one pair of trials after another: valid whenever you stop", lambda seed: EProcess(seed=seed)
    ),
    "simultaneous": Known(
        "every threshold at once: bands on both distributions", lambda _: ClopperPearson(Simultaneous())
    ),
    "union-bound": Known(
        "Clopper–Pearson at ranks fixed beforehand, each at its share of α", lambda _: ClopperPearson(UnionBound())
    ),
    "split": Known(
        "Clopper–Pearson; threshold chosen on a random half, certified on the other",
        lambda seed: ClopperPearson(Split(seed=seed)),
    ),
    Fixed.name: Known(
        "Clopper–Pearson at a threshold chosen without these scores", None,
        "independent trials; a threshold chosen without them",
    ),
    "best-on-same": Known(
        "best threshold on the same scores: an estimate, not a bound", lambda _: ClopperPearson(BestOnSame()),
        "nothing is paid for the choice of threshold",
    ),
    OneRunPoint.name: Known(
        "right guesses in one run against (ε, δ) or a curve, f-DP recursion (default for canaries)",
        lambda seed: OneRunPoint(seed=seed), "a fair coin for each canary",
    ),
}  # fmt: skip


def default_method(takes: type[Evidence], seed: int = 0) -> Method:
    """The default for a kind of evidence."""
    return method_named(takes.usual_method, seed=seed)


def method_named(name: str, threshold: float | None = None, seed: int = 0) -> Method:
    """The method of that name; `threshold` is for `fixed` and only for it, `seed` for those that draw.

    >>> method_named("fixed", 0.5)
    ClopperPearson(thresholds=Fixed(threshold=0.5))
    """
    if (threshold is not None) != (name == Fixed.name) and name in METHODS:
        expected = "a number exactly when the method is fixed"
        raise InvalidInput(
            "threshold", threshold, expected, "choose one without looking at the scores, or another method"
        )
    if threshold is not None and name == Fixed.name:
        return ClopperPearson(Fixed(threshold))
    known = METHODS.get(name)
    make = _brought(name) if known is None else known.make
    assert make is not None
    return make(seed)


def _brought(name: str) -> Callable[[int], Method]:
    """How a method of an installed package is made."""
    for entry in metadata.entry_points(group=GROUP, name=name):
        try:
            found: Callable[[int], Method] = entry.load()
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise InvalidInput("method", name, f"a package that can be imported ({entry.value}: {why})") from None
        return found
    raise unknown_name("method", name, [*METHODS, *brought_methods()])


def brought_methods() -> list[str]:
    """The names of methods that installed packages bring."""
    return [entry.name for entry in metadata.entry_points(group=GROUP)]


def method_as_dict(method: Method) -> dict[str, Any]:
    """A method with its settings as plain data."""
    settings = asdict(method)  # type: ignore[call-overload]
    if isinstance(method, ClopperPearson):
        settings = {"thresholds": {"name": method.thresholds.name, **settings["thresholds"]}}
    return {"name": method.name, **settings}
