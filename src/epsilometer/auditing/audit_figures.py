"""The numbers of an audit's pictures."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from epsilometer.bounds import ErrorPair, Kind, UnionBound, gaussian_strength, is_sequential
from epsilometer.claims import Claim
from epsilometer.data import Dataset
from epsilometer.evidence import Evidence, PairedRuns
from epsilometer.figures import (
    Curve,
    Figure,
    Level,
    Path,
    Pictures,
    Point,
    Scale,
    ScaleMark,
    TradeOff,
)
from epsilometer.figures.scale import ASSUMED, AT_LEAST, AT_MOST, CLAIMED, REACH

if TYPE_CHECKING:
    from epsilometer.auditing.runner import AuditResult

FEWEST = 16  # trials of each world of which a bound is shown
SHOWN_RATES = 200  # points of what was seen
SHOWN_PAIRS = 12  # certified points


def figures_of(result: AuditResult) -> dict[str, Figure]:
    """All that there are of it, by name."""
    drawn: dict[str, Figure | None] = {
        "scale": _scale(result),
        "scores": result.evidence.figure(getattr(result.lower_bound.proof, "threshold", None)),
        "trade-off": _trade_off(result),
        "path": _path(result),
        "records": _records(result),
    }
    return {name: figure for name, figure in drawn.items() if figure is not None}


def best_possible(result: AuditResult) -> float:
    """The ε that the same trials would certify of an attack that is always right (Jagielski et al. 2020: ε_OPT)."""
    plan, seen = result.plan, result.evidence
    kind = type(seen)
    if seen.independent:
        best: Evidence = kind.always_right(min(seen.sizes.values()), 1, seen.neighbours, seen.group_size)
    else:
        each = sum(seen.sizes.values()) // result.judged
        best = kind.always_right(result.judged, each, seen.neighbours, seen.group_size)
        best = plan.adversary.arranged(plan.subject, best, result.judged)
    return plan.planned_method.bound(best, delta=plan.delta, confidence=plan.confidence).epsilon


def certified_pairs(result: AuditResult) -> list[ErrorPair]:
    """Limits on both error rates of many thresholds that hold at once with the plan's confidence: what the attack has
    reached with confidence. None where trials are not independent, or chance may have decided how many there are."""
    seen, plan = result.evidence, result.plan
    if not seen.independent or is_sequential(plan.planned_method):
        return []
    return UnionBound().error_pairs(seen.as_pairs(), 1.0 - plan.confidence, gaussian_strength)


def _scale(result: AuditResult) -> Scale:
    plan, low, family, theory = result.plan, result.lower_bound, result.family_bound, result.upper_bound
    sure = f"{100 * low.confidence:.10g} % confidence"
    certified = low.kind is Kind.CERTIFIED
    first = AT_LEAST if certified else ASSUMED if low.kind is Kind.FAMILY else REACH
    entries = [ScaleMark("certified" if certified else str(low.kind), low.epsilon, first, f"{low.method}, {sure}")]
    if family is not None and family is not low and low.kind is not Kind.FAMILY:
        entries.append(ScaleMark("if it is DP-SGD", family.epsilon, ASSUMED, f"{family.method}, {sure}"))
    entries.append(ScaleMark("claimed", plan.claimed_epsilon, CLAIMED, plan.claim.describe()))
    if theory is not None:
        how = theory.accountant + (f"; {theory.caveat}" if theory.caveat else "")
        entries.append(ScaleMark("theory", theory.epsilon, AT_MOST, how))
    entries.append(
        ScaleMark(
            "could be shown", best_possible(result), REACH, "what as many trials of a perfect attack would certify"
        )
    )
    return Scale("ε: found, claimed, promised", f"ε at δ = {plan.delta:g} ({plan.neighbours})", tuple(entries))


def _trade_off(result: AuditResult) -> TradeOff:
    claim, seen, size = result.test.claim, result.evidence, result.evidence.group_size
    curves = [_claimed(claim, size)]
    theory = _theory(result)
    if theory is not None:
        curves.append(theory.curve("theory", "theory", size))
    pairs = seen.as_pairs()
    curves.append(_roc(pairs))
    counts = getattr(result.lower_bound.proof, "counts", None)
    label = f"certified, all at once ({100 * result.plan.confidence:.10g} %)"
    useful = [one for one in certified_pairs(result) if one.tpr_low > one.fpr_high]
    useful.sort(key=lambda one: one.fpr_high)
    points = [Point(label, useful[i].fpr_high, useful[i].tpr_low) for i in _thinned(len(useful), SHOWN_PAIRS)]
    if counts is not None:
        points.append(Point("where the bound was found (seen)", counts.fpr, 1.0 - counts.fnr))
    title = "What the claim allows, and what the attack reached"
    return TradeOff(title, tuple(curves), tuple(points))


def _claimed(claim: Claim, group_size: int) -> Curve:
    if claim.of_single_steps:  # scores are of single steps then, and so is what is claimed of them
        return claim.strongest.curve("claim, of one step")
    return claim.curve("claim", group_size=group_size)


def _theory(result: AuditResult) -> Claim | None:
    """The curve of what the training states of itself, where another one is claimed."""
    plan, upper = result.plan, result.upper_bound
    comparable = plan.claim.only_delta is not None and result.evidence.independent
    if upper is None or upper.caveat or not comparable:
        return None
    return plan.promise.curve(plan.neighbours)


def _roc(pairs: PairedRuns) -> Curve:
    """What was seen at every threshold, or at a few hundred of them."""
    outs, ins = np.sort(pairs.out_scores), np.sort(pairs.in_scores)
    both = np.unique(np.concatenate([outs, ins]))[::-1]
    fpr = np.r_[0.0, 1.0 - np.searchsorted(outs, both, side="left") / len(outs)]
    tpr = np.r_[0.0, 1.0 - np.searchsorted(ins, both, side="left") / len(ins)]
    kept = _thinned(len(fpr), SHOWN_RATES)
    return Curve("seen", tuple(np.round(fpr[kept], 6).tolist()), tuple(np.round(tpr[kept], 6).tolist()), "seen")


def _thinned(count: int, most: int) -> list[int]:
    """At most so many of `count` places, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int)).tolist() if count else []


