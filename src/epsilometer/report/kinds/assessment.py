"""What an impact assessment asks for, in the order of NIST SP 800-226 and of the GDPR's Article 35."""

from __future__ import annotations

from typing import Any

from epsilometer.neighbours import RECORD, Neighbours, Relation
from epsilometer.report.page import NOT_MEASURED, Block, Facts, Words
from epsilometer.report.release import evidence, is_refused, residual_risk
from epsilometer.rounding import up

Document = dict[str, Any]
_RELATIONS = {
    Relation.ADD_REMOVE: "add or remove: one data set has one {unit} more than the other",
    Relation.REPLACE: "replace: one {unit} has another value",
    Relation.ZERO_OUT: "zero-out: one {unit} is replaced by one that contributes nothing",
}


def assessment(document: Document) -> list[Block]:
    return [
        Words(
            "What this audit can say to each point, so that it can be copied; what it did not look at is called not "
            "measured, and is for whoever runs the training to answer."
        ),
        Facts("In the order of NIST SP 800-226", _nist(document)),
        Facts("In the order of GDPR Article 35(7)", _gdpr(document)),
    ]


def _nist(document: Document) -> list[tuple[str, str]]:
    plan, claim, low = document["plan"], document["claim"], document["lower_bound"]
    form = "a whole curve" if claim["form"] != "point" else "a point only; no curve is claimed"
    upper = document["upper_bound"]
    accountant = NOT_MEASURED + ": it is not stated how much noise is added to what"
    if upper is not None:
        accountant = f"{upper['accountant']}: {_upper(document)}, for sampling and noise as stated"
    group, said = low["group_size"], Neighbours.read(plan["claim"])
    return [
        ("claim, as a curve", f"{form}: {document['claim_words']}"),
        ("claim, as a point", f"ε = {up(float(claim['epsilon']))} at δ = {claim['delta']:g}"),
        ("unit of privacy", f"one {said.unit} of the data"
         + (f"; worlds of the audit differ in {said.counted(group)}" if group > 1 else "")
         + f". A person {with_several(said)} is protected less."),
        ("relation between neighbours", _RELATIONS[said.relation].format(unit=said.unit)),
        ("trust model", "central: whoever trains sees all records. Attackers see what the threat model above says."),
        ("mechanism", document["training"]),
        ("accountant and its assumptions", accountant),
        ("other spending: tuning, preprocessing, pre-training", f"{NOT_MEASURED}; whatever looked at the same records "
         "before or beside this training spends as well, and is not in ε"),
        ("metadata that depends on neighbours", f"{NOT_MEASURED}; the number of records, the data's order and "
         "statistics "
         "used for preprocessing are taken as known to everybody"),
        ("randomness", f"{NOT_MEASURED}; trials use pseudo-random numbers that follow from seed {document['seed']}, so "
         "that they can be repeated. What is deployed must use a secret seed of a cryptographic generator."),
        ("arithmetic", f"{NOT_MEASURED}; noise is added in floating point, whose last bits can leak (Mironov 2012)"),
        ("residual risk", residual_risk(_upper(document), document["verdict"])),
        ("evidence from attacks", evidence(document["quote"])),
        ("what was not tested", _untested(document)),
    ]  # fmt: skip


def _untested(document: Document) -> str:
    others = [one["name"] for one in document["adversaries"] if one["state"] != "played"]
    rare = document.get("blind_spot")
    words = f"adversaries that were not played ({', '.join(others)}); other data sets and pairs of neighbours"
    if rare is None:
        return words
    share = "leaks in some trainings only" if rare >= 1 else f"leaks in fewer than {100 * rare:.2g} % of trainings"
    return f"{words}; {share}"


def _upper(document: Document) -> str | None:
    """What theory allows at most, with its caveat."""
    upper = document["upper_bound"]
    if upper is None:
        return None
    caveat = f" ({upper['caveat']})" if upper["caveat"] else ""
    return f"ε ≤ {up(float(upper['epsilon']))} at δ = {upper['delta']:g}{caveat}"


def with_several(said: Neighbours) -> str:
    """Of whom the promise does not speak, since more than one unit is theirs."""
    return "with several records" if said.unit == RECORD else f"behind several {said.units}"


def audience(document: Document) -> str:
    """Whom the promise protects, as headings call it: a person, by whose record; or one of another unit."""
    unit = Neighbours.read(document["plan"]["claim"]).unit
    return "a person" if unit == RECORD else f"one {unit}"


def _gdpr(document: Document) -> list[tuple[str, str]]:
    return [
        ("(a) the processing and its purposes", f"{document['training']}; purposes: for the controller to describe"),
        ("(b) necessity and proportionality", f"{NOT_MEASURED}; for the controller to assess"),
        ("(c) risks to rights and freedoms", "that others learn whether, and with what, a person is in the data. "
         f"How much at most: {residual_risk(_upper(document), document['verdict'])}. Evidence: "
         f"{evidence(document['quote'])}. What ε means for {audience(document)} is in the section of that name."),
        ("(d) measures and safeguards", "differential privacy as claimed: ε = "
         f"{up(float(document['claim']['epsilon']))} at "
         f"δ = {document['claim']['delta']:g}; this audit: {document['verdict']}"
         f"{', so do not release' * is_refused(document['verdict'])}"),
    ]  # fmt: skip
