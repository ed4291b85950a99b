"""The report of a watched command: every private training in it, with its verdict and its checks."""

from __future__ import annotations

import shlex
from typing import Any

from epsilometer.figures import Figure, Table
from epsilometer.neighbours import Neighbours
from epsilometer.report.kinds.shared import figures_in, flat, told
from epsilometer.report.page import Block, Code, Drawn, Facts, Numbers, Page, Points, Section, Words
from epsilometer.report.statements import row_in_words
from epsilometer.rounding import down, up

Document = dict[str, Any]
LIMITS = (
    "This does not prove privacy. What is tested is the statements on which the accountant's promise rests.",
    "One run was watched. What it shows holds for this run.",
)
NOT_REPLAYED = (
    "Without replayed neighbours, what a training releases beside its noisy sums is looked at by checks only."
)
_WORST = ("violated", "inconclusive", "consistent")


def page(document: Document) -> Page:
    trainings = document["trainings"]
    figures = figures_in(document)
    outcomes = [one["verdict"] for one in trainings]
    verdict = next((outcome for outcome in _WORST if outcome in outcomes), None)
    sections = []
    if "noise" in figures:
        sections.append(Section("Noise", [Drawn(figures["noise"])]))
    sections += [_training(i, one, figures) for i, one in enumerate(trainings, start=1)]
    settings = {key: document[key] for key in ("exit_code", "libraries", "processes")}
    sections += [
        Section("Limits", [Points(LIMITS if all(map(_replayed, trainings)) else (*LIMITS, NOT_REPLAYED))]),
        Section(
            "What was run", [Code("The command", shlex.join(document["command"])), Facts("Found", list(flat(settings)))]
        ),
    ]
    sentences = [f"Training {i}: {one['headline']}" for i, one in enumerate(trainings, start=1)]
    nothing = "Nothing was audited: no private training was seen."
    return Page(
        title=f"Watched: {shlex.join(document['command'])}",
        kind="Privacy audit of a command while it ran",
        verdict=verdict,
        sentences=sentences or [nothing],
        quote="; ".join(one["quote"] for one in trainings if one.get("quote")),
        sections=sections,
        version=document["versions"]["epsilometer"],
        warnings=[f"Not audited: {why}" for why in document["failures"]],
    )


def _replayed(training: Document) -> bool:
    return any(one["name"] == "replayed-state" and one["status"] != "not applicable" for one in training["checks"])


def _training(number: int, one: Document, figures: dict[str, Figure]) -> Section:
    blocks: list[Block] = [Words(f"{one['verdict']}: {one['reason']}")]
    if one.get("statements"):  # none in results of the first schema
        stands = tuple((row["statement"], row["standing"], row_in_words(row)) for row in one["statements"])
        blocks.append(Numbers("On what its promise rests", Table(("statement", "standing", "found"), stands)))
    blocks += _epsilon(one.get("epsilon"))
    blocks += [Drawn(figures[name]) for name in (f"epsilon {number}",) if name in figures]
    if f"training {number}" in figures:
        blocks.append(Drawn(figures[f"training {number}"]))
    if one["checks"]:
        rows = tuple((check["name"], check["status"], check["reason"]) for check in one["checks"])
        blocks.append(Numbers("Checks", Table(("check", "status", "what was found"), rows)))
    facts = [(key, told(value)) for key, value in one.items() if not isinstance(value, list | dict)]
    facts += [(f"settings.{key}", text) for key, text in flat(one["settings"])]
    blocks.append(Facts("What it states, and what was seen", facts))
    return Section(f"Training {number}", blocks)


def _epsilon(found: Document | None) -> list[Block]:
    """What the steps show, what follows from that for the whole training, and what is promised."""
    if found is None:  # of a version that did not work it out
        return []
    step, lower, upper = found["step_strength"], found["family_bound"], found["upper_bound"]
    missing = f"not measured: {found['not_measured']}"
    rows = (
        ("of a step, certified", "not measured" if step is None else f"μ ≥ {down(step['mu'])}"),
        (
            f"of the whole training, {found['assumes']}",
            missing if lower is None else _at(f"≥ {down(lower['epsilon'])}", lower),
        ),
        (
            "promised by what is accounted",
            "not known" if upper is None else _at(f"≤ {up(float(upper['epsilon']))}", upper),
        ),
    )
    return [Numbers("How much it leaks", Table(("leak", "found"), rows))]


def _at(epsilon: str, bound: Document) -> str:
    how = bound.get("accountant") or f"{100 * bound['confidence']:.10g} % confidence"
    return f"ε {epsilon} at δ = {bound['delta']:g} ({Neighbours.read(bound)}), {how}"
