"""A finding as JUnit XML, which every CI reads: one suite with one test."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from epsilometer.report.finding import Finding
from epsilometer.report.release import DO_NOT_RELEASE, is_refused

OURS = b'<testsuites name="epsilometer"'  # how our files begin, after the declaration
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(finding: Finding, *, require_consistent: bool = False) -> bytes:
    """Violated is a failure; inconclusive is skipped, or a failure where `consistent` is required."""
    failed = finding.outcome == "violated" or (require_consistent and finding.outcome == "inconclusive")
    skipped = finding.outcome == "inconclusive" and not failed
    numbers = {
        "tests": 1,
        "failures": int(failed),
        "errors": 0,
        "skipped": int(skipped),
        "time": f"{finding.seconds:.3f}",
    }
    counted = {name: str(value) for name, value in numbers.items()}
    suites = ElementTree.Element("testsuites", {"name": "epsilometer", **counted})
    suite = ElementTree.SubElement(suites, "testsuite", {"name": "epsilometer", **counted})
    name = {"classname": "epsilometer", "name": _xml(finding.name), "time": counted["time"]}
    case = ElementTree.SubElement(suite, "testcase", name)
    properties = ElementTree.SubElement(case, "properties")
    for label, value in finding.properties().items():
        ElementTree.SubElement(properties, "property", {"name": label, "value": _xml(str(value))})
    words = "\n".join(f"{label}: {text}" for label, text in [*finding.rows(), ("again", finding.command)] if text)
    if failed or skipped:
        advice = f"{DO_NOT_RELEASE} " if is_refused(finding.outcome) else ""
        message = {"message": _xml(f"{advice}{finding.outcome}: {finding.reason}"), "type": finding.outcome or ""}
        ElementTree.SubElement(case, "failure" if failed else "skipped", message).text = _xml(words)
    else:
        ElementTree.SubElement(case, "system-out").text = _xml(words)
    ElementTree.indent(suites)
    body: str = ElementTree.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{body}\n'.encode()


def _xml(text: str) -> str:
    """Without what XML cannot hold."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
