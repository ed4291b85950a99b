"""Epsilometer measures how private a machine-learning training really is."""

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

# Public names and the rooms they live in. Rooms load on first use, so that `epsilometer --help` is quick.
_HOMES = {
    "epsilometer.accounting": ("DpSgd", "UpperBound", "account", "calibrate", "compare", "curve"),
    "epsilometer.adversaries": (
        "AdaptivePoison",
        "Api",
        "Backdoor",
        "Canaries",
        "ClipBkd",
        "Gradient",
        "GradientSteps",
        "HiddenState",
        "Intermediate",
        "MaliciousDataset",
        "MembershipAttack",
        "StaticPoison",
        "WorstCaseInit",
    ),
    "epsilometer.audit": (
        "AuditResult",
        "Inline",
        "Local",
        "OnRay",
        "Outcome",
        "Plan",
        "Verdict",
        "choose_adversary",
        "claim_curve",
        "noise_for",
        "preview",
        "run",
        "run_directory",
    ),
    "epsilometer.bounds": (
        "BestOnSame",
        "ClaimTest",
        "ClopperPearson",
        "Cosines",
        "EProcess",
        "ExactRank",
        "Fixed",
        "LowerBound",
        "OneRunPoint",
        "Simultaneous",
        "Split",
        "Threshold",
        "UnionBound",
        "bailey",
        "bayesian",
        "clopper_pearson",
        "compare_bounds",
        "cosine_canaries",
        "eprocess",
        "eps_opt",
        "exact_rank",
        "gaussian_bound",
        "gaussian_strength_limit",
        "katz_log",
        "largest_noise_multiplier",
        "one_run",
        "one_run_fdp",
        "pool_runs",
        "refutation_power",
        "refute_curve",
        "refute_one_run",
        "refute_step",
        "trials_to_refute",
    ),
    "epsilometer.claims": ("Claim", "CurveClaim", "GaussianClaim", "PointClaim", "Relation"),
    "epsilometer.data": ("Dataset", "digits", "load"),
    "epsilometer.errors": ("EpsilometerError", "EvidenceMismatch", "InvalidInput", "RelationMismatch"),
    "epsilometer.evidence": ("Counts", "Membership", "OneRun", "PairedRuns", "PerStep"),
    "epsilometer.mechanisms": ("PrivateRidge", "audit_ridge"),
    "epsilometer.report": ("summary", "to_json"),
    "epsilometer.subjects": ("Access", "DpSgdTraining", "Faults", "Insertion", "Observer", "Subject"),
    "epsilometer.training": ("Poisoner", "Recipe", "Watcher", "train", "train_many"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}
__all__ = ["__version__", *sorted(_HOME)]  # noqa: PLE0604

if TYPE_CHECKING:
    from epsilometer.accounting import DpSgd, UpperBound, account, calibrate, compare, curve
    from epsilometer.adversaries import (
        AdaptivePoison,
        Api,
        Backdoor,
        Canaries,
        ClipBkd,
        Gradient,
        GradientSteps,
        HiddenState,
        Intermediate,
        MaliciousDataset,
        MembershipAttack,
        StaticPoison,
        WorstCaseInit,
    )
    from epsilometer.audit import (
        AuditResult,
        Inline,
        Local,
        OnRay,
        Outcome,
        Plan,
        Verdict,
        choose_adversary,
        claim_curve,
        noise_for,
        run,
        run_directory,
    )
    from epsilometer.audit.preview import preview
    from epsilometer.bounds import (
        BestOnSame,
        ClaimTest,
        ClopperPearson,
        Cosines,
        EProcess,
        ExactRank,
        Fixed,
        LowerBound,
        OneRunPoint,
        Simultaneous,
        Split,
        Threshold,
        UnionBound,
        bailey,
        compare_bounds,
        cosine_canaries,
        eps_opt,
        katz_log,
        largest_noise_multiplier,
        pool_runs,
        refutation_power,
        refute_curve,
        refute_one_run,
        refute_step,
        trials_to_refute,
    )
    from epsilometer.bounds.bayesian import bayesian
    from epsilometer.bounds.clopper_pearson import clopper_pearson
    from epsilometer.bounds.eprocess import eprocess
    from epsilometer.bounds.exact_rank import exact_rank
    from epsilometer.bounds.one_run import one_run
    from epsilometer.bounds.one_run_fdp import one_run_fdp
    from epsilometer.claims import Claim, CurveClaim, GaussianClaim, PointClaim, Relation
    from epsilometer.data import Dataset
    from epsilometer.data.digits import digits
    from epsilometer.errors import EpsilometerError, EvidenceMismatch, InvalidInput, RelationMismatch
    from epsilometer.evidence import Counts, Membership, OneRun, PairedRuns, PerStep
    from epsilometer.mechanisms import PrivateRidge, audit_ridge
    from epsilometer.report import summary, to_json
    from epsilometer.subjects import Access, DpSgdTraining, Faults, Insertion, Observer, Subject
    from epsilometer.training import Poisoner, Recipe, Watcher, train, train_many


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'epsilometer' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
