"""Every method by name: the one table. Packages add to it by entry points (`epsilometer.methods`)."""

from __future__ import annotations

from epsilometer.bounds.bayesian import bayesian
from epsilometer.bounds.bounds_alone import of_counts, of_one_run, of_one_test, of_the_family
from epsilometer.bounds.clopper_pearson import ClopperPearson
from epsilometer.bounds.eprocess import EProcess
from epsilometer.bounds.exact_rank import ExactRank
from epsilometer.bounds.named_method import INDEPENDENT, NamedMethod, brought_method
from epsilometer.bounds.one_run_method import OneRunPoint
from epsilometer.bounds.ratio import bailey, katz_log
from epsilometer.bounds.result import Kind
from epsilometer.bounds.simultaneous import Simultaneous
from epsilometer.bounds.thresholds import BestOnSame, Fixed, Split, UnionBound
from epsilometer.evidence import Counts, OneRun, PairedRuns
from epsilometer.registry import Registry

_SCORES, _TEST, _CANARIES = (PairedRuns,), (PairedRuns, Counts), (OneRun,)
_COINS = "a fair coin for each canary"
_OWN = (
    NamedMethod(
        "exact-rank", "planned ranks, calibrated at the least-favourable pair (default)", _SCORES, Kind.CERTIFIED,
        make=lambda settings: ExactRank(seed=settings.seed),
    ),
    NamedMethod(
        "exact-rank-union", "planned ranks under a union bound: no simulation", _SCORES, Kind.CERTIFIED,
        make=lambda _: ExactRank(calibrated=False),
    ),
    NamedMethod(
        "eprocess", "betting on one pair of trials after another: valid whenever you stop", _SCORES, Kind.CERTIFIED,
        make=lambda settings: EProcess(seed=settings.seed, in_order=settings.in_order),
    ),
    NamedMethod(
        "simultaneous", "every threshold at once: bands on both distributions", _SCORES, Kind.CERTIFIED,
        make=lambda _: ClopperPearson(Simultaneous()),
    ),
    NamedMethod(
        "union-bound", "Clopper–Pearson at ranks fixed beforehand, each at its share of α", _SCORES, Kind.CERTIFIED,
        make=lambda _: ClopperPearson(UnionBound()),
    ),
    NamedMethod(
        "split", "Clopper–Pearson; threshold chosen on a random half, certified on the other", _SCORES, Kind.CERTIFIED,
        make=lambda settings: ClopperPearson(Split(seed=settings.seed)),
    ),
    NamedMethod(
        Fixed.name, "Clopper–Pearson at a threshold chosen without these scores", _SCORES, Kind.CERTIFIED,
        f"{INDEPENDENT}; a threshold chosen without them",
        make=lambda settings: ClopperPearson(Fixed(settings.threshold)),  # type: ignore[arg-type]
        takes_threshold=True, needs_threshold=True,
    ),
    NamedMethod(
        "best-on-same", "best threshold on the same scores: an estimate, not a bound", _SCORES, Kind.ESTIMATE,
        "nothing is paid for the choice of threshold", make=lambda _: ClopperPearson(BestOnSame()),
    ),
    NamedMethod(
        "clopper-pearson", "limits on both rates of one test, α/2 each", (Counts,), Kind.CERTIFIED,
        f"{INDEPENDENT}; a test chosen beforehand", compute=of_counts,
    ),
    NamedMethod(
        "gaussian", "the least strength that exact ranks leave to a Gaussian mechanism", _TEST, Kind.FAMILY,
        f"{INDEPENDENT}; Gaussian DP", compute=of_the_family,
    ),
    NamedMethod(
        "bayesian", "credible interval, Jeffreys' prior on both rates", _TEST, Kind.CREDIBLE,
        f"{INDEPENDENT}; a prior", compute=of_one_test(bayesian), takes_threshold=True,
    ),
    NamedMethod(
        "katz-log", "normal limit on the log of a ratio of rates", _TEST, Kind.ESTIMATE,
        f"{INDEPENDENT}; many; δ = 0", compute=of_one_test(katz_log), takes_threshold=True,
    ),
    NamedMethod(
        "bailey", "normal limit on the cube root of a ratio", _TEST, Kind.ESTIMATE,
        f"{INDEPENDENT}; many; δ = 0", compute=of_one_test(bailey), takes_threshold=True,
    ),
    NamedMethod(
        OneRunPoint.name, "right guesses in one run against (ε, δ) or a curve, f-DP recursion (default for canaries)",
        _CANARIES, Kind.CERTIFIED, _COINS,
        make=lambda settings: OneRunPoint(settings.guesses, settings.seed),  # type: ignore[arg-type]
        compute=of_one_run("point"), takes_guesses=True,
    ),
    NamedMethod(
        "one-run", "right guesses in one run, Theorem 5.2 of Steinke et al.", _CANARIES, Kind.CERTIFIED, _COINS,
        compute=of_one_run(None), takes_guesses=True,
    ),
    NamedMethod(
        "one-run-gaussian", "right guesses in one run against Gaussian DP, f-DP recursion", _CANARIES, Kind.FAMILY,
        f"{_COINS}; Gaussian DP", compute=of_one_run("gaussian"), takes_guesses=True,
    ),
)  # fmt: skip

# Those for single steps need an accountant: `auditing` registers them here.
METHODS: Registry[NamedMethod] = Registry(
    "methods",
    {one.name: one for one in _OWN},
    argument="method",
    expected="a function of a seed that gives a Method, or a NamedMethod whose name is {name!r}",
    accept=brought_method,
)