def _path(result: AuditResult) -> Path | None:
    """The bound after half of the trials, a quarter, and so on."""
    seen, plan = result.evidence, result.plan
    if not seen.independent or min(seen.sizes.values()) < 2 * FEWEST:
        return None
    runs, counts = seen.as_pairs(), [min(seen.sizes.values())]
    while counts[-1] // 2 >= FEWEST:
        counts.append(counts[-1] // 2)
    found = [result.lower_bound.epsilon]
    for count in counts[1:]:
        part = replace(runs, out_scores=runs.out_scores[:count], in_scores=runs.in_scores[:count])
        found.append(plan.planned_method.bound(part, delta=plan.delta, confidence=plan.confidence).epsilon)
    levels = [Level("claimed", plan.claimed_epsilon)]
    if result.upper_bound is not None:
        levels.append(Level("theory", result.upper_bound.epsilon, "theory"))
    return Path(
        "The bound as trials came in",
        counted="trials of each world",
        quantity=f"ε ≥, at δ = {plan.delta:g}",
        label="certified bound" if result.lower_bound.kind is Kind.CERTIFIED else str(result.lower_bound.kind),
        counts=tuple(counts[::-1]),
        values=tuple(found[::-1]),
        levels=tuple(levels),
        note="The last mark is the result. The others are what the same method says of the first trials alone: they "
        "are for looking, not for choosing. A bound can fall while trials rise, since scores are drawn by chance.",
    )


def _records(result: AuditResult) -> Pictures | None:
    """What the adversary puts in beside natural records, where these are pictures."""
    data = result.plan.subject.data
    if result.prepared is None or len(getattr(data, "shape", ())) < 2:
        return None
    crafted = result.plan.adversary.pictured(result.plan.subject, result.prepared.arrays)
    crafted = [(label, record) for label, record in crafted if np.size(record) == data.x.shape[1]]
    if not crafted:
        return None
    natural = [(f"natural, class {_class(data, row)}", data.x[row]) for row in range(min(3, len(data)))]
    least, most = float(data.x.min()), float(data.x.max())
    return Pictures.of("What was put in, beside natural records", [*crafted, *natural], data.shape, least, most)


def _class(data: Dataset, row: int) -> str:
    return data.class_names[data.y[row]] if data.class_names else str(int(data.y[row]))
