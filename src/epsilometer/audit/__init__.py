"""Plan → game → trials → evidence → bound → verdict."""

from epsilometer.audit.plan import Faults, Plan, claim_curve, noise_for
from epsilometer.audit.runner import AuditResult, judge, play, run
from epsilometer.audit.spec import Spec, parse_spec, read_spec, spec_from_dict
from epsilometer.audit.trial import craft, run_canaries, run_trials
from epsilometer.audit.verdict import Outcome, Verdict, decide

__all__ = [
    "AuditResult",
    "Faults",
    "Outcome",
    "Plan",
    "Spec",
    "Verdict",
    "claim_curve",
    "craft",
    "decide",
    "judge",
    "noise_for",
    "parse_spec",
    "play",
    "read_spec",
    "run",
    "run_canaries",
    "run_trials",
    "spec_from_dict",
]
