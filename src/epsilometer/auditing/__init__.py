"""Plan → game → trials → evidence → bound → verdict."""

from epsilometer import runs
from epsilometer.auditing.budget import OutOfBudget
from epsilometer.auditing.decision import decide
from epsilometer.auditing.erm_audit import ErmAudit, audit_erm, erm_plan
from epsilometer.auditing.judgement import Judgement, judge_evidence, methods_for
from epsilometer.auditing.kinds import SUBJECTS, SubjectKind
from epsilometer.auditing.kinds.dp_sgd import claim_curve, noise_for
from epsilometer.auditing.mechanism_audit import audit_mechanism, mechanism_plan
from epsilometer.auditing.pilot import Candidate, Choice, choose_adversary, pilot_trials
from epsilometer.auditing.plan import Plan
from epsilometer.auditing.preview import Preview, preview
from epsilometer.auditing.ridge_audit import RidgeAudit, audit_ridge, epsilon_interval, ridge_plan
from epsilometer.auditing.runner import AuditResult, judge, run
from epsilometer.auditing.simple import audit
from epsilometer.auditing.spec import Spec, parse_spec, read_spec, spec_from_dict
from epsilometer.auditing.templates import TEMPLATES, template
from epsilometer.deprecated import moved
from epsilometer.verdict import Outcome, Verdict

__getattr__ = moved(__name__, dict.fromkeys(runs.__all__, "epsilometer.runs") | {"Work": "epsilometer.runs:Trials"})

__all__ = [
    "TEMPLATES",
    "AuditResult",
    "Candidate",
    "Choice",
    "ErmAudit",
    "Judgement",
    "OutOfBudget",
    "Outcome",
    "Plan",
    "Preview",
    "RidgeAudit",
    "SUBJECTS",
    "Spec",
    "SubjectKind",
    "Verdict",
    "audit",
    "audit_erm",
    "audit_mechanism",
    "audit_ridge",
    "choose_adversary",
    "claim_curve",
    "decide",
    "epsilon_interval",
    "erm_plan",
    "judge",
    "judge_evidence",
    "mechanism_plan",
    "methods_for",
    "noise_for",
    "parse_spec",
    "pilot_trials",
    "preview",
    "read_spec",
    "ridge_plan",
    "run",
    "spec_from_dict",
    "template",
]
