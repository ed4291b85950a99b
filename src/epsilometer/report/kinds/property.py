"""The report of property inference."""

from __future__ import annotations

from typing import Any

from epsilometer.figures import Table
from epsilometer.report.kinds.shared import every_setting, figures_in, reproducing
from epsilometer.report.page import Block, Drawn, Facts, Numbers, Page, Points, Section, Words
from epsilometer.rounding import ceiled, down, up

Document = dict[str, Any]
LIMITS = (
    "This does not prove privacy. The adversary is passive, looks at updates through one linear classifier, and has as "
    "many records as its victim. A stronger one may see more.",
    "There is one victim in a round. Among many participants whose updates are only known as a sum, less is seen.",
    "A property that goes with the task is learned by every good model, and no noise at the level of records hides it.",
)


def page(document: Document) -> Page:
    figures = figures_in(document)
    return Page(
        title=f"Property inference: {document['property']['name']}",
        kind="What updates of collaborative learning tell of a participant",
        verdict=None,
        sentences=[document["headline"]],
        quote=document["quote"],
        sections=[
            Section("At a glance", [Facts("In short", _facts(document)), Drawn(figures["scores"])]),
            Section("By rounds", _rounds(document, figures)),
            Section("What a participant is promised", [Words(_promise(document))]),
            Section("Limits", [Points((*LIMITS, f"What intervals assume: {document['assumes']}."))]),
            Section("Everything that decides the result", [*every_setting(document), *reproducing(document)]),
        ],
        version=document["versions"]["epsilometer"],
    )


def _facts(document: Document) -> list[tuple[str, str]]:
    found, trials = document["property"], document["trials"]
    return [
        ("attacked", document["attacked"]),
        ("property", f"{found['name']}: {found['having']} of {found['records']} records"),
        ("AUC", f"{_interval(document['auc'])}, {100 * document['confidence']:.10g} % confidence"),
        ("balanced accuracy", _interval(document["balanced_accuracy"])),
        ("control", document["control"]["meaning"]),
        ("collaborations", f"{trials['out']} without and {trials['in']} with the property, seed {document['seed']}"),
        ("models", f"{100 * document['accuracy']:.1f} % of all records right, in the mean"),
    ]


def _rounds(document: Document, figures: Any) -> list[Block]:
    rows = tuple((str(one["rounds"]), _interval(one["auc"])) for one in document["by_rounds"])
    words = (
        "The AUC of the mean score of the first rounds. The last row was chosen beforehand, and is the result; each "
        "interval has its confidence by itself."
    )
    return [Words(words), Drawn(figures["rounds"]), Numbers("Seen in the first rounds", Table(("rounds", "AUC"), rows))]


def _promise(document: Document) -> str:
    low, high = document["lower_bound"], document["upper_bound"]
    if low is None or high is None:
        return f"{document['no_epsilon'][0].upper()}{document['no_epsilon'][1:]}."
    return (
        f"The unit is a {document['unit']}: all of its data are replaced. The noise promises ε ≤ "
        f"{up(float(high['epsilon']))} at δ = {high['delta']:g} ({high['accountant']}). The collaborations that were "
        f"played certify ε ≥ {down(float(low['epsilon']))} with {100 * low['confidence']:.10g} % confidence, from one "
        "score each. Between the two nothing is known."
    )


def _interval(one: Document) -> str:
    return f"{one['value']:.3f} ({down(one['low'])} to {ceiled(one['high'])})"
