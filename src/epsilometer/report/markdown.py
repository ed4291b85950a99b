"""A finding as Markdown: for a CI's job summary, and for a model card."""

from __future__ import annotations

import re
from collections.abc import Sequence

from epsilometer import __version__
from epsilometer.report.finding import Finding, Row
from epsilometer.report.headline import meaning
from epsilometer.report.release import REFUTED, evidence, is_refused, residual_risk


def job_summary(finding: Finding) -> str:
    """The whole finding: a heading, a table, and how to have it again."""
    heading = [f"## Epsilometer: {_text(finding.title)}", "", *_refused(finding)]
    return "\n".join([*heading, *markdown_table(finding.rows()), *_again(finding)]) + "\n"


def model_card(finding: Finding) -> str:
    """What belongs into a model card: claim, residual risk, what an attack has shown, by whom, and how it was done."""
    low, upper = finding.lower, None if finding.upper_epsilon is None else finding.theory
    shown = f"{finding.proved} at δ = {low.delta:g} ({low.neighbours}), {low.kind}"
    rows: list[tuple[str, str | None]] = [
        *(("FAULT INJECTED", fault) for fault in finding.faults),
        ("claimed", finding.claim),
        ("verdict", finding.outcome),
        ("residual risk", residual_risk(upper, finding.outcome)),
        ("evidence", evidence(shown)),
        ("quote", None if finding.headline is None else finding.headline.quote),
        ("confidence", f"{low.confidence:.12g}"),
        ("theory", finding.theory),
        ("adversary", finding.adversary),
        ("threat model", finding.threat_model),
        ("trials", finding.trials),
        ("blind spot", finding.unseen),
        ("method", f"{low.method}, epsilometer {__version__}"),
    ]
    means = meaning(finding.outcome, low.confidence)
    known = [(label, text) for label, text in rows if text]
    parts = ["## Privacy audit", "", *_refused(finding), *markdown_table(known), "", means, *_again(finding)]
    return "\n".join(parts) + "\n"


def _refused(finding: Finding) -> list[str]:
    """Above the table, where nobody can miss it."""
    return [f"**{REFUTED}**", ""] if is_refused(finding.outcome) else []


def markdown_table(rows: Sequence[Row]) -> list[str]:
    """Rows of a label and a text, escaped."""
    return ["| | |", "|---|---|", *(f"| {_text(label)} | {_text(text)} |" for label, text in rows)]


def _again(finding: Finding) -> list[str]:
    if not finding.command:
        return []
    command = _one_line(finding.command)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", command)), default=0))
    return ["", "To have it again:", "", f"{fence}console", f"$ {command}", fence]


def _text(text: str) -> str:
    r"""Words from outside, which must neither end a cell nor begin a tag or a link.

    >>> print(_text("a|b <!-- c\n[d](e) f_g"))
    a\|b &lt;!-- c \[d\](e) f\_g
    """
    escaped = _one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|])", r"\\\1", escaped)


def _one_line(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in " ".join(text.split()))
