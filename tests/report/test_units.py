"""Reports of a promise to users: no sentence of theirs speaks of one record where a user is meant."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest
from noisy_sums import audited

from epsilometer.report import (
    finding_of,
    headline_of,
    job_summary,
    junit_xml,
    model_card,
    summary,
    to_json,
    write_results,
)
from epsilometer.report.kinds import audit as audit_page
from epsilometer.report.page import Facts, Page, Points, Words


@pytest.fixture(scope="module", params=["record", "user"])
def unit(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def page(unit: str) -> Page:
    return audit_page.page(json.loads(json.dumps(to_json(audited(unit=unit)))))


def words_of(page: Page) -> str:
    told = []
    for section in page.sections:
        told.append(section.title)
        for block in section.blocks:
            if isinstance(block, Words):
                told.append(block.text)
            elif isinstance(block, Points):
                told += block.items
            elif isinstance(block, Facts):
                told += [f"{key}: {value}" for key, value in block.rows]
    return "\n".join(told)


def test_every_text_says_the_unit(tmp_path: Path) -> None:
    result = audited(unit="user")
    finding = finding_of(result, "epsilometer audit my.toml")
    texts = [summary(result), job_summary(finding), model_card(finding), junit_xml(finding).decode()]
    for text in [*texts, str(headline_of(result))]:
        assert "user-level add-remove" in text
        assert not re.search("[(]add-remove", text)
    assert to_json(result)["lower_bound"]["unit"] == to_json(result)["plan"]["claim"]["unit"] == "user"
    write_results(tmp_path, result)
    written = html.unescape((tmp_path / "report.html").read_text())
    assert "What it means for one user" in written
    assert "--relation add-remove --unit user" in written
    assert "person's record" not in written


def test_a_page_speaks_of_its_unit(page: Page, unit: str) -> None:
    told = words_of(page)
    of_users = unit == "user"
    for words, mine in {
        "What it means for a person": False,
        "one person's record was used": False,
        "unit of privacy: one record of the data. A person with several records is protected less.": False,
        "people with several records": False,
        "records in which worlds differ: 1": False,
        "trials without the record": False,
        "What it means for one user": True,
        "one user is in the data, with all that is theirs": True,
        "unit of privacy: one user of the data. A person behind several users is protected less.": True,
        "one data set has one user more": True,
        "people behind several users": True,
        "users in which worlds differ: 1": True,
        "trials without the user": True,
    }.items():
        assert (words in told) == (mine == of_users), words


def test_results_that_are_older_than_units_are_of_records() -> None:
    document = json.loads(json.dumps(to_json(audited())))
    assert document["lower_bound"].pop("unit") == "record"
    assert "unit" not in document["plan"]["claim"]
    assert "unit of privacy: one record of the data" in words_of(audit_page.page(document))
