"""The report of single records: whose ε is it?"""

from __future__ import annotations

from typing import Any

from epsilometer.figures import Table
from epsilometer.figures.figure import number
from epsilometer.report.kinds.shared import figures_in, flat, reproducing
from epsilometer.report.page import Block, Drawn, Facts, Numbers, Page, Points, Section, Words

Document = dict[str, Any]
SHOWN = 10  # records of each end in a table; all are in records.csv
LIMITS = (
    "A record's ε depends on the record and on all others. It is private itself: whoever publishes it leaks.",
    "It speaks of this record among these data. With other data, the same record may pay more.",
    "Estimates (rules sum and mean) use the mean over a few trainings for an expectation. A rare training in which a "
    "record costs far more may have been missed; what is certified has accounted for that.",
    "Individual accounting describes one training that was released. It is no promise about the algorithm.",
    "The worst case is what may be published and promised.",
)
_COLUMNS = {
    "row": "record",
    "label": "class",
    "epsilon": "ε",
    "certified": "certified",
    "costliest_training": "costliest",
    "loss": "loss",
    "right": "right",
    "membership_accuracy_at_most": "told",
    "memorised_at_most": "memorised",
    "reconstructed_at_most": "named",
}
_MEASURED = {
    "row": "record",
    "epsilon": "ε by theory",
    "certified_at_least": "certified ε ≥",
    "within": "within",
    "auc": "AUC",
    "strength": "strength (μ)",
    "right_with": "right with it",
    "right_without": "right without",
    "memorised": "memorised",
}
_SECTIONS = (
    ("epsilons", "Against the worst case"),
    ("classes", "Classes"),
    ("losses", "Losses"),
    ("gains", "Along the training"),
    ("records", "The least and the most exposed"),
)


def page(document: Document) -> Page:
    figures = figures_in(document)
    drawn = [Section(title, [Drawn(figures[name])]) for name, title in _SECTIONS if name in figures]
    measured = [Section("What attacks measure", _measured(document))] if document["measured"] else []
    return Page(
        title=f"Records of: {document['training']}",
        kind="Privacy of single records",
        verdict=None,
        sentences=[document["headline"]],
        sections=[
            Section("At a glance", [Facts("In short", _facts(document))]),
            *drawn,
            Section("Least and most exposed, in numbers", _ends(document)),
            *measured,
            Section("Limits", [Points(LIMITS)]),
            Section("Everything that decides the result", [
                Numbers("Parameters of the plan", Table(("parameter", "value"), tuple(_settings(document)))),
                Facts("Versions", list(flat(document["versions"]))),
                *reproducing(document),
            ]),
        ],
        version=document["versions"]["epsilometer"],
        warnings=[document["warning"]],
    )  # fmt: skip


def _settings(document: Document) -> list[tuple[str, str]]:
    plan = {key: value for key, value in document["plan"].items() if key != "records"}
    return [*flat(plan), ("records", f"{len(document['records'])} rows, in records.csv")]


def _facts(document: Document) -> list[tuple[str, str]]:
    worst, found = document["worst_case"], document["right_against_wrong"]
    free = document["unlearned_for_free"]
    test = "" if found["p_value"] is None else f"; Mann–Whitney, one-sided: p = {found['p_value']:.2g}"
    return [
        ("rule", document["rule"]),
        ("ε of a record is", document["epsilons_are"]),
        ("worst case", f"ε ≤ {number(float(worst['epsilon']), 4)} at δ = {worst['delta']:g} ({worst['accountant']}); "
         f"by the moments that records' ε are made of, {number(float(worst['by_renyi']), 4)}"),
        ("quantiles of ε", ", ".join(f"{float(share):.0%}: {number(float(value), 3)}"
                                     for share, value in document["quantiles"].items())),
        ("classified correctly", f"{found['right']} records, median ε {_or_none(found['median_right'])}; "
         f"{found['wrong']} others, {_or_none(found['median_wrong'])}{test}"),
        ("unlearning", f"{100 * free['share']:.3g} % of records have ε ≤ {free['epsilon']:g}"),
        *([("certified", document["certified"])] if document.get("certified") else []),
        ("trainings", f"{document['trainings']}, looked at every {document['checkpoints']['every']} steps, "
         f"seed {document['seed']}"),
    ]  # fmt: skip


def _or_none(value: Any) -> str:
    return "–" if value is None else number(float(value), 3)


def _ends(document: Document) -> list[Block]:
    rows = sorted(document["records"], key=_exposure)
    words = (
        "Beside its ε, what is certified of a record and what the most costly training has cost it (where there are "
        "several), its loss, and the share of last models that get it right. Then what its ε would allow at most. "
        "Told: how often an attacker is right who asks whether it was there (starting from 50 : 50). "
        "Memorised: by how much its presence changes how often a model gets it right. Named: how often it is named by "
        f"an attacker who names it once in {document['candidates']} times where it was not there. These are as sure as "
        "ε itself: an estimate's are estimates."
    )
    blocks: list[Block] = [Words(words)]
    for caption, shown in (("Least exposed", rows[:SHOWN]), ("Most exposed", rows[::-1][:SHOWN])):
        blocks.append(Numbers(caption, _table(shown, _COLUMNS)))
    return blocks


def _exposure(row: Document) -> tuple[float, float, int]:
    """As `InstanceResult.from_least_to_most_exposed` has it."""
    own = float(row["epsilon"])
    again = row.get("costliest_training")
    return own, own if again is None else float(again), row["row"]


def _table(rows: list[Document], columns: dict[str, str]) -> Table:
    """Those columns that there are, in few digits: all of them are in the files."""
    known = {name: words for name, words in columns.items() if name in rows[0]}
    return Table(tuple(known.values()), tuple(tuple(_cell(name, row[name]) for name in known) for row in rows))


def _cell(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if name in ("row", "label") else number(float(value), 3)


def _measured(document: Document) -> list[Block]:
    words = (
        "For each of these records, trainings with it and without it were told apart by an adversary who sees every "
        "step and knows all other records. The bounds hold all at once, with the plan's confidence. One that exceeds "
        "the record's own ε (not within) shows that this is too low for other trainings: an estimate may be."
    )
    return [Words(words), Numbers("Certified leakage", _table(document["measured"], _MEASURED))]
