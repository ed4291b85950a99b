"""The report of membership attacks."""

from __future__ import annotations

from typing import Any

from epsilometer.figures import Table
from epsilometer.report.kinds.shared import every_setting, figures_in, reproducing
from epsilometer.report.page import Block, Drawn, Facts, Numbers, Page, Points, Section, Words
from epsilometer.report.private import OF_MEMBERS
from epsilometer.rounding import ceiled, down, up

Document = dict[str, Any]
LIMITS = (
    "This does not prove privacy. Attacks that were not played, or more references, may find more.",
    "Rates and areas are of these records and these models. Their intervals take records for independent, which those "
    "of one model are not quite; certified bounds assume nothing of that kind.",
    "An attacker of this kind has records like the training's to train references with. One who has fewer may find "
    "less; one who sees parameters, or several releases, may find more.",
    "That a record was not found says nothing of it: another training of the same kind may expose it.",
)


def page(document: Document) -> Page:
    figures = figures_in(document)
    best = next(one for one in document["attacks"] if one["name"] == document["strongest"])
    groups = [("class", one) for one in best["by_class"]], [("subgroup", one) for one in best["by_subgroup"]]
    sections = [
        Section("At a glance", [*_facts(document), Drawn(figures["roc"])]),
        Section("Every attack", _attacks(document)),
        Section("Who is exposed more than others", _subsets(document, best, groups)),
        Section("The most exposed records", _exposed(document, figures)),
        Section("Limits", [Points(LIMITS)]),
        Section("Everything that decides the result", [*every_setting(document), *reproducing(document)]),
    ]
    return Page(
        title=f"Membership inference: {document['attacked']}",
        kind="How much a model tells about who was in its training data",
        verdict=None,
        sentences=[document["headline"]],
        quote=document["quote"],
        sections=sections,
        version=document["versions"]["epsilometer"],
        warnings=[document.get("warning", OF_MEMBERS)],
    )


def _facts(document: Document) -> list[Block]:
    low, upper, accuracy = document["lower_bound"], document["upper_bound"], document["accuracy"]
    records, trials = document["records"], document["trials"]
    certified = "none: nobody flipped fair coins for the records of a given model"
    if low is not None:
        certified = f"ε ≥ {down(float(low['epsilon']))} at δ = {low['delta']:g}, all attacks together"
    theory = "says nothing: no noise is added, or it is not known how much"
    if upper is not None:
        theory = f"ε ≤ {up(float(upper['epsilon']))} at δ = {upper['delta']:g}, by {upper['accountant']}"
    rows = [
        ("attacked", document["attacked"]),
        ("certified", certified),
        ("theory", theory),
        ("records", f"{records['tossed']}, and {records['population']} that are in no model"),
        ("models", f"{trials['targets']} attacked, {trials['references']} references, seed {document['seed']}"),
    ]
    if accuracy["members"] is not None:  # classes are predicted
        right = f"{_percent(accuracy['members'])} on members, {_percent(accuracy['others'])} on others"
        rows.insert(1, ("accuracy", right))
    return [Facts("In short", rows)]


def _attacks(document: Document) -> list[Block]:
    rows = []
    for one in document["attacks"]:
        low, high = one["tpr_at"]
        bound = one["lower_bound"]
        rows.append((
            one["name"], _interval(one["auc"]), _interval(one["balanced_accuracy"]), _rates(low), _rates(high),
            "–" if bound is None else down(float(bound["epsilon"])), one["summary"],
        ))  # fmt: skip
    columns = ("attack", "AUC", "balanced accuracy", "TPR in %, 0.1 % of others seen to pass",
               "TPR in %, 1 % of others seen to pass", "certified ε ≥", "how it works")  # fmt: skip
    words = (
        f"Intervals are of {_sure(document)}. The threshold of an accuracy was chosen on every other record and judged "
        "on the rest. True positives are read at the lowest threshold that at most the named share of the others was "
        "seen to pass; its true false-positive rate may be higher, and the limit beside it says by how much."
    )
    return [Numbers("Attacks on the same models", Table(columns, tuple(rows))), Words(words)]


def _sure(document: Document) -> str:
    """With which confidence intervals hold, and for what at once."""
    paid, share = document.get("limits_hold"), f"{100 * document['confidence']:.10g} %"
    if paid is None:  # written by a version that did not pay for the choice
        return f"{share} for each number by itself, so those of the strongest of several attacks look too good"
    return f"{share}, {paid['how']}"


def _subsets(document: Document, best: Document, groups: Any) -> list[Block]:
    rows = [
        (kind, one["name"], str(one["members"]), str(one["others"]), _interval(one["auc"]))
        for part in groups
        for kind, one in part
    ]
    if not rows:
        return [Words("No class has both members and others.")]
    ordered = sorted(rows, key=lambda row: (row[0], -float(row[4].split()[0])))
    lows = [one["auc"]["low"] for _, one in groups[0]]
    highs = [one["auc"]["high"] for _, one in groups[0]]
    apart = bool(lows) and max(lows) > min(highs)
    told = "differ: the interval of one lies above another's" if apart else "may be alike: all intervals overlap"
    words = (
        f"Areas under the curve of {best['name']}, the strongest attack. The intervals of all classes"
        f"{' and all attacks' * ('limits_hold' in document)} hold at once ({100 * document['confidence']:.10g} %), and "
        f"so do those of subgroups. Classes {told}."
    )
    columns = ("by", "which", "members", "others", "AUC")
    return [Words(words), Numbers("Disparity", Table(columns, tuple(ordered)))]


def _exposed(document: Document, figures: Any) -> list[Block]:
    words = f"Members of the first target that {document['strongest']} is surest of; rows are those of scores.csv."
    rows = tuple((str(one["row"]), str(one["class"]), f"{one['score']:.4g}") for one in document["exposed"])
    blocks: list[Block] = [Words(words), Numbers("Most exposed", Table(("record", "class", "score"), rows))]
    return [*blocks, *([Drawn(figures["exposed"])] if "exposed" in figures else [])]


def _interval(one: Document) -> str:
    return f"{one['value']:.3f} ({down(one['low'])} to {ceiled(one['high'])})"


def _rates(at: Document) -> str:
    """True positives in percent, and at which true false-positive rate."""
    tpr, fpr = at["tpr"], up(100 * at["fpr_high"], 2)
    limits = f"{down(100 * tpr['low'], 1)} to {ceiled(100 * tpr['high'], 1)}"
    return f"{100 * tpr['value']:.1f} ({limits}), true FPR ≤ {fpr} %"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
