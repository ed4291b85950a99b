"""What membership attacks have shown: for people, for programs, and record by record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from epsilometer.json_values import SCHEMA, json_values
from epsilometer.membership import NO_EPSILON, MembershipResult
from epsilometer.metrics import Interval
from epsilometer.report.files import Written, write_document
from epsilometer.report.headline import Headline
from epsilometer.report.private import OF_MEMBERS
from epsilometer.report.scores import Columns, csv_of, write_columns
from epsilometer.rounding import ceiled, confidence, down, up
from epsilometer.runs import RESULTS
from epsilometer.versions import versions
from epsilometer.wrapping import Row, told

NOT_ALL = "No attack proves privacy: a stronger one may find more"


def membership_headline(result: MembershipResult) -> Headline:
    """The strongest attack with limits that pay for having chosen it, what it is an attack on, and what to quote."""
    best, several = result.strongest, len(result.attacks) > 1
    at = best.tpr_at[-1]
    chosen = f"{best.name}, the strongest of {len(result.attacks)} attacks" if several else best.name
    sure = confidence(result.confidence) + (" for all attacks together" if several else "")
    low, high, fpr = f"{down(100 * at.tpr.low, 1)} %", f"{ceiled(100 * at.tpr.high, 1)} %", _at_most(at.fpr_high)
    guess = " Guessing may do as well." if at.tpr.low <= at.fpr_high else ""
    first = (
        f"{chosen}{',' * several} finds {_percent(at.tpr.value)} of the members at a threshold that "
        f"{_percent(at.fpr_seen)} of the others pass, AUC {best.auc.value:.3f}; with {sure}, it finds {low} to {high} "
        f"at a true false-positive rate of at most {fpr}.{guess}"
    )
    rates = f"TPR ≥ {low} at FPR ≤ {fpr} ({chosen}; {sure}; seen: {_percent(at.tpr.value)} at {_percent(at.fpr_seen)})"
    bound = result.bound
    if bound is None:
        second = f"{NO_EPSILON[0].upper()}{NO_EPSILON[1:]}."
        return Headline(None, (first, second), rates)
    epsilon = f"ε ≥ {down(bound.epsilon)} at δ = {bound.delta:g} ({bound.neighbours}; {sure})"
    by = next(one.name for one in result.attacks if one.bound is bound)
    second = f"Fair coins decided who was in, so {by} certifies {epsilon}. {NOT_ALL}."
    if result.theory is not None and bound.epsilon > result.theory.epsilon:
        second += " That is more than its noise promises: look at the training with `epsilometer audit`."
    return Headline(None, (first, second), f"{rates}; {epsilon}, by {by}")


def membership_summary(result: MembershipResult, width: int | None = None) -> str:
    """The headline, then models, accuracies, and a statement for every attack."""
    plan = result.plan
    members = int(plan.member(0).sum())
    models = f"{plan.targets} target{'s' * (plan.targets > 1)}, {plan.references} references, seed {plan.seed}"
    rows: list[Row] = [
        ("attacked", plan.words()),
        ("records", f"{len(plan.data)}, {members} of them in the first target; {len(plan.population)} in no model"),
        ("models", f"{models}, {result.seconds:.1f} s"),
    ]
    if result.train_accuracy is not None and result.test_accuracy is not None:
        shares = f"{_percent(result.train_accuracy)} on members, {_percent(result.test_accuracy)} on others"
        rows.append(("accuracy", shares))
    if result.theory is not None:
        rows.append(("theory", f"ε ≤ {up(result.theory.epsilon)} at δ = {result.theory.delta:g}"))
    for one in result.attacks:
        low, high = one.tpr_at
        rows.append((one.name, f"AUC {_limits(one.auc)}, balanced accuracy {one.balanced_accuracy.value:.3f}"))
        for at in (low, high):
            fpr = f"true FPR at most {_at_most(at.fpr_high)}"
            rows.append(
                ("", f"TPR {_limits(at.tpr)} where {100 * at.fpr_wanted:g} % of the others pass at most; {fpr}")
            )
        if one.bound is not None:
            rows.append(("", f"certified ε ≥ {down(one.bound.epsilon)}"))
    rows.append(("limits", f"with {confidence(result.confidence)}, {held(len(result.attacks))}"))
    rows.append(("meaning", NO_EPSILON if result.bound is None else f"{NOT_ALL}."))
    return told(membership_headline(result).sentences, rows, width)


def held(attacks: int) -> str:
    """Of which numbers limits hold at once."""
    each = "each kind of number by itself, a TPR together with its true FPR"
    return f"for all {attacks} attacks at once, so that the strongest may be picked; {each}" if attacks > 1 else each


def membership_to_json(result: MembershipResult, command: str = "") -> dict[str, Any]:
    """The result as plain data; the report follows from it."""
    plan, headline, pictures = result.plan, membership_headline(result), result.pictures()
    figures = {"roc": result.figure().to_dict()}
    if pictures is not None:
        figures["exposed"] = pictures.to_dict()
    document = {
        "kind": plan.kind,
        "schema": SCHEMA,
        "membership": True,
        "warning": OF_MEMBERS,
        "headline": str(headline),
        "quote": headline.quote,
        "verdict": None,
        "attacked": plan.words(),
        "by_coins": plan.by_coins,
        "lower_bound": result.bound and result.bound.to_dict(),
        "upper_bound": result.theory and result.theory.to_dict(),
        "family_bound": None,
        "accuracy": {"members": result.train_accuracy, "others": result.test_accuracy},
        "strongest": result.strongest.name,
        "limits_hold": {  # the error that each attack has, so that the strongest of them is paid for
            "confidence": result.confidence,
            "attacks": len(result.attacks),
            "confidence_of_each": result.strongest.auc.confidence,
            "how": held(len(result.attacks)),
        },
        "attacks": [one.to_dict() for one in result.attacks],
        "exposed": [one.to_dict() for one in result.exposed],
        "records": {"tossed": len(plan.data), "population": len(plan.population)},
        "trials": {"targets": plan.targets, "references": plan.references},
        "stopped_early": False,
        "confidence": result.confidence,
        "seconds": round(result.seconds, 3),
        "seed": plan.seed,
        "plan": plan.to_dict(),
        "plan_sha256": plan.fingerprint(),
        "scores_sha256": "",
        "versions": versions(),
        "figures": figures,
        "command": command,
    }
    converted: dict[str, Any] = json_values(document)
    return converted


def membership_columns(result: MembershipResult) -> Columns:
    """A row for each target and record: its number, class, whether it was in, and the score of every attack."""
    plan = result.plan
    rows, targets = len(plan.data), plan.targets
    columns: Columns = {
        "target": np.repeat(np.arange(targets), rows).tolist(),
        "record": np.tile(np.arange(rows), targets).tolist(),
        "class": np.tile(plan.data.y, targets).tolist(),
        "member": result.attacks[0].evidence.member.astype(int).tolist(),
    }
    return columns | {_column(one.name): one.evidence.scores.tolist() for one in result.attacks}


def _column(attack: str) -> str:
    """Higher scores mean member in all of them; a column that is called `loss` would be read the other way round."""
    return f"{attack}-attack" if attack == "loss" else attack


def write_membership(directory: Path, result: MembershipResult, command: str = "") -> Written:
    """result.json, scores.csv and report.html of a run, each whole or not at all."""
    import hashlib

    scores = csv_of(membership_columns(result))
    document = membership_to_json(result, command) | {"scores_sha256": hashlib.sha256(scores).hexdigest()}
    return write_document(directory, document, RESULTS[1], scores)


def write_membership_scores(target: Path, result: MembershipResult) -> int:
    """The scores to a new file, CSV or Parquet by its name; how many records there were."""
    columns = membership_columns(result)
    write_columns("scores", target, columns)
    return len(columns["record"])


def _limits(one: Interval) -> str:
    return f"{one.value:.3f} ({down(one.low)} to {ceiled(one.high)})"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _at_most(share: float) -> str:
    return f"{up(100 * share, 2)} %"
