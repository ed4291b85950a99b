"""What the accountant was told, against what was done."""

from __future__ import annotations

from epsilometer.rounding import up
from epsilometer.watching.checks.check import Finding, failed, not_applicable, passed
from epsilometer.watching.epsilon import DELTA, promised
from epsilometer.watching.facts import Accounted, Facts
from epsilometer.watching.facts_together import Together

_ROUNDING = 1.02  # a step more or less: epochs are no whole number of steps


def steps(facts: Facts) -> Finding:
    """Every step is accounted, one by one and at the end; other trainings may share the accountant."""
    told, seen = _of(facts), facts.steps
    assert seen is not None
    if told.total is None:
        return not_applicable(f"{told.accountant} keeps no history")
    if not seen.taken:
        return not_applicable("no private step was taken")
    # A script that ends between noise and hook has not taken that step.
    taken = seen.taken - (seen.taken == seen.followed + 1 and seen.followed > 0)
    remedy = "attach_step_hook takes the accountant's place: call the former optimizer.step_hook in the new hook too"
    if told.total < taken:
        return failed(f"{max(told.total, 0)} steps accounted", f"{taken}, which were taken", remedy)
    late = facts.sampling is not None and facts.sampling.by_hand  # told of a step by the script, before or after it
    if told.steps < taken and not late:  # all at once, or by another training that shares the accountant
        found = f"{told.steps} steps accounted as they were taken, {told.total} in the end"
        return failed(found, f"{taken}, which were taken", remedy, meant=True)
    return passed(f"{taken} steps taken, all accounted")


def multiplier(facts: Facts) -> Finding:
    """The accountant counts the noise multiplier that the script asked for, or less."""
    told = _of(facts)
    if not told.history:
        taken = facts.steps is not None and facts.steps.taken
        return not_applicable("no private step was accounted" if taken else "no private step was taken")
    less = _less_in_the_end(told)
    if less:
        return failed(less, "the history as it was", "leave accountant.history alone: steps add up as they were taken")
    stated, most = told.asked, max(sigma for sigma, *_ in told.history)
    if told.adaptive and stated is not None and most > stated * (1 + 1e-9):
        return failed(
            f"noise multiplier {most:.4g} accounted with adaptive clipping",
            f"{stated:.4g}, as asked for: the larger one leaves out what counting clipped records costs",
            "use Opacus 1.6.0 or later (PR 807)",
        )
    drawn = 1.0 if facts.noise is None else max(facts.noise.least_drawn, 1.0)  # more than is accounted is no harm
    constant = len({sigma for sigma, *_ in told.history}) == 1  # schedules are accounted as they are
    first = told.history[0][0]
    if stated is not None and constant and first * drawn < stated * (1 - 1e-9):
        return failed(
            f"noise multiplier {first:.4g} accounted from the first step, {stated:.4g} asked of make_private",
            "what was asked for: the accountant's ε is larger than the one that was planned",
            "leave optimizer.noise_multiplier alone, or ask make_private for the noise that is meant",
        )
    return passed(f"noise multiplier {most:.4g} accounted" + ("" if stated is None else f", {stated:.4g} asked"))


def _less_in_the_end(told: Accounted) -> str:
    """Has somebody given steps more noise, or a smaller rate, than they were accounted with as they were taken?"""
    if sum(int(entry[2]) for entry in told.final) != told.steps:
        return ""  # several trainings, or steps that were forgotten
    for at, what, sign in ((0, "noise multiplier", 1.0), (1, "sample rate", -1.0)):
        seen, now = (
            sorted(sign * entry[at] for entry in history for _ in range(int(entry[2])))
            for history in (told.history, told.final)
        )
        for before, after in zip(seen, now, strict=True):
            if after > before + 1e-9 * abs(before):
                return f"{what} {sign * after:.4g} in the accountant's history for a step of {sign * before:.4g}"
    return ""


def target_epsilon(facts: Facts) -> Finding:
    """What is spent is what the noise was found for, or less; whoever shares the accountant spends too."""
    asked = facts.target
    assert asked is not None
    if asked.spent > _ROUNDING * asked.epsilon:
        return failed(
            f"ε = {asked.spent:.4g} at δ = {asked.delta:g} is spent, by its own accountant",
            f"{asked.epsilon:.4g}, for which the noise was found",
            "train for as many epochs as it was told, or tell it more",
        )
    return passed(f"ε = {asked.spent:.4g} at δ = {asked.delta:g} spent, {asked.epsilon:.4g} asked for")


def composition(facts: Facts) -> Finding:
    """Trainings on the same records: what each spends adds up, so that one must count all."""
    seen = facts.together
    assert seen is not None
    if len(seen.histories) < 2:
        return passed("one accountant for all trainings on its records")
    most = max(sum(int(steps) for *_, steps in history) for history in seen.histories)
    if most >= seen.steps:
        return passed(f"an accountant counts all {seen.steps} steps of {len(seen.histories)} on its records")
    what = f"on the same {seen.records} records" if seen.records else "of the same parameters, on records of any kind"
    return failed(
        f"{len(seen.histories)} accountants for trainings {what}{_sum(seen)}",
        f"one that counts all {seen.steps} steps, as whoever sees all of it has seen all of these",
        "give all engines one accountant; or promise the sum, and --ignore composition",
    )


def _sum(seen: Together) -> str:
    """What each accountant promises, and ε of all."""
    whole = promised([entry for history in seen.histories for entry in history], DELTA)
    each = [promised(history, DELTA) for history in seen.histories]
    if whole is None or None in each:
        return ""
    known = sorted(one.epsilon for one in each if one is not None)
    least, most = up(known[0]), up(known[-1])
    own = least if least == most else f"{least} to {most}"
    return f": each promises ε ≤ {own}, together {up(whole.epsilon)} at δ = {DELTA:g}"


def accountant(facts: Facts) -> Finding:
    """The accountant must give an upper bound."""
    told = _of(facts)
    if told.mechanism is None:
        return not_applicable(f"{told.accountant} does not say what it computes")
    if told.mechanism == "gdp":
        return failed(
            "accountant gdp, an approximation by the central limit theorem that can give less than the true ε",
            "an upper bound", "use PrivacyEngine(accountant='prv') or 'rdp'",
        )  # fmt: skip
    return passed(f"{told.mechanism} gives an upper bound")


def _of(facts: Facts) -> Accounted:
    assert facts.accounted is not None
    return facts.accounted
