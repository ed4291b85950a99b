"""The result in plain words, for a terminal or a log."""

from __future__ import annotations

import math

from epsilometer.audit import AuditResult


def summary(result: AuditResult) -> str:
    """A dozen lines: training, claim, theory, attack, verdict.

    Each line is a label and a statement, so that it reads well without colours.
    """
    plan, low = result.plan, result.lower_bound
    recipe, test = plan.recipe, result.test
    fault = plan.faults.noise_scale
    injected = [("FAULT INJECTED", f"the noise really added is {fault:g} × what is claimed")] if fault != 1 else []
    claim = f"ε = {plan.claimed_epsilon:.4g} at δ = {plan.delta:g} ({plan.relation}): {plan.claim.describe()}"
    rows = [
        ("training", f"{recipe.model} on {plan.data.name} ({len(plan.data)} records), {recipe.mechanism.describe()}"),
        *injected,
        ("claim", claim),
        ("theory", str(result.upper_bound)),
        ("adversary", f"{plan.adversary.name}: sees {plan.adversary.threat.sees}, "
                      f"controls {plan.adversary.threat.controls}, knows {plan.adversary.threat.knows}"),
        ("trials", f"{result.evidence.describe()}, "
                   f"seed {plan.seed}, {result.seconds:.1f} s"),
        *_stopped(result),
        ("proved", str(low)),
        ("", f"from {low.proof}"),
        ("against claim", test.comparison),
        *_noise(result),
        ("verdict", str(result.verdict)),
    ]  # fmt: skip
    width = max(len(label) for label, _ in rows)
    return "\n".join(f"{label:<{width}}  {text}" for label, text in rows)


def _stopped(result: AuditResult) -> list[tuple[str, str]]:
    if not result.stopped_early:
        return []
    return [("", f"stopped early by {result.plan.method.name}: no other method is valid on these scores")]


def _noise(result: AuditResult) -> list[tuple[str, str]]:
    if result.noise_limit is None:
        return []
    limit = result.noise_limit.noise_multiplier
    noise = "any noise multiplier" if math.isinf(limit) else f"a noise multiplier of {limit:.3g} at most"
    return [("", f"the scores allow {noise}; {result.plan.recipe.noise_multiplier:.3g} is claimed")]
