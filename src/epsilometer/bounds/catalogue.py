"""Bounds by name, from evidence alone: one, or all that take it."""

from __future__ import annotations

from dataclasses import replace

from epsilometer.bounds.methods import METHODS
from epsilometer.bounds.named_method import NamedMethod, Settings
from epsilometer.bounds.result import LowerBound
from epsilometer.deprecated import moved
from epsilometer.errors import EpsilometerError, EvidenceMismatch
from epsilometer.evidence import Counts, OneRun, PairedRuns

__getattr__ = moved(__name__, {"BOUNDS": "epsilometer.bounds:METHODS"})

Evidence = PairedRuns | Counts | OneRun
__all__ = ["Evidence", "Settings", "bound_named", "compare_bounds"]


def bound_named(name: str | None, evidence: Evidence, settings: Settings) -> LowerBound:
    """The bound of that name, or the default for the kind of evidence.

    >>> bound_named("clopper-pearson", Counts(10, 0, 0, 10), Settings()).kind.value
    'certified'
    """

    def able(one: NamedMethod) -> bool:
        return not one.needs_mechanism or settings.mechanism is not None

    chosen = evidence.usual_method if name is None else name
    known = METHODS.named(chosen, where=able)
    if not known.takes(evidence):
        possible = ", ".join(name for name, one in METHODS.items() if able(one) and one.takes(evidence))
        raise EvidenceMismatch(f"{chosen} does not take {type(evidence).__name__}; these do: {possible}")
    return known.bound(evidence, settings)


def compare_bounds(evidence: Evidence, settings: Settings) -> dict[str, LowerBound | str]:
    """Every bound of our own that takes this evidence, or a text that says why one does not apply. Each holds only by
    itself."""
    found: dict[str, LowerBound | str] = {}
    errors: list[EpsilometerError] = []
    for name, one in METHODS.own.items():
        if not one.takes(evidence) or (one.needs_threshold and settings.threshold is None):
            continue
        try:
            found[name] = one.bound(evidence, settings if one.takes_threshold else replace(settings, threshold=None))
        except EpsilometerError as error:
            errors.append(error)
            found[name] = str(error)
    if len(errors) == len(found):  # then it is not the bounds that are wrong
        raise errors[0]
    return found
