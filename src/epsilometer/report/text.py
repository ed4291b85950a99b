"""Plans and results in plain words, for a terminal or a log: labels and statements, which read well without colours."""

from __future__ import annotations

import math
from collections.abc import Sequence

from epsilometer.auditing import AuditResult, Plan, Preview
from epsilometer.bounds import Kind, Sequential

Row = tuple[str, str]
UNKNOWN = "says nothing: the training does not say how much noise it adds to what"


def summary(result: AuditResult) -> str:
    """A dozen lines: training, claim, theory, attack, verdict."""
    plan, low = result.plan, result.lower_bound
    return _lines(
        [
            *_plan_rows(plan),
            ("trials", f"{result.evidence.describe()}, seed {plan.seed}, {result.seconds:.1f} s"),
            *_stopped(result),
            ("proved" if low.kind is Kind.CERTIFIED else str(low.kind), str(low)),
            ("", f"from {low.proof}"),
            ("against claim", result.test.comparison),
            *_noise(result),
            ("verdict", str(result.verdict)),
        ]
    )


def describe_preview(preview: Preview) -> str:
    """What a plan is, what it costs, and what it could show."""
    plan = preview.plan
    early = ", or fewer: it stops as soon as it has enough" if isinstance(plan.planned_method, Sequential) else ""
    judge = plan.planned_method
    if judge.kind is not Kind.CERTIFIED:
        power = f"none: what {judge.name} finds is not certified, and refutes nothing"
    elif not preview.can_refute:
        power = "none: not even an attack that is always right would refute the claim; run more trials"
    else:
        hint = "a real attack is weaker" if preview.has_power else "too little: run more trials"
        power = f"{preview.power:.2f} at most, if half of the noise is missing and the attack as good as can be; {hint}"
    method = f"{getattr(judge, 'thresholds', judge).name}, {plan.confidence:g} confidence, seed {plan.seed}"
    return _lines(
        [
            *_plan_rows(plan),
            ("bound", method),
            ("cost", f"{_trials(preview.trials)}{early}; about {duration(preview.seconds)} in one process"),
            ("could prove", f"ε ≥ {preview.best_epsilon:.4g} at δ = {plan.delta:g}, by an attack that is always right"),
            ("power", power),
            ("plan", plan.fingerprint()),
        ]
    )


def duration(seconds: float) -> str:
    """A time span for people.

    >>> duration(0.25), duration(75), duration(7300)
    ('0.2 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _trials(count: int) -> str:
    return f"{count} trial" if count == 1 else f"{count} trials"


def _lines(rows: Sequence[Row]) -> str:
    width = max(len(label) for label, _ in rows)
    return "\n".join(f"{label:<{width}}  {text}" for label, text in rows)


def _plan_rows(plan: Plan) -> list[Row]:
    claim = f"ε = {plan.claimed_epsilon:.4g} at δ = {plan.delta:g} ({plan.relation}): {plan.claim.describe()}"
    attack = f"{plan.adversary.describe()}: {plan.adversary.needs}"
    return [
        ("training", plan.subject.describe()),
        *(("FAULT INJECTED", words) for words in plan.subject.injected()),
        ("claim", claim),
        ("theory", str(plan.upper_bound or UNKNOWN)),
        ("adversary", attack),
    ]


def _stopped(result: AuditResult) -> list[Row]:
    if not result.stopped_early:
        return []
    return [("", f"stopped early by {result.plan.planned_method.name}: no other method is valid on these scores")]


def _noise(result: AuditResult) -> list[Row]:
    mechanism = result.plan.subject.mechanism
    if result.noise_limit is None or mechanism is None:
        return []
    claimed = mechanism.noise_multiplier
    limit = result.noise_limit.noise_multiplier
    noise = "any noise multiplier" if math.isinf(limit) else f"a noise multiplier of {limit:.3g} at most"
    family = "" if result.family_bound is None else f" (ε ≥ {result.family_bound.epsilon:.3g}, if it is DP-SGD)"
    return [("", f"the scores allow {noise}{family}; {claimed:.3g} is claimed")]
