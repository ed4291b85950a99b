"""How a bound was computed, in steps that a reader can follow with the counts alone."""

from __future__ import annotations

import math
from typing import Any

from epsilometer.bounds import clopper_pearson
from epsilometer.evidence import Counts
from epsilometer.neighbours import Neighbours
from epsilometer.report.page import Block, Code, Facts, Points, Words
from epsilometer.report.scores import bound_command
from epsilometer.rounding import down

Document = dict[str, Any]
_METHODS = {
    "exact-rank": "Before any score was seen, ranks were planned. At each, a score of one world is the threshold, and "
    "the scores of the other world beyond it are counted. If the training were (ε, δ)-DP, so many would lie beyond it "
    "with a probability that is computed exactly at the least favourable pair of worlds. ε is refuted if that "
    "probability, paid for over all planned ranks, is at most 1 − confidence; the bound is the largest such ε.",
    "eprocess": "Trials are bet on one after another. If the training were (ε, δ)-DP, the winnings would exceed 1/α "
    "with probability α at most, whenever one looks. The bound is the largest ε against which they did.",
    "clopper-pearson": "Limits on the false-positive and the false-negative rate (Clopper & Pearson 1934) hold at "
    "once; ε is the least that allows both: ln((TPR − δ)/FPR), or the same with the roles of the worlds exchanged.",
    "one-run": "Each canary was in the training or not by a fair coin. If the training were (ε, δ)-DP, so many right "
    "guesses would have a probability that is bounded (Steinke et al. 2023, Mahloujifar et al. 2024). The bound is "
    "the largest ε for which it is at most 1 − confidence.",
}


def worked_example(document: Document) -> list[Block]:
    low = document["lower_bound"]
    caption = "The certified number" if low["kind"] == "certified" else "The number"
    blocks: list[Block] = [Facts(caption, _rows(document))]
    explained = next((words for name, words in _METHODS.items() if low["method"].startswith(name)), None)
    if explained is not None:
        blocks.append(Words(explained))
    counts = low.get("counts")
    if counts is not None and document["independent"]:
        blocks += _checked(document, counts)
    blocks.append(Words("The scores themselves are in scores.csv; this judges them again, without any training:"))
    blocks.append(Code("With the program", _command(document)))
    return blocks


def _rows(document: Document) -> list[tuple[str, str]]:
    low = document["lower_bound"]
    rows = [
        ("bound", document["quote"]),
        ("method", low["method"]),
        ("rests on", document["proof"]),
        ("says member if", str(low.get("member_if") or "–").replace("threshold", f"{low.get('threshold')}")),
        (f"{Neighbours.read(low).units} in which worlds differ", str(low["group_size"])),
    ]
    if "p_value" in low and low["p_value"] is not None:
        rows.append(("probability of as much at the bound", f"{low['p_value']:.4g} at most"))
    return rows


def _checked(document: Document, counts: dict[str, Any]) -> list[Block]:
    """A simpler bound from the same counts, which anybody can compute."""
    low, found = document["lower_bound"], Counts(**counts, group_size=document["lower_bound"]["group_size"])
    unit = Neighbours.read(low).unit
    simple = clopper_pearson(found, delta=low["delta"], confidence=low["confidence"])
    alpha, proof = 1.0 - low["confidence"], simple.proof.to_dict()
    steps = [
        f"Of {found.out_trials} trials without the {unit}, {found.fp} say member: a rate of {found.fpr:.4f}.",
        f"Of {found.in_trials} trials with it, {found.fn} do not: a rate of {found.fnr:.4f}.",
        f"With probability {low['confidence']:.10g}, the true rates are at most {proof['fpr_high']:.4f} and "
        f"{proof['fnr_high']:.4f} (Clopper & Pearson, {alpha / 2:.4g} for each).",
        f"So ε ≥ {down(simple.epsilon)}, had this threshold been fixed beforehand. It was not, so this is a check of "
        "the "
        "size, not the certified number: that one pays for the choice, and uses the ranks themselves.",
    ]
    code = (
        "from math import log\nfrom scipy.stats import beta\n"
        f"fp, tn, fn, tp, delta, alpha = {found.fp}, {found.tn}, {found.fn}, {found.tp}, {low['delta']!r}, "
        f"{alpha:.10g}\n"
        "fpr = beta.isf(alpha / 2, fp + 1, tn) if tn else 1.0\n"
        "fnr = beta.isf(alpha / 2, fn + 1, tp) if tp else 1.0\n"
        "ratios = [(1 - delta - fnr) / fpr, (1 - delta - fpr) / fnr]\n"
        "print(log(max(1.0, *ratios)))"
    )
    blocks: list[Block] = [Points(steps, numbered=True)]
    if found.group_size == 1 and math.isfinite(simple.epsilon):
        blocks.append(Code(f"The same with scipy: it prints {simple.epsilon:.6f}", code))
    return blocks


def _command(document: Document) -> str:
    command = bound_command("scores.csv", document["plan"])
    return "# scores of single steps: no bound for runs takes them" if command is None else command
