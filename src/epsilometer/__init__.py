"""Epsilometer measures how private a machine-learning training really is.

What a first script needs is here; the rest is in namespaces: `epsilometer.adversaries`, `.bounds`, `.subjects`, …
"""

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

# Names and the rooms they live in. Rooms load on first use, so that `epsilometer --help` is quick.
_HOMES = {
    "account": "accounting",
    "audit": "auditing",
    "claim_curve": "auditing",
    "DpSgd": "accounting",
    "DpSgdTraining": "subjects",
    "EpsilometerError": "errors",
    "exact_rank": "bounds",
    "noise_for": "auditing",
    "PairedRuns": "evidence",
    "Plan": "auditing",
    "PointClaim": "claims",
    "Recipe": "training",
    "run": "auditing",
    "summary": "report",
    "watch_step": "watching.by_line",
}
_ROOMS = (
    "accounting", "adversaries", "auditing", "bounds", "claims", "collaborative", "data", "errors", "evidence",
    "instances", "jax", "mechanisms", "membership", "opacus", "reconstruction", "report", "subjects", "testing",
    "training",
)  # fmt: skip
__all__ = ["__version__", *sorted(_HOMES), *_ROOMS]  # noqa: PLE0604

if TYPE_CHECKING:  # the same names once more, for type checkers: a test compares
    from epsilometer import (
        accounting,
        adversaries,
        auditing,
        bounds,
        claims,
        collaborative,
        data,
        errors,
        evidence,
        instances,
        jax,
        mechanisms,
        membership,
        opacus,
        reconstruction,
        report,
        subjects,
        testing,
        training,
    )
    from epsilometer.accounting import DpSgd, account
    from epsilometer.auditing import Plan, audit, claim_curve, noise_for, run
    from epsilometer.bounds.exact_rank import exact_rank
    from epsilometer.claims import PointClaim
    from epsilometer.errors import EpsilometerError
    from epsilometer.evidence import PairedRuns
    from epsilometer.report import summary
    from epsilometer.subjects import DpSgdTraining
    from epsilometer.training import Recipe
    from epsilometer.watching.by_line import watch_step


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(importlib.import_module(f"epsilometer.{_HOMES[name]}"), name)
    if name in _ROOMS:
        return importlib.import_module(f"epsilometer.{name}")
    raise AttributeError(f"module 'epsilometer' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
