"""The report of an audit: of a training, or of a mechanism."""

from __future__ import annotations

import json
import math
from typing import Any

from epsilometer.figures import Table
from epsilometer.figures.figure import number
from epsilometer.neighbours import RECORD, Neighbours
from epsilometer.report.kinds.assessment import assessment, audience, with_several
from epsilometer.report.kinds.shared import every_setting, figures_in, reproducing, yes
from epsilometer.report.kinds.worked_example import worked_example
from epsilometer.report.page import NOT_MEASURED, Block, Drawn, Facts, Numbers, Page, Points, Section, Words
from epsilometer.report.person import promise_table
from epsilometer.report.release import DO_NOT_RELEASE, is_refused
from epsilometer.rounding import down, up

Document = dict[str, Any]
LIMITS = (
    "This does not prove privacy. A lower bound is what one attack could show, with its confidence; "
    "a stronger attack may show more.",
    "What was played is one adversary against one training on one data set. Others may find more.",
    "The claim is about every pair of neighbouring data sets; one pair was tried.",
    "The verdict may accuse a training that keeps its claim, with probability 1 − confidence at most, for each audit.",
    "Nothing here speaks of what happens to records before or after training, or of people {with_several}.",
)


def page(document: Document) -> Page:
    figures = figures_in(document)
    subject = document["plan"].get("subject", {})
    mechanism = subject.get("kind") == "releases"
    said = Neighbours.read(document["plan"]["claim"])
    sections = [
        Section("At a glance", [Drawn(figures["scale"]), *_facts(document)]),
        Section(f"What it means for {audience(document)}", _person(document)),
        Section("The attack", [Drawn(figures["scores"]), *_attack(document)]),
        Section("What the claim allows", [Drawn(figures["trade-off"])]),
        *([Section("As trials came in", [Drawn(figures["path"])])] if "path" in figures else []),
        *([Section("What was put in", [Drawn(figures["records"])])] if "records" in figures else []),
        *([Section("The two values", _neighbours(document))] if document["neighbours"] else []),
        Section("Threat model", _threat(document)),
        Section("Utility", _utility(document)),
        Section("Accountants", _accountants(document)),
        Section("How the bound was computed", worked_example(document)),
        Section("For an impact assessment", assessment(document)),
        Section("Limits", [Points([words.format(with_several=with_several(said)) for words in LIMITS])]),
        Section("Everything that decides the result", [*every_setting(document), *reproducing(document)]),
    ]
    return Page(
        title=f"{'Mechanism' if mechanism else 'Training'}: {document['training']}",
        kind=f"Privacy audit of a {'mechanism' if mechanism else 'training'}",
        verdict=document["verdict"],
        sentences=[document["headline"]],
        quote=document["quote"],
        sections=sections,
        version=document["versions"]["epsilometer"],
        warnings=[f"FAULT INJECTED on purpose: {words}" for words in document["injected"]],
    )


def _facts(document: Document) -> list[Block]:
    claim, upper = document["claim"], document["upper_bound"]
    theory = "says nothing: it is not known how much noise is added to what"
    if upper is not None:
        caveat = f"; {upper['caveat']}" if upper["caveat"] else ""
        theory = f"ε ≤ {up(float(upper['epsilon']))} at δ = {upper['delta']:g}, by {upper['accountant']}{caveat}"
    rows = [
        ("claim", f"ε = {number(float(claim['epsilon']), 4)} at δ = {claim['delta']:g}: {document['claim_words']}"),
        ("theory", theory),
        (document["lower_bound"]["kind"], document["quote"]),
        ("adversary", f"{document['adversary']['words']}: {document['adversary']['summary']}"),
        ("trials", f"{document['trials_words']}, seed {document['seed']}"),
        ("verdict", f"{document['verdict']}: {document['reason']}"),
    ]
    return [Facts("In short", rows)]


