"""What others are told of a finding: what is theirs in a file stays, and what is told is what was found."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from noisy_sums import audited

from epsilometer import __version__
from epsilometer.auditing import AuditResult
from epsilometer.claims import PointClaim
from epsilometer.errors import InvalidInput
from epsilometer.report import Finding, Outlets, finding_of, job_summary, junit_xml, model_card
from epsilometer.report.finding import question


@pytest.fixture(scope="module")
def result() -> AuditResult:
    return audited()


@pytest.fixture(scope="module")
def finding(result: AuditResult) -> Finding:
    return finding_of(result, "epsilometer audit my.toml")


def violated(finding: Finding, **other: object) -> Finding:
    return replace(finding, outcome="violated", reason="an attack was seen", **other)


# ------------------------------------------------------------------------------------------------ sections of texts
def test_a_section_is_added_and_then_replaced(tmp_path: Path, finding: Finding) -> None:
    card = tmp_path / "README.md"
    card.write_text("# My model\n\nWords of mine.")
    Outlets(model_card=card).write(finding)
    once = card.read_text()
    assert once.startswith("# My model\n\nWords of mine.\n\n<!-- epsilometer model-card ")
    card.write_text(once + "\nMore words.\n")
    Outlets(model_card=card).write(violated(finding))
    twice = card.read_text()
    assert twice.startswith("# My model\n\nWords of mine.\n\n")
    assert twice.endswith("-->\n\nMore words.\n")
    assert twice.count("## Privacy audit") == 1
    assert "| verdict | violated |" in twice


def test_other_questions_have_sections_of_their_own(tmp_path: Path, finding: Finding) -> None:
    path = tmp_path / "summary.md"
    path.touch()  # as a CI lends it
    inode = path.stat().st_ino
    for one in (finding, replace(finding, key="another"), finding):
        Outlets(summary=path, model_card=path).write(one)
    text = path.read_text()
    assert (text.count("## Epsilometer: "), text.count("## Privacy audit")) == (2, 2)
    path.write_text("")
    Outlets(summary=tmp_path / "new.md").write(finding)
    assert (tmp_path / "new.md").read_text().startswith("<!-- epsilometer summary")
    lent = tmp_path / "lent.md"
    lent.touch()
    inode = lent.stat().st_ino
    Outlets(summary=lent).write(finding)
    assert lent.stat().st_ino == inode  # whoever holds it open sees what is added


def test_a_text_with_other_line_ends_keeps_them(tmp_path: Path, finding: Finding) -> None:
    path = tmp_path / "card.md"
    Outlets(model_card=path).write(finding)
    path.write_bytes(b"mine\r\n" + path.read_bytes().replace(b"\n", b"\r\n") + b"end\r\n")
    Outlets(model_card=path).write(finding)
    content = path.read_bytes()
    assert content.startswith(b"mine\r\n<!--")
    assert content.endswith(b"end\r\n")
    assert content.count(b"## Privacy audit") == 1


def test_a_link_stays_a_link(tmp_path: Path, finding: Finding) -> None:
    (tmp_path / "real.md").write_text("mine\n")
    (tmp_path / "link.md").symlink_to("real.md")
    for _ in range(2):
        Outlets(summary=tmp_path / "link.md").write(finding)
    assert (tmp_path / "link.md").is_symlink()
    assert (tmp_path / "real.md").read_text().count("## Epsilometer") == 1


def test_files_that_are_not_ours_are_refused_before_anything_is_done(tmp_path: Path) -> None:
    (tmp_path / "table.bin").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "other.xml").write_text("<testsuites name='pytest tests'/>")
    cases = {
        "summary": (tmp_path / "table.bin", "a text file"),
        "junit": (tmp_path / "other.xml", "one that epsilometer has written"),
        "model_card": (tmp_path / "no" / "card.md", "in an existing directory"),
    }
    for option, (path, expected) in cases.items():
        with pytest.raises(InvalidInput, match=expected):
            Outlets(**{option: path})
    with pytest.raises(InvalidInput, match="expected a file; name one"):
        Outlets(summary=tmp_path)
    assert (tmp_path / "table.bin").read_bytes() == b"\xff\xfe\x00"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_file_that_may_not_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.md").touch(mode=0o400)
    with pytest.raises(InvalidInput, match="can be written"):
        Outlets(summary=tmp_path / "a.md")


def test_the_same_question_has_the_same_key_whatever_answers_it(result: AuditResult) -> None:
    plan = result.plan
    assert question(replace(plan, trials=30, seed=4, confidence=0.99)) == question(plan)
    assert question(replace(plan, claim=PointClaim(2.0, 1e-5))) != question(plan)


# ------------------------------------------------------------------------------------------------------- what is told
def test_a_model_card_says_all_that_a_reader_needs(finding: Finding) -> None:
    text = model_card(finding)
    for part in ("ε = 3 at δ = 1e-05", "ε ≥ ", "0.95", "clipbkd", "sees the final model's predictions", __version__):
        assert part in text
    assert "| blind spot | leaks that happen in some trainings only" in text
    assert "| blind spot | a leak in fewer than 12 % of trainings |" in model_card(replace(finding, blind_spot=0.12))
    assert "$ epsilometer audit my.toml" in text
    assert "accused like this with probability 0.05 at most" in model_card(violated(finding))


def test_a_model_card_has_the_upper_bound_as_the_risk_and_the_lower_one_as_evidence(finding: Finding) -> None:
    theory = replace(finding, outcome="consistent", theory="ε ≤ 3 at δ = 1e-05 (add-remove), pld", upper_epsilon=3.0)
    risk = "| residual risk | ε ≤ 3 at δ = 1e-05 (add-remove), pld, if the training does what it states; "
    assert f"{risk}verdict: consistent |" in model_card(theory)
    assert "a lower bound by one attack, and no limit on the risk |" in model_card(theory)
    unknown = replace(theory, upper_epsilon=None)
    assert "| residual risk | no upper bound is known; verdict: consistent |" in model_card(unknown)
    assert "| residual risk | no upper bound stands: the claim is refuted, " in model_card(violated(theory))


def test_whoever_reads_of_a_violation_is_told_not_to_release(finding: Finding) -> None:
    for write in (job_summary, model_card):
        assert "\n\n**Do not release. A certified test refutes the privacy claim.**\n\n| | |\n" in write(
            violated(finding)
        )
        assert "o not release" not in write(finding)
    case = ElementTree.fromstring(junit_xml(violated(finding))).find(".//failure")
    assert case is not None
    assert case.get("message") == "Do not release. violated: an attack was seen"


def test_an_injected_fault_is_told(finding: Finding) -> None:
    found = replace(finding, faults=["half of the noise"])
    for text in (job_summary(found), model_card(found), junit_xml(found).decode()):
        assert "FAULT INJECTED" in text


def test_words_from_outside_command_nothing(finding: Finding) -> None:
    name = "a|b\n<!-- end of epsilometer summary -->\x1b[31m `c` \ufffe ]]> <b>"
    odd = replace(finding, name=name, training=name, command="epsilometer audit '```\nx' \x1b")
    text = job_summary(odd)
    assert "<" not in text
    assert "\x1b" not in text
    assert len([line for line in text.splitlines() if line.startswith("| training | ")]) == 1
    assert "\n````console\n" in text
    case = ElementTree.fromstring(junit_xml(odd)).find(".//testcase")
    assert case is not None
    assert case.get("name", "").startswith("a|b")


@pytest.mark.parametrize(
    ("outcome", "require", "expected"),
    [
        ("violated", False, ("1", "0", "failure")),
        ("violated", True, ("1", "0", "failure")),
        ("inconclusive", False, ("0", "1", "skipped")),
        ("inconclusive", True, ("1", "0", "failure")),
        ("consistent", True, ("0", "0", "system-out")),
        (None, False, ("0", "0", "system-out")),
    ],
)
def test_junit(finding: Finding, outcome: str | None, require: bool, expected: tuple[str, str, str]) -> None:
    root = ElementTree.fromstring(junit_xml(replace(finding, outcome=outcome), require_consistent=require))
    suite, case = root.find("testsuite"), root.find(".//testcase")
    assert suite is not None
    assert case is not None
    assert (suite.get("failures"), suite.get("skipped")) == expected[:2]
    (last,) = [child for child in case if child.tag != "properties"]
    assert last.tag == expected[2]
    kept = {one.get("name"): one.get("value") for one in case.iter("property")}
    assert kept["epsilometer.trials"] == "25"
    assert float(kept["epsilometer.epsilon_lower"] or "nan") == finding.lower.epsilon


def test_a_junit_file_of_ours_is_replaced(tmp_path: Path, finding: Finding) -> None:
    path = tmp_path / "audit.xml"
    for one in (finding, violated(finding)):
        assert Outlets(junit=path).write(one) == (path,)
    assert b'failures="1"' in path.read_bytes()
