"""Plan → game → trials → evidence → bound → verdict."""

from epsilometer.auditing.budget import OutOfBudget
from epsilometer.auditing.directory import (
    RESULTS,
    SEARCH_SECONDS,
    STORE,
    begun_in,
    pilot_directory,
    plan_of,
    run_directory,
    stores_below,
)
from epsilometer.auditing.erm_audit import ErmAudit, audit_erm, erm_plan
from epsilometer.auditing.executors import EXECUTORS, Auto, Executor, Inline, Local, OnRay, TrialsFailed, executor_named
from epsilometer.auditing.mechanism_audit import audit_mechanism, mechanism_plan
from epsilometer.auditing.pilot import Candidate, Choice, choose_adversary, pilot_trials
from epsilometer.auditing.plan import Plan, claim_curve, noise_for
from epsilometer.auditing.preview import Preview, preview
from epsilometer.auditing.progress import Progress, Snapshot
from epsilometer.auditing.ridge_audit import RidgeAudit, audit_ridge, epsilon_interval, ridge_plan
from epsilometer.auditing.runner import AuditResult, judge, play, run
from epsilometer.auditing.simple import audit
from epsilometer.auditing.spec import Spec, parse_spec, read_spec, spec_from_dict
from epsilometer.auditing.sqlite_store import SqliteStore
from epsilometer.auditing.store import MemoryStore, Store, StoredRun, StoreError
from epsilometer.auditing.templates import TEMPLATES, template
from epsilometer.auditing.verdict import Outcome, Verdict, decide
from epsilometer.auditing.work import Preparation, Results, Work

__all__ = [
    "EXECUTORS",
    "RESULTS",
    "SEARCH_SECONDS",
    "STORE",
    "TEMPLATES",
    "AuditResult",
    "Auto",
    "Candidate",
    "Choice",
    "ErmAudit",
    "Executor",
    "Inline",
    "Local",
    "MemoryStore",
    "OnRay",
    "OutOfBudget",
    "Outcome",
    "Plan",
    "Preparation",
    "Preview",
    "Progress",
    "Results",
    "RidgeAudit",
    "Snapshot",
    "Spec",
    "SqliteStore",
    "Store",
    "StoreError",
    "StoredRun",
    "TrialsFailed",
    "Verdict",
    "Work",
    "audit",
    "audit_erm",
    "audit_mechanism",
    "audit_ridge",
    "begun_in",
    "choose_adversary",
    "claim_curve",
    "decide",
    "epsilon_interval",
    "erm_plan",
    "executor_named",
    "judge",
    "mechanism_plan",
    "noise_for",
    "parse_spec",
    "pilot_directory",
    "pilot_trials",
    "plan_of",
    "play",
    "preview",
    "read_spec",
    "ridge_plan",
    "run",
    "run_directory",
    "spec_from_dict",
    "stores_below",
    "template",
]