def _person(document: Document) -> list[Block]:
    measured, unit = document["attack"], Neighbours.read(document["plan"]["claim"]).unit
    whose = "one person's record was used" if unit == RECORD else f"one {unit} is in the data, with all that is theirs"
    blocks: list[Block] = [
        Words(f"An attacker sees the outcome and asks whether {whose}."),
        *_best_possible(document),
    ]
    if measured is not None:
        auc, accuracy = measured["auc"], measured["balanced_accuracy"]
        sure = f"certified, {100 * measured['confidence']:.10g} % confidence for these two together"
        rows = [
            (
                "right, starting from 50 : 50, certified",
                f"{_floor(measured['certified_accuracy'])} % at least",
                "–",
                "–",
                sure,
            ),
            ("odds, certified", f"1 : 1 → {down(measured['certified_odds'])} : 1 at least", "–", "–", sure),
            ("picks the member out of two (AUC)", *_interval(auc)),
        ]
        if accuracy is not None:
            rows.append(("right, starting from 50 : 50", *_interval(accuracy)))
        for one in measured["tpr_at"]:
            limit = f"true FPR at most {100 * one['fpr_high']:.3g} %"
            value, low, high, how = _interval(one["tpr"])
            label = f"TPR where the FPR seen is {100 * one['fpr_wanted']:g} % at most"
            rows.append((label, value, low, high, f"{how}; {limit}"))
        table = Table(("measured", "value", "from", "to (95 %)", "interval"), tuple(rows))
        blocks.append(Numbers("The attack that was played", table))
    return blocks


def _best_possible(document: Document) -> list[Block]:
    """What promises allow at most: those that the verdict leaves standing. A lower bound promises nothing."""
    if is_refused(document["verdict"]):
        unknown = (
            "The claim is refuted, so that it limits no attacker, and theory speaks of a training that does what it "
            f"states. How far the best possible attacker can get is not known. {DO_NOT_RELEASE}"
        )
        return [Words(unknown)]
    # Results of earlier versions do not say what stands.
    standing = [one for one in document["means"] if one.get("stands", not one["label"].startswith("the certified"))]
    words = (
        "Each column says how far the best possible attacker can get at most if that promise is kept: how often a "
        "guess is right if both answers were equally likely before; by how much odds can grow; what may be believed "
        "afterwards by somebody who believed 50 %, 10 % or 1 % before; and how many true members are found at a "
        "false-alarm rate of 1 % and 0.1 %."
    )
    below = (
        f"Odds and beliefs hold but for a probability of δ = {document['claim']['delta']:g}. A whole curve promises "
        "more than its point (ε, δ), so an attacker gets less far: where only the point is known, the point's column "
        "is what can be said. A lower bound promises nothing and has no column."
    )
    return [Words(words), Numbers("The best possible attacker", promise_table(_numbers(standing))), Words(below)]


def _floor(share: float) -> str:
    """In percent, rounded down."""
    return f"{math.floor(share * 1000) / 10:g}"


def _interval(one: Document) -> tuple[str, str, str, str]:
    value, low, high = (f"{100 * one[key]:.1f} %" for key in ("value", "low", "high"))
    return value, low, high, one["how"]


def _numbers(rows: list[Document]) -> list[Document]:
    """Infinities are letters in JSON."""
    return [{**row, "odds": float(row["odds"]), "epsilon": float(row["epsilon"])} for row in rows]


def _attack(document: Document) -> list[Block]:
    words = f"The bound rests on: {document['proof']}. Against the claim: {document['comparison']}."
    if not document["independent"]:
        words += " Scores of one training are not independent: only bounds made for them hold."
    return [Words(words)]


def _neighbours(document: Document) -> list[Block]:
    found = document["neighbours"]
    rows = [("out", json.dumps(found["out"])[:400]), ("in", json.dumps(found["in"])[:400]), ("score", found["score"])]
    return [Facts("Chosen before any release was judged", rows)]


def _threat(document: Document) -> list[Block]:
    adversary = document["adversary"]
    powers = tuple((one["how"], one["power"], yes(one["used"]), yes(one["granted"])) for one in document["powers"])
    others = tuple((one["name"], one["state"], one["summary"]) for one in document["adversaries"])
    return [
        Words(f"The adversary {adversary['threat_model']}."),
        Numbers("Powers", Table(("how", "power", "used here", "granted by this training"), powers)),
        Numbers("Adversaries, played and not played", Table(("adversary", "here", "what it does"), others)),
    ]


def _utility(document: Document) -> list[Block]:
    found = document.get("utility") or {}
    rows = [(key, found.get(key, NOT_MEASURED)) for key in ("training accuracy", "test accuracy")]
    return [Facts("How good the models are", rows)]


def _accountants(document: Document) -> list[Block]:
    found = document["accountants"]
    if not found:
        return [Words("None can be compared: it is not stated how much noise is added to what.")]
    rows = tuple((one["name"], f"ε ≤ {up(float(one['epsilon']))}", one["caveat"] or "–") for one in found)
    delta = document["claim"]["delta"]
    words = "All without a caveat are proved upper bounds for the same mechanism; the smallest is what theory promises."
    return [Words(words), Numbers(f"ε at δ = {delta:g}", Table(("accountant", "promises", "caveat"), rows))]
