"""What the accountant was told, against what was done."""

from __future__ import annotations

from epsilometer.watching.checks.check import Finding, failed, not_applicable, passed
from epsilometer.watching.checks.seen import SeenTraining, steps_accounted

_ROUNDING = 1.02  # a step more or less: epochs are no whole number of steps


def steps(seen: SeenTraining) -> Finding:
    """Every step is accounted, one by one and at the end; other trainings may share the accountant."""
    total = steps_accounted(seen.engine)
    if total is None:
        return not_applicable(f"{type(seen.engine.accountant).__name__} keeps no history")
    if not seen.steps:
        return not_applicable("no private step was taken")
    accounted = min(total - seen.accounted_before, len(seen.accounted))
    # A script that ends between noise and hook has not taken that step.
    taken = seen.steps - (seen.steps == seen.followed + 1 and seen.followed > 0)
    if accounted < taken:
        return failed(
            f"{max(accounted, 0)} steps accounted", f"{taken}, which were taken",
            "attach_step_hook takes the accountant's place: call the former optimizer.step_hook in the new hook too",
        )  # fmt: skip
    return passed(f"{taken} steps taken, all accounted")


def multiplier(seen: SeenTraining) -> Finding:
    """The accountant counts the noise multiplier that the script asked for, or less."""
    if not seen.accounted:
        return not_applicable("no private step was accounted" if seen.steps else "no private step was taken")
    stated = seen.settings.get("noise_multiplier")
    most = max(sigma for sigma, _ in seen.accounted)
    adaptive = seen.adaptive or "target_unclipped_quantile" in seen.settings
    if adaptive and stated is not None and most > float(stated) * (1 + 1e-9):
        return failed(
            f"noise multiplier {most:.4g} accounted with adaptive clipping",
            f"{float(stated):.4g}, as asked for: the larger one leaves out what counting clipped records costs",
            "use Opacus 1.6.0 or later (PR 807)",
        )
    first = seen.accounted[0][0]
    if stated is not None and first < float(stated) * (1 - 1e-9):  # schedules begin with what was asked for
        return failed(
            f"noise multiplier {first:.4g} accounted from the first step, {float(stated):.4g} asked of make_private",
            "what was asked for: the accountant's ε is larger than the one that was planned",
            "leave optimizer.noise_multiplier alone, or ask make_private for the noise that is meant",
        )
    return passed(f"noise multiplier {most:.4g} accounted" + ("" if stated is None else f", {float(stated):.4g} asked"))


def target_epsilon(seen: SeenTraining) -> Finding:
    """What is spent is what the noise was found for, or less; whoever shares the accountant spends too."""
    wanted, delta = (seen.settings.get(name) for name in ("target_epsilon", "target_delta"))
    if wanted is None or delta is None:
        return not_applicable("no ε was asked for: make_private got a noise multiplier")
    if not seen.steps:
        return not_applicable("no private step was taken")
    spent = float(seen.engine.get_epsilon(delta))
    if spent > _ROUNDING * wanted:
        return failed(
            f"ε = {spent:.4g} at δ = {delta:g} is spent, by its own accountant",
            f"{wanted:.4g}, which make_private_with_epsilon was asked for",
            "train for as many epochs as it was told, or tell it more",
        )
    return passed(f"ε = {spent:.4g} at δ = {delta:g} spent, {wanted:.4g} asked for")


def accountant(seen: SeenTraining) -> Finding:
    """The accountant must give an upper bound."""
    try:
        kind = str(seen.engine.accountant.mechanism())
    except AttributeError:
        return not_applicable(f"{type(seen.engine.accountant).__name__} does not say what it computes")
    if kind == "gdp":
        return failed(
            "accountant gdp, an approximation by the central limit theorem that can give less than the true ε",
            "an upper bound", "use PrivacyEngine(accountant='prv') or 'rdp'",
        )  # fmt: skip
    return passed(f"{kind} gives an upper bound")
