"""Plans and results in plain words, for a terminal or a log: the headline, then labels and statements."""

from __future__ import annotations

import math

from epsilometer.auditing import AuditResult, Plan, Preview
from epsilometer.bounds import Kind, is_sequential
from epsilometer.bounds.strength import SHAPES
from epsilometer.report.details import utility_of
from epsilometer.report.headline import headline_of, meaning
from epsilometer.rounding import confidence, down, percent, simulated, up
from epsilometer.verdict import ENOUGH_POWER
from epsilometer.wrapping import Row, told

UNKNOWN = "says nothing: it is not stated how much noise is added to what"


def summary(result: AuditResult, width: int | None = None) -> str:
    """The headline, then a dozen statements: claim, theory, attack, the lower bound and how it was found."""
    plan, low = result.plan, result.lower_bound
    return told(
        headline_of(result).sentences,
        [
            *_plan_rows(plan),
            ("trials", f"{result.evidence.describe()}, seed {plan.seed}, {result.seconds:.1f} s"),
            *_stopped(result),
            (str(low.kind), str(low)),
            ("", f"from {low.proof}"),
            *_noise(result),
            *((name.replace("training ", ""), text) for name, text in utility_of(result).items()),
            ("against claim", result.test.comparison),
            ("cannot see", result.verdict.unseen),
            ("meaning", meaning(result.verdict.outcome, low.confidence)),
        ],
        width,
    )


def describe_preview(preview: Preview, width: int | None = None) -> str:
    """What a plan is, what it costs, and what it could show."""
    plan, judge = preview.plan, preview.plan.planned_method
    early = ", or fewer: it stops as soon as it has enough" if is_sequential(judge) else ""
    method = f"{getattr(judge, 'thresholds', judge).name}, {confidence(plan.confidence)}, seed {plan.seed}"
    return told(
        (),
        [
            *_plan_rows(plan),
            ("bound", method),
            ("cost", f"{_trials(preview.trials)}{early}; about {duration(preview.seconds)} in one process"),
            ("could certify", f"ε ≥ {down(preview.best_epsilon)} at δ = {plan.delta:g}, if the attack is always right"),
            *_pilot_rows(preview),
            ("plan", plan.fingerprint()),
        ],
        width,
    )


def _pilot_rows(preview: Preview) -> list[Row]:
    """What a few trials of the real attack let one expect."""
    judge, pilot = preview.plan.planned_method, preview.pilot
    if judge.kind is not Kind.CERTIFIED:
        return [("power", f"none: what {judge.name} finds is not certified, and refutes nothing")]
    if pilot is None:
        seen = [("pilot", f"none: a trial takes {duration(preview.seconds_a_trial)}, too long to try a few here")]
    else:
        picks = f"picks the member out of two {percent(pilot.area)} of the time (guessing: 50 %)"
        seen = [("pilot", f"in {pilot.trials} trials per world, with seeds that no audit uses, the attack {picks}")]
    return [*seen, ("power", _power(preview)), ("trials needed", _needed(preview))]


def _power(preview: Preview) -> str:
    if not preview.can_refute:
        return "none: not even an attack that is always right would refute the claim; run more trials"
    if preview.power is None or preview.likely_power is None:
        return "not known without a pilot"
    if preview.pilot is not None and preview.pilot.strength == 0:
        return "none to be expected: the pilot cannot tell this attack from guessing; use a stronger adversary"
    likely = f"such an audit catches an attack twice as strong in {simulated(preview.likely_power)} of cases"
    least = simulated(preview.power)
    if preview.has_power:
        found = f"{likely} ({least} for the least strength that the pilot allows)"
    elif preview.likely_power >= ENOUGH_POWER:
        found = f"{likely}, but the pilot is too small to be sure: {least}, if it was lucky"
    else:
        found = f"too little: {likely}, and {percent(ENOUGH_POWER)} are needed to say 'consistent'"
    return f"{found}; {SHAPES}"


def _needed(preview: Preview) -> str:
    if preview.pilot is None:
        return ""
    if preview.needed_trials is None:
        return "more than can be promised by this pilot: use a stronger adversary"
    kind = preview.plan.adversary.evidence_type
    what = "trials per world" if kind.independent else kind.trials_are
    return f"about {preview.needed_trials} {what} for 'consistent', or 'violated' by an attack twice as strong"


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


def _plan_rows(plan: Plan) -> list[Row]:
    claim = f"ε = {plan.claimed_epsilon:.4g} at δ = {plan.delta:g} ({plan.claim.neighbours}): {plan.claim.describe()}"
    attack = f"{plan.adversary.describe()}: {plan.adversary.needs}"
    return [
        (plan.subject.noun, plan.subject.describe()),
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
    """What the scores say of the noise, and what follows if the training is DP-SGD."""
    claimed = result.plan.subject.promise.noise_multiplier
    if result.noise_limit is None or claimed is None:
        return []
    limit = result.noise_limit.noise_multiplier
    noise = "any noise multiplier" if math.isinf(limit) else f"a noise multiplier of {up(limit, 3)} at most"
    family = "" if result.family_bound is None else f"ε ≥ {down(result.family_bound.epsilon)}: "
    return [("if DP-SGD", f"{family}the scores allow {noise}; {claimed:.3g} is claimed")]
