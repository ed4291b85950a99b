"""Findings as JUnit XML, which every CI reads: one suite, with a test for each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from xml.etree import ElementTree

from epsilometer.report.finding import Finding
from epsilometer.report.release import DO_NOT_RELEASE, is_refused

OURS = b'<testsuites name="epsilometer"'  # how our files begin, after the declaration
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Case:
    """One test: what was found (`message`), and all there is to say of it."""

    name: str
    message: str
    words: str = ""
    kind: str = ""
    failed: bool = False
    skipped: bool = False
    properties: Mapping[str, object] = field(default_factory=dict)


def junit_xml(finding: Finding, *, require_consistent: bool = False) -> bytes:
    """Violated is a failure; inconclusive is skipped, or a failure where `consistent` is required."""
    failed = finding.outcome == "violated" or (require_consistent and finding.outcome == "inconclusive")
    words = "\n".join(f"{label}: {text}" for label, text in [*finding.rows(), ("again", finding.command)] if text)
    advice = f"{DO_NOT_RELEASE} " if is_refused(finding.outcome) else ""
    one = Case(
        finding.name,
        f"{advice}{finding.outcome}: {finding.reason}",
        words,
        finding.outcome or "",
        failed,
        skipped=finding.outcome == "inconclusive" and not failed,
        properties=finding.properties(),
    )
    return suites([one], finding.seconds)


def suites(cases: Sequence[Case], seconds: float) -> bytes:
    """A file with one suite of these tests, which took so long together."""
    numbers = {
        "tests": len(cases),
        "failures": sum(case.failed for case in cases),
        "errors": 0,
        "skipped": sum(case.skipped for case in cases),
        "time": f"{seconds:.3f}",
    }
    counted = {name: str(value) for name, value in numbers.items()}
    root = ElementTree.Element("testsuites", {"name": "epsilometer", **counted})
    suite = ElementTree.SubElement(root, "testsuite", {"name": "epsilometer", **counted})
    for case in cases:
        _add(suite, case, f"{seconds / len(cases):.3f}")
    ElementTree.indent(root)
    body: str = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{body}\n'.encode()


def _add(suite: ElementTree.Element, case: Case, seconds: str) -> None:
    name = {"classname": "epsilometer", "name": _xml(case.name), "time": seconds}
    element = ElementTree.SubElement(suite, "testcase", name)
    if case.properties:
        properties = ElementTree.SubElement(element, "properties")
        for label, value in case.properties.items():
            ElementTree.SubElement(properties, "property", {"name": label, "value": _xml(str(value))})
    words = case.words or case.message
    if case.failed or case.skipped:
        message = {"message": _xml(case.message), "type": case.kind or ("failed" if case.failed else "skipped")}
        ElementTree.SubElement(element, "failure" if case.failed else "skipped", message).text = _xml(words)
    else:
        ElementTree.SubElement(element, "system-out").text = _xml(words)


def _xml(text: str) -> str:
    """Without what XML cannot hold."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
