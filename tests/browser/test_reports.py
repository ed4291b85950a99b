"""Every kind of report as people open it: from disk, in a real browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from epsilometer.auditing import run, spec_from_dict
from epsilometer.auditing.mechanism_audit import audit_mechanism
from epsilometer.bounds.coverage import false_alarms, laplace, measure_coverage
from epsilometer.collaborative import property_from_dict, run_property
from epsilometer.figures import Figure
from epsilometer.instances import InstancePlan, chosen_records, run_instances
from epsilometer.json_values import json_values
from epsilometer.membership import membership_from_dict, run_membership
from epsilometer.reconstruction import reconstruction_from_dict, run_reconstruction
from epsilometer.report import (
    instances_to_json,
    membership_to_json,
    property_to_json,
    reconstruction_to_json,
    to_json,
    versions,
)
from epsilometer.report.html import render
from epsilometer.report.kinds import page_of
from epsilometer.report.page import Drawn, Page
from epsilometer.reproductions import Row, ladder_of, reproduction_named
from epsilometer.reproductions.directory import write_rows
from epsilometer.watching.figures import figures_of
from epsilometer.watching.monitor import Monitor
from epsilometer.watching.recording import Ended, MadePrivate, Step

BAD = "<script>alert('x')</script> <img src=x onerror=alert(1)> \x1b[31m\u202e {{ 7 * 7 }}"
SMALL = {"training": {"steps": 2}, "audit": {"trials": 20}, "faults": {"noise_scale": 0.01}}
WIDE, PHONE = {"width": 1000, "height": 900}, {"width": 360, "height": 740}


def audit() -> dict[str, Any]:
    return to_json(run(spec_from_dict(SMALL | {"adversary": {"name": "clipbkd"}}).plan()))


def mechanism() -> dict[str, Any]:
    return to_json(audit_mechanism("laplace-half", epsilon=1.0, runs=2000, executor="inline"))


def ladder(place: Path) -> dict[str, Any]:
    of = ladder_of(spec_from_dict(SMALL | {"adversary": {"name": "api"}}).plan())
    rest = {
        "violated": False,
        "verdict": "inconclusive",
        "together": 0.1,
        "needs": BAD,
        "family": 1.5,
        "per_step": None,
    }
    rows = [Row(cell, None, 0.2 * i, rest) for i, cell in enumerate(of.cells)]
    write_rows(place, of, {"data": {"name": BAD}}, rows)
    return json.loads((place / "result.json").read_bytes())


def reproduction(place: Path) -> dict[str, Any]:
    of = reproduction_named("jagielski-table2")
    cells = of.chosen(["init=fixed"])
    write_rows(place, of, {"reproduction": of.name}, [Row(cell, 1.0, 0.5, {"note": BAD}) for cell in cells])
    return json.loads((place / "result.json").read_bytes())


def membership() -> dict[str, Any]:
    small = {"records": 200, "references": 4, "attacks": ["loss", "lira"], "subgroup": 20}
    study = membership_from_dict({"training": {"steps": 20}, "membership": small}).study()
    found = run_membership(study.plan, study.attacks, subgroup=study.subgroup)
    return membership_to_json(found, BAD) | {"attacked": BAD}


def instances() -> dict[str, Any]:
    subject = spec_from_dict({"training": {"steps": 5}}).plan().subject
    plan = InstancePlan(subject, chosen_records(subject.data, 40, 0), 1e-5, trainings=2)
    return instances_to_json(run_instances(plan)) | {"command": BAD, "training": BAD}


def property_inference() -> dict[str, Any]:
    updates = {"rounds": 8, "level": "participant", "noise_multiplier": 0.5}
    study = property_from_dict({"collaboration": updates, "property": {"trials": 6}}).study()
    return property_to_json(run_property(study.plan), BAD) | {"attacked": BAD}


def reconstruction() -> dict[str, Any]:
    study = reconstruction_from_dict({"reconstruction": {"records": 4}}).study()
    return reconstruction_to_json(run_reconstruction(study.plan), BAD) | {"attacked": BAD}


def calibration() -> dict[str, Any]:
    cells = measure_coverage(
        repetitions=5, trials=20, bounds=["union-bound", "best-on-same"], mechanisms=[laplace(1.0)]
    )
    figures = {"all": false_alarms(cells).to_dict()}
    return json_values(
        {"cells": [cell.to_dict() for cell in cells], "seed": 0, "figures": figures, "versions": versions()}
    )


def watch() -> dict[str, Any]:
    import numpy as np

    monitor, rng = Monitor(), np.random.default_rng(0)
    monitor.take(MadePrivate(1, BAD, 1.0, 1.0, 50, "extra", {"name": BAD}))
    for _ in range(12):
        coins = rng.random(50) < 0.5
        monitor.take(Step(1, coins + rng.normal(0, 0.3, 50), coins, 1.0, 1.0))
    monitor.take(Ended(1, 0, [[1.0, 0.1, 12]]))
    found = {name: figure.to_dict() for name, figure in figures_of(monitor).items()}
    trainings = [one.to_dict() for one in monitor]
    shared = {"libraries": [], "processes": [{"argv": [BAD]}], "failures": [BAD], "versions": versions()}
    return json_values({"command": [BAD], "exit_code": 0, "trainings": trainings, "figures": found, **shared})


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Page, Path]]:
    """Small runs of every kind, with names that would do harm in a page that took them for markup."""
    place = tmp_path_factory.mktemp("reports")
    documents = {
        "audit": audit(),
        "mechanism": mechanism(),
        "ladder": ladder(tmp_path_factory.mktemp("ladder")),
        "reproduction": reproduction(tmp_path_factory.mktemp("reproduction")),
        "calibration": calibration(),
        "watch": watch(),
        "membership": membership(),
        "instances": instances(),
        "property": property_inference(),
        "reconstruction": reconstruction(),
    }
    documents["audit"]["training"] = BAD
    found = {}
    for name, document in documents.items():
        page = page_of(json.loads(json.dumps(document, allow_nan=False)))
        path = place / f"{name}.html"
        path.write_bytes(render(page))
        found[name] = (page, path)
    return found


KINDS = (
    "audit", "mechanism", "ladder", "reproduction", "calibration", "watch", "membership", "instances", "property",
    "reconstruction",
)  # fmt: skip
MARKS = """svg => [...svg.querySelectorAll('[id*="-mark-"]')].length
    + [...svg.querySelectorAll('[id*="-marks-"]')].reduce((sum, one) => sum + one.querySelectorAll('use').length, 0)"""


def figures(page: Page) -> list[Figure]:
    return [block.figure for section in page.sections for block in section.blocks if isinstance(block, Drawn)]


def opened(chromium: Any, path: Path, **context: Any) -> tuple[Any, list[str], list[str]]:
    """A page, what its console said, and what it asked for."""
    page = chromium.new_context(**context).new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: said.append(dialog.message))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    return page, said, asked


@pytest.mark.parametrize("kind", KINDS)
def test_a_report_opens_from_disk_alone_and_is_accessible(chromium: Any, pages: Any, kind: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page, path = pages[kind]
    shown, said, asked = opened(chromium, path, viewport=WIDE, color_scheme="light")
    assert shown.title() == _visible(page.title) + (f": {page.verdict}" if page.verdict else "")
    assert shown.locator("h1").inner_text() == " ".join(_visible(page.title).split())
    if page.verdict:
        assert shown.locator("#verdict").inner_text() == page.verdict
    drawn = figures(page)
    assert [shown.locator("figure svg").nth(i).evaluate(MARKS) for i in range(len(drawn))] == [
        figure.marks for figure in drawn
    ]
    assert shown.locator("figure svg").count() == len(drawn) > 0
    assert shown.locator("figure details table").count() == len(drawn)
    assert shown.locator("script, iframe, object, embed, link, img").count() == 0
    assert shown.evaluate("document.querySelectorAll('[id]').length") == shown.evaluate(
        "new Set([...document.querySelectorAll('[id]')].map(one => one.id)).size"
    )
    if kind not in ("mechanism", "calibration"):
        assert "<script>alert('x')</script>" in shown.locator("body").inner_text()
        assert "\\x1b[31m\\u202e" in shown.locator("body").inner_text()
        assert "{{ 7 * 7 }}" in shown.locator("body").inner_text()
    problems = Axe().run(shown).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"][:80]) for one in problems] == []
    shown.context.close()
    assert said == []
    assert asked == [path.as_uri()]
    assert path.stat().st_size < 1_000_000


@pytest.mark.parametrize("kind", KINDS)
def test_a_report_in_the_dark_on_a_telephone(chromium: Any, pages: Any, kind: str, tmp_path: Path) -> None:
    from axe_playwright_python.sync_playwright import Axe

    _, path = pages[kind]
    shown, said, _ = opened(chromium, path, viewport=PHONE, color_scheme="dark", is_mobile=True)
    assert shown.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]  # only tables scroll sideways
    colours = [shown.evaluate(f"getComputedStyle(document.body).{what}") for what in ("backgroundColor", "color")]
    dark, light = (sum(map(int, colour.strip("rgb()").split(", "))) for colour in colours)
    assert dark < 150
    assert light > 600
    label = "document.querySelector('figure svg text')"
    assert shown.evaluate(f"getComputedStyle({label}).fill") == colours[1]  # letters of figures as well
    assert Axe().run(shown).violations_count == 0
    shown.screenshot(path=tmp_path / f"{kind}.png")
    shown.context.close()
    assert said == []


def test_a_report_prints_in_the_light_with_all_numbers(chromium: Any, pages: Any) -> None:
    _, path = pages["audit"]
    shown, _, _ = opened(chromium, path, viewport=WIDE, color_scheme="dark")
    shown.emulate_media(media="print")
    assert shown.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert shown.locator("nav").evaluate("one => getComputedStyle(one).display") == "none"
    assert len(shown.pdf()) > 20_000
    shown.context.close()


def _visible(text: str) -> str:
    from epsilometer.escape import visible

    return visible(text)
