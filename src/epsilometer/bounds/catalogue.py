"""Every bound by name: what it is, what it assumes, what evidence it takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from epsilometer.bounds.bayesian import bayesian
from epsilometer.bounds.clopper_pearson import clopper_pearson
from epsilometer.bounds.eprocess import EProcess
from epsilometer.bounds.exact_rank import ExactRank
from epsilometer.bounds.gaussian import gaussian_bound
from epsilometer.bounds.methods import METHODS, brought_methods, method_named
from epsilometer.bounds.one_run import Plan as GuessPlan
from epsilometer.bounds.one_run import one_run
from epsilometer.bounds.one_run_fdp import one_run_fdp
from epsilometer.bounds.one_run_method import OneRunPoint
from epsilometer.bounds.ratio import bailey, katz_log
from epsilometer.bounds.result import LowerBound
from epsilometer.bounds.thresholds import Fixed, Split, ThresholdStrategy
from epsilometer.errors import EpsilometerError, EvidenceMismatch, InvalidInput, unknown_name
from epsilometer.evidence import Counts, OneRun, PairedRuns

Evidence = PairedRuns | Counts | OneRun


@dataclass(frozen=True)
class Settings:
    """What a bound may need to know besides the evidence."""

    delta: float = 0.0
    confidence: float = 0.95
    direction: str = "higher"
    threshold: float | None = None
    guesses: GuessPlan = None
    seed: int = 0
    in_order: bool = False  # the trials are as they came: an e-process need not shuffle them


@dataclass(frozen=True)
class Entry:
    """One bound."""

    summary: str
    assumes: str
    evidence_type: tuple[type, ...]
    compute: Callable[[Evidence, Settings], LowerBound]


INDEPENDENT = "independent trials"


def _of_scores(name: str) -> Entry:
    def compute(evidence: Evidence, settings: Settings) -> LowerBound:
        assert isinstance(evidence, PairedRuns)
        method = method_named(name, settings.threshold, settings.seed)
        if isinstance(method, EProcess):
            method = replace(method, in_order=settings.in_order)
        return method.bound(
            evidence, delta=settings.delta, confidence=settings.confidence, direction=settings.direction
        )

    return Entry(METHODS[name].summary, METHODS[name].assumes, (PairedRuns,), compute)


def _of_one_test(function: Callable[..., LowerBound], summary: str, assumes: str) -> Entry:
    def compute(evidence: Evidence, settings: Settings) -> LowerBound:
        _refuse_direction(settings)
        chosen: ThresholdStrategy | None = None
        if isinstance(evidence, PairedRuns):
            chosen = Split(seed=settings.seed) if settings.threshold is None else Fixed(settings.threshold)
        return function(evidence, delta=settings.delta, confidence=settings.confidence, thresholds=chosen)

    return Entry(summary, assumes, (PairedRuns, Counts), compute)


def _of_counts(evidence: Evidence, settings: Settings) -> LowerBound:
    assert isinstance(evidence, Counts)
    return clopper_pearson(evidence, delta=settings.delta, confidence=settings.confidence)


def _of_one_run(family: str | None) -> Callable[[Evidence, Settings], LowerBound]:
    def compute(evidence: Evidence, settings: Settings) -> LowerBound:
        assert isinstance(evidence, OneRun)
        if settings.direction == "either":
            raise InvalidInput("direction", "either", "higher or lower with one run", "say which scores mean member")
        if settings.direction == "lower":
            evidence = replace(evidence, scores=-evidence.scores)
        shared = {
            "delta": settings.delta,
            "confidence": settings.confidence,
            "guesses": settings.guesses,
        }
        return one_run(evidence, **shared) if family is None else one_run_fdp(evidence, family=family, **shared)  # type: ignore[arg-type]

    return compute


def _of_the_family(evidence: Evidence, settings: Settings) -> LowerBound:
    assert not isinstance(evidence, OneRun)
    return gaussian_bound(
        evidence,
        delta=settings.delta,
        confidence=settings.confidence,
        direction=settings.direction,
        method=ExactRank(seed=settings.seed) if isinstance(evidence, PairedRuns) else None,
    )


def _refuse_direction(settings: Settings) -> None:
    if settings.direction != "higher":
        raise InvalidInput("direction", settings.direction, "higher with this bound", "turn the scores' sign")


COINS = "a fair coin for each canary"
BOUNDS: dict[str, Entry] = {
    **{name: _of_scores(name) for name in METHODS if name != OneRunPoint.name},
    "clopper-pearson": Entry(
        "limits on both rates of one test, α/2 each", f"{INDEPENDENT}; a test chosen beforehand", (Counts,), _of_counts
    ),
    "gaussian": Entry(
        "the least strength that exact ranks leave to a Gaussian mechanism", f"{INDEPENDENT}; Gaussian DP",
        (PairedRuns, Counts), _of_the_family,
    ),
    "bayesian": _of_one_test(bayesian, "credible interval, Jeffreys' prior on both rates", f"{INDEPENDENT}; a prior"),
    "katz-log": _of_one_test(katz_log, "normal limit on the log of a ratio of rates", f"{INDEPENDENT}; many; δ = 0"),
    "bailey": _of_one_test(bailey, "normal limit on the cube root of a ratio", f"{INDEPENDENT}; many; δ = 0"),
    OneRunPoint.name: Entry(METHODS[OneRunPoint.name].summary, COINS, (OneRun,), _of_one_run("point")),
    "one-run": Entry("right guesses in one run, Theorem 5.2 of Steinke et al.", COINS, (OneRun,), _of_one_run(None)),
    "one-run-gaussian": Entry(
        "right guesses in one run against Gaussian DP, f-DP recursion", f"{COINS}; Gaussian DP", (OneRun,),
        _of_one_run("gaussian"),
    ),
}  # fmt: skip


def bound_named(name: str | None, evidence: Evidence, settings: Settings) -> LowerBound:
    """The bound of that name, or the default for the kind of evidence.

    >>> bound_named("clopper-pearson", Counts(10, 0, 0, 10), Settings()).kind.value
    'certified'
    """
    chosen = evidence.usual_method if name is None else name
    if chosen not in BOUNDS:
        return _brought(chosen, evidence, settings)
    if not isinstance(evidence, BOUNDS[chosen].evidence_type):
        possible = ", ".join(name for name, entry in BOUNDS.items() if isinstance(evidence, entry.evidence_type))
        raise EvidenceMismatch(f"{chosen} does not take {type(evidence).__name__}; these do: {possible}")
    return BOUNDS[chosen].compute(evidence, settings)


def _brought(name: str, evidence: Evidence, settings: Settings) -> LowerBound:
    """The bound of a method that an installed package brings."""
    if name not in brought_methods():
        raise unknown_name("method", name, [*BOUNDS, *brought_methods()])
    method = method_named(name, seed=settings.seed)
    if not isinstance(evidence, method.evidence_type):
        raise EvidenceMismatch(f"{name} takes {method.evidence_type.__name__}, not {type(evidence).__name__}")
    return method.bound(evidence, delta=settings.delta, confidence=settings.confidence, direction=settings.direction)


def compare_bounds(evidence: Evidence, settings: Settings) -> dict[str, LowerBound | str]:
    """Every bound that takes this evidence, or a text that says why one does not apply. Each holds only by itself."""
    found: dict[str, LowerBound | str] = {}
    errors: list[EpsilometerError] = []
    for name, entry in BOUNDS.items():
        if not isinstance(evidence, entry.evidence_type) or (name == Fixed.name and settings.threshold is None):
            continue
        keeps = name in (Fixed.name, "bayesian", "katz-log", "bailey")
        try:
            found[name] = entry.compute(evidence, settings if keeps else replace(settings, threshold=None))
        except EpsilometerError as error:
            errors.append(error)
            found[name] = str(error)
    if len(errors) == len(found):  # then it is not the bounds that are wrong
        raise errors[0]
    return found
