"""What updates have told of a participant: for people, for programs, and collaboration by collaboration."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from epsilometer.collaborative import INDEPENDENT, NO_EPSILON, PropertyResult
from epsilometer.json_values import SCHEMA, json_values
from epsilometer.metrics import Interval
from epsilometer.report.files import Written, write_document
from epsilometer.report.headline import Headline
from epsilometer.report.scores import csv_of
from epsilometer.rounding import ceiled, confidence, down, up
from epsilometer.runs import RESULTS
from epsilometer.versions import versions
from epsilometer.wrapping import Row, told

NOT_ALL = "A property that was not seen may be seen by another attack, or in more rounds"
ONE_LAW = "its worlds have one law, so that its AUC is ½ but for chance"


def property_headline(result: PropertyResult) -> Headline:
    """How well the property is seen, and what that says of the promise to a participant."""
    plan, sure = result.plan, confidence(result.confidence)
    limits = f"AUC {_limits(result.auc)}; {sure}, {2 * plan.trials} independent collaborations"
    guess = " Guessing may do as well." if result.auc.low <= 0.5 <= result.auc.high else ""
    first = (
        f"From the updates that a participant shares, the attacker guesses whether its records have a property that "
        f"nobody trains on ({plan.marked.name}): shown one participant with it and one without, it names the right one "
        f"in {100 * result.auc.value:.1f} % of cases ({limits}).{guess}"
    )
    if result.bound is None or result.theory is None:
        return Headline(None, (first, f"{NO_EPSILON[0].upper()}{NO_EPSILON[1:]}."), limits)
    at = f"at δ = {result.bound.delta:g} (all data of a participant replaced; {sure})"
    epsilon = f"ε ≥ {down(result.bound.epsilon)} {at}"
    promise = f"the noise promises ε ≤ {up(result.theory.epsilon)} for that"
    second = f"Certified: {epsilon}; {promise}. {NOT_ALL}."
    if not result.bound.epsilon:
        second = f"No ε above 0 is certified {at}; {promise}, which this neither confirms nor refutes. {NOT_ALL}."
    if result.bound.epsilon > result.theory.epsilon:
        second = f"Certified: {epsilon}, which is more than the noise promises ({up(result.theory.epsilon)})."
    return Headline(None, (first, second), f"{limits}; {epsilon}")


def property_summary(result: PropertyResult, width: int | None = None) -> str:
    """The headline, then the collaboration, the control, and what the numbers assume."""
    plan = result.plan
    having, records = int(plan.marked.has.sum()), len(plan.marked.data)
    rows: list[Row] = [
        ("attacked", plan.words()),
        ("property", f"{plan.marked.name}: {having} of {records} records"),
        ("played", f"{plan.trials} collaborations without it, {plan.trials} with it, seed {plan.seed}, "
         f"{result.seconds:.1f} s"),
        ("AUC", f"{_limits(result.auc)}, balanced accuracy {_limits(result.balanced_accuracy)}"),
        ("by rounds", ", ".join(f"{one.auc.value:.3f} in {one.rounds}" for one in result.by_rounds)),
        ("control", control_words(result)),
        ("model", f"{100 * result.accuracy:.1f} % of all records right, in the mean"),
    ]  # fmt: skip
    if result.bound is not None and result.theory is not None:
        at = f"at δ = {result.bound.delta:g}, all data of a participant replaced"
        rows.append(("participant", f"certified ε ≥ {down(result.bound.epsilon)} {at}"))
        rows.append(("", f"theory ε ≤ {up(result.theory.epsilon)}"))
    rows.append(("limits", f"{confidence(result.confidence)} for each number by itself; {INDEPENDENT}"))
    rows.append(("meaning", NO_EPSILON if result.bound is None else f"{NOT_ALL}."))
    return told(property_headline(result).sentences, rows, width)


def control_words(result: PropertyResult) -> str:
    """What the control shows, and what it must."""
    if result.control_auc is None:
        return "none was played"
    odd = not result.control_auc.low <= 0.5 <= result.control_auc.high
    rare = f"; ½ is outside, as it is in {100 * (1 - result.confidence):.3g} % of controls" if odd else ""
    return f"AUC {_limits(result.control_auc)}: {ONE_LAW}{rare}"


def property_to_json(result: PropertyResult, command: str = "") -> dict[str, Any]:
    """The result as plain data; the report follows from it."""
    plan, headline = result.plan, property_headline(result)
    document = {
        "kind": plan.kind,
        "schema": SCHEMA,
        "headline": str(headline),
        "quote": headline.quote,
        "verdict": None,
        "attacked": plan.words(),
        "property": {
            "name": plan.marked.name,
            "having": int(plan.marked.has.sum()),
            "records": len(plan.marked.data),
        },
        "unit": plan.to_dict()["claim"]["unit"],
        "lower_bound": result.bound and result.bound.to_dict(),
        "upper_bound": result.theory and result.theory.to_dict(),
        "family_bound": None,
        "no_epsilon": NO_EPSILON if result.bound is None else None,
        "auc": result.auc.to_dict(),
        "balanced_accuracy": result.balanced_accuracy.to_dict(),
        "by_rounds": [one.to_dict() for one in result.by_rounds],
        "control": {"auc": result.control_auc and result.control_auc.to_dict(), "meaning": control_words(result)},
        "assumes": INDEPENDENT,
        "accuracy": result.accuracy,
        "trials": result.evidence.sizes,
        "stopped_early": False,
        "confidence": result.confidence,
        "seconds": round(result.seconds, 3),
        "seed": plan.seed,
        "plan": plan.to_dict(),
        "plan_sha256": plan.fingerprint(),
        "scores_sha256": hashlib.sha256(property_csv(result)).hexdigest(),
        "versions": versions(),
        "figures": {"rounds": result.figure().to_dict(), "scores": result.histograms().to_dict()},
        "command": command,
    }
    converted: dict[str, Any] = json_values(document)
    return converted


def property_csv(result: PropertyResult) -> bytes:
    """The content of scores.csv: a row for each collaboration but those of the control, as `bound` reads them."""
    rows = [
        (world, index, float(score))
        for world, scores in enumerate((result.evidence.out_scores, result.evidence.in_scores))
        for index, score in enumerate(scores)
    ]
    columns: dict[str, Any] = {name: [row[i] for row in rows] for i, name in enumerate(("world", "index", "score"))}
    return csv_of(columns | {name: [word] * len(rows) for name, word in result.evidence.neighbours.to_dict().items()})


def write_property(directory: Path, result: PropertyResult, command: str = "") -> Written:
    """result.json, scores.csv and report.html of a run, each whole or not at all."""
    return write_document(directory, property_to_json(result, command), RESULTS[1], property_csv(result))


def _limits(one: Interval) -> str:
    return f"{one.value:.3f} ({down(one.low)} to {ceiled(one.high)})"
