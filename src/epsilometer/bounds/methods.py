"""Every method of audits, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from epsilometer.bounds.clopper_pearson import ClopperPearson
from epsilometer.bounds.eprocess import EProcess
from epsilometer.bounds.exact_rank import ExactRank
from epsilometer.bounds.method import Method
from epsilometer.bounds.one_run_method import OneRunPoint
from epsilometer.bounds.simultaneous import Simultaneous
from epsilometer.bounds.thresholds import BestOnSame, Fixed, Split, UnionBound
from epsilometer.errors import InvalidInput, unknown_name
from epsilometer.evidence import OneRun

DEFAULT, DEFAULT_ONE_RUN = "exact-rank", "one-run-point"
METHODS = {
    DEFAULT: "planned ranks, calibrated at the least-favourable pair (default)",
    "exact-rank-union": "planned ranks under a union bound: no simulation",
    "eprocess": "betting on one pair of trials after another: valid whenever you stop",
    "simultaneous": "every threshold at once: bands on both distributions",
    "union-bound": "Clopper–Pearson at ranks fixed beforehand, each at its share of α",
    "split": "Clopper–Pearson; threshold chosen on a random half, certified on the other",
    "fixed": "Clopper–Pearson at a threshold chosen without these scores",
    "best-on-same": "best threshold on the same scores: an estimate, not a bound",
    DEFAULT_ONE_RUN: "right guesses in one run against (ε, δ) or a curve, f-DP recursion (default for canaries)",
}
_MAKERS: dict[str, Callable[[int], Method]] = {
    DEFAULT: lambda seed: ExactRank(seed=seed),
    "exact-rank-union": lambda _: ExactRank(calibrated=False),
    "eprocess": lambda seed: EProcess(seed=seed),
    "simultaneous": lambda _: ClopperPearson(Simultaneous()),
    "union-bound": lambda _: ClopperPearson(UnionBound()),
    "split": lambda seed: ClopperPearson(Split(seed=seed)),
    "best-on-same": lambda _: ClopperPearson(BestOnSame()),
    DEFAULT_ONE_RUN: lambda seed: OneRunPoint(seed=seed),
}


def default_method(takes: type, seed: int = 0) -> Method:
    """The default for a kind of evidence."""
    return method_named(DEFAULT_ONE_RUN if takes is OneRun else DEFAULT, seed=seed)


def method_named(name: str, threshold: float | None = None, seed: int = 0) -> Method:
    """The method of that name; `threshold` is for `fixed` and only for it, `seed` for those that draw.

    >>> method_named("fixed", 0.5)
    ClopperPearson(thresholds=Fixed(threshold=0.5))
    """
    if name not in METHODS:
        raise unknown_name("method", name, METHODS)
    if (threshold is not None) != (name == Fixed.name):
        expected = "a number exactly when the method is fixed"
        raise InvalidInput(
            "threshold", threshold, expected, "choose one without looking at the scores, or another method"
        )
    return ClopperPearson(Fixed(threshold)) if threshold is not None else _MAKERS[name](seed)


def method_as_dict(method: Method) -> dict[str, Any]:
    """A method with its settings as plain data."""
    settings = asdict(method)  # type: ignore[call-overload]
    if isinstance(method, ClopperPearson):
        settings = {"thresholds": {"name": method.thresholds.name, **settings["thresholds"]}}
    return {"name": method.name, **settings}
