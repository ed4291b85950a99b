"""What a report tells of an audit beyond its result: as plain data, so that the page follows from result.json alone."""

from __future__ import annotations

import functools
import hashlib
from typing import Any

from epsilometer.adversaries import ADVERSARIES
from epsilometer.adversaries.distinguisher import Distinguisher, chosen
from epsilometer.auditing import AuditResult
from epsilometer.auditing.audit_figures import certified_pairs
from epsilometer.bounds import Kind, is_sequential
from epsilometer.claims import PointClaim
from epsilometer.json_values import json_values
from epsilometer.report.person import RATES, means
from epsilometer.report.release import is_refused
from epsilometer.rounding import down, up
from epsilometer.subjects import Controls, Sees
from epsilometer.subjects.access import WORDS

NO_TEST_DATA = "no test data; nothing is held out, since that would change the training that is audited"


@functools.lru_cache(maxsize=2)
def details_of(result: AuditResult) -> dict[str, Any]:
    """Training and adversary in words, what it means for a person, accountants, powers, figures, hashes."""
    plan = result.plan
    details = {
        "training": plan.subject.describe(),
        "injected": plan.subject.injected(),
        "claim_words": plan.claim.describe(),
        "adversary": {
            "words": plan.adversary.describe(),
            "summary": plan.adversary.summary,
            "threat_model": str(plan.adversary.needs),
        },
        "trials_words": result.evidence.describe(),
        "proof": str(result.lower_bound.proof),
        "comparison": result.test.comparison,
        "independent": result.evidence.independent,
        "utility": utility_of(result),
        "means": _means(result),
        "attack": _attack(result),
        "accountants": _accountants(result),
        "powers": _powers(result),
        "adversaries": _adversaries(result),
        "neighbours": _neighbours(result),
        "scores_sha256": hashlib.sha256(scores_csv(result)).hexdigest(),
        "figures": {name: figure.to_dict() for name, figure in result.figures.items()},
    }
    converted: dict[str, Any] = json_values(details)
    return converted


def utility_of(result: AuditResult) -> dict[str, str]:
    """How good the models are, on their own records and on others; empty if nobody measured it."""
    if not result.accuracy:
        return {}
    own, *others = map(str, result.accuracy)
    return {"training accuracy": own, "test accuracy": others[0] if others else NO_TEST_DATA}


def scores_csv(result: AuditResult) -> bytes:
    """The content of scores.csv."""
    side, table = result.evidence.table()
    size = result.evidence.group_size  # a bound that did not know would claim too much
    more, end = (",group_size", f",{size}") if size > 1 else ("", "")
    rows = [f"{side},score{more}", *(f"{where},{score!r}{end}" for where, score in table)]
    return "".join(f"{row}\n" for row in rows).encode()


def _means(result: AuditResult) -> list[dict[str, Any]]:
    """What an ε means for a person: of the certified bound, of the claim and of theory. `stands` says whether that is a
    promise which the verdict leaves standing; a lower bound is none.
    """
    plan, low = result.plan, result.lower_bound
    rows = []
    if low.kind is Kind.CERTIFIED:
        least = PointClaim(low.epsilon, low.delta, low.relation, low.unit)
        label = f"the certified bound: ε = {down(low.epsilon)} (less is refuted)"
        rows.append(means(label, least, low.delta))
    promises = len(rows)
    # A curve allows far less than its point at one δ does: each column says which of the two it is.
    point = PointClaim(plan.claimed_epsilon, plan.delta, plan.relation, plan.claim.unit)
    if plan.claim.only_delta is not None:
        rows.append(means(f"the claim: ε = {point.epsilon:.4g}", plan.claim, plan.delta))
    else:
        rows.append(means(f"the claim, its whole curve (ε = {point.epsilon:.4g} at δ)", plan.claim, plan.delta))
        rows.append(means(f"of the claim, only its point: ε = {point.epsilon:.4g}", point, plan.delta))
    theory = plan.promise.curve(plan.neighbours)
    if theory is not None and theory != plan.claim:
        label = f"theory, its whole curve (ε = {up(theory.epsilon_at(plan.delta))} at δ)"
        rows.append(means(label, theory, plan.delta))
    kept = not is_refused(result.verdict.outcome.value)
    return [{**row, "stands": kept and place >= promises} for place, row in enumerate(rows)]


def _attack(result: AuditResult) -> dict[str, Any] | None:
    """How well the attack that was played tells the worlds apart; none where its scores are not independent."""
    seen = result.evidence
    if not seen.independent or is_sequential(result.plan.planned_method):
        return None
    runs, few = seen.as_pairs(), min(seen.sizes.values()) < 2
    pairs = certified_pairs(result)
    return {
        "confidence": result.plan.confidence,
        "certified_accuracy": max([0.5, *((1.0 + one.tpr_low - one.fpr_high) / 2.0 for one in pairs)]),
        "certified_odds": max([1.0, *(one.tpr_low / one.fpr_high for one in pairs)]),
        "auc": runs.auc().to_dict(),
        "balanced_accuracy": None if few else runs.balanced_accuracy().to_dict(),
        "tpr_at": [runs.tpr_at(rate).to_dict() for rate in RATES],
    }


def _accountants(result: AuditResult) -> list[dict[str, Any]]:
    found = result.plan.promise.by_accountants(result.plan.delta, result.plan.neighbours)
    return [{"name": one.accountant, "epsilon": one.epsilon, "caveat": one.caveat} for one in found]


def _powers(result: AuditResult) -> list[dict[str, Any]]:
    """Every power that adversaries may have: whether this one used it, and whether the training grants it."""
    plan = result.plan
    needs, granted = plan.adversary.needs, plan.access & plan.subject.grants
    seen, order = list(Sees), list(Sees).index
    sees = [(power, order(power) <= order(needs.sees), order(power) <= order(granted.sees)) for power in seen]
    controls = [(power, power in needs.controls, power in granted.controls) for power in Controls]
    rows = [("sees", *row) for row in sees] + [("controls", *row) for row in controls]
    return [{"how": how, "power": WORDS[power], "used": used, "granted": free} for how, power, used, free in rows]


def _adversaries(result: AuditResult) -> list[dict[str, str]]:
    """Ours and who played, and why others did not. Other packages of this machine are no part of a result."""
    plan = result.plan
    granted = plan.access & plan.subject.grants
    found = []
    for name, kind in ADVERSARIES.own.items():
        lacking = granted.lacks(kind().needs)
        state = f"not granted, as it is usually set: {', '.join(lacking)}" if lacking else "not played"
        state = "played" if name == plan.adversary.name else state
        found.append({"name": name, "summary": kind.summary, "state": state})
    if plan.adversary.name not in ADVERSARIES.own:
        played = {"name": plan.adversary.name, "summary": plan.adversary.summary, "state": "played"}
        found.insert(0, played)
    return found


def _neighbours(result: AuditResult) -> dict[str, Any]:
    """What was searched for and found, of a mechanism."""
    if result.prepared is None or result.plan.adversary.name != Distinguisher.name:
        return {}
    return dict(zip(("out", "in", "score"), chosen(result.prepared.arrays), strict=True))
