"""The report of an audit: it follows from result.json, has its numbers, and loses nothing that was edited."""

from __future__ import annotations

import contextlib
import io
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from epsilometer.auditing import AuditResult, Outcome, Verdict, run, spec_from_dict
from epsilometer.claims import GaussianClaim, PointClaim
from epsilometer.errors import InvalidInput
from epsilometer.report import headline_of, to_json, write_results
from epsilometer.report.details import _means
from epsilometer.report.html import render
from epsilometer.report.kinds import page_of
from epsilometer.report.page import NOT_MEASURED, Code, Facts, Numbers, Page
from epsilometer.report.person import believed, best_accuracy
from epsilometer.report.report_file import write_report
from epsilometer.report.seal import is_sealed
from epsilometer.rounding import down, up
from epsilometer.runs import run_directory

PLAN = spec_from_dict({"training": {"steps": 3}, "audit": {"trials": 40}, "faults": {"noise_scale": 0.3}}).plan()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, AuditResult]:
    out = tmp_path_factory.mktemp("run") / "out"
    with run_directory(out, PLAN) as store:
        result = run(PLAN, store=store)
    write_results(out, result, "epsilometer audit my.toml --out out")
    return out, result


@pytest.fixture
def out(finished: tuple[Path, AuditResult], tmp_path: Path) -> Path:
    """A copy, to spoil."""
    for path in finished[0].iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


@pytest.fixture(scope="module")
def page(finished: tuple[Path, AuditResult]) -> Page:
    return page_of(json.loads((finished[0] / "result.json").read_bytes()))


def blocks(page: Page, kind: type) -> list:
    return [block for section in page.sections for block in section.blocks if isinstance(block, kind)]


def test_it_says_what_the_result_says(page: Page, finished: tuple[Path, AuditResult]) -> None:
    result = finished[1]
    assert page.verdict == result.verdict.outcome.value == "violated"
    assert page.warnings == ["FAULT INJECTED on purpose: the noise really added is 0.3 × what is claimed"]
    text = (finished[0] / "report.html").read_text()
    hashes = (result.plan.fingerprint(), result.plan.subject.data.fingerprint())
    for said in (*hashes, "epsilometer audit my.toml --out out",
                 "This does not prove "
                 "privacy", "SP 800-226", "Article 35", NOT_MEASURED, "malicious-dataset"):  # fmt: skip
        assert said in text
    assert (finished[0] / "report.html").stat().st_size < 1_000_000
    assert not re.search(r"<script|https?://(?!www\.w3\.org/2000/svg)", text)
    settings = {row[0]: row[1] for one in blocks(page, Numbers) for row in one.table.rows}
    assert settings["recipe.steps"] == "3"
    assert settings["seed"] == "0"


def test_the_check_by_hand_prints_what_it_says(page: Page) -> None:
    (code,) = [block for block in blocks(page, Code) if "scipy" in block.label]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code.text, {})
    assert f"{float(printed.getvalue()):.6f}" == code.label.split()[-1]


def test_the_scores_of_the_report_are_those_on_disk(finished: tuple[Path, AuditResult]) -> None:
    import hashlib

    document = json.loads((finished[0] / "result.json").read_bytes())
    assert document["scores_sha256"] == hashlib.sha256((finished[0] / "scores.csv").read_bytes()).hexdigest()
    counted = document["figures"]["scores"]
    assert sum(counted["out_counts"]) == sum(counted["in_counts"]) == 40
    assert document["figures"]["path"]["values"][-1] == pytest.approx(document["lower_bound"]["epsilon"])
    marks = {mark["label"]: mark["value"] for mark in document["figures"]["scale"]["entries"]}
    assert marks["certified"] == document["lower_bound"]["epsilon"] <= marks["could be shown"]
    assert marks["claimed"] == document["claim"]["epsilon"]


def test_certified_points_are_not_better_than_what_was_seen(finished: tuple[Path, AuditResult]) -> None:
    figure = finished[1].figures["trade-off"]
    (seen,) = [curve for curve in figure.curves if curve.says == "seen"]  # type: ignore[attr-defined]
    for point in figure.points:  # type: ignore[attr-defined]
        best = max(tpr for fpr, tpr in zip(seen.fpr, seen.tpr, strict=True) if fpr <= point.fpr)
        assert point.tpr <= best + 1e-9


def test_what_a_promise_means_for_a_person() -> None:
    for epsilon, delta in ((0.0, 0.0), (1.0, 0.0), (2.0, 0.1), (30.0, 1e-5)):
        closed = (math.exp(epsilon) + delta) / (1 + math.exp(epsilon))
        assert best_accuracy(PointClaim(epsilon, delta)) == pytest.approx(closed, abs=1e-6)
    assert best_accuracy(GaussianClaim(1.0)) == pytest.approx(0.691462, abs=1e-6)  # Φ(μ/2)
    assert best_accuracy(PointClaim(0.1), prior=0.99) == pytest.approx(0.99)  # better to look at nothing
    assert believed(math.log(9), 0.1) == pytest.approx(0.5)
    assert (believed(math.inf, 0.1), believed(0.0, 0.1)) == (1.0, pytest.approx(0.1))


def test_it_is_written_again_as_it_was_and_not_over_an_edited_one(out: Path) -> None:
    before = (out / "report.html").read_bytes()
    assert is_sealed(before)
    assert write_report(out) == (out / "report.html", None)
    (out / "report.html").unlink()
    write_report(out)
    assert (out / "report.html").read_bytes() == before
    edited = before.replace(b"violated", b"approved")
    (out / "report.html").write_bytes(edited)
    path, kept = write_report(out)
    assert kept == out / "report.edited-1.html"
    assert kept.read_bytes() == edited
    assert path.read_bytes() == before
    (out / "elsewhere.html").write_bytes(b"mine")
    (out / "report.html").unlink()
    (out / "report.html").symlink_to(out / "elsewhere.html")
    write_report(out)
    assert (out / "elsewhere.html").read_bytes() == b"mine"
    assert not (out / "report.html").is_symlink()


def test_an_older_report_of_ours_is_replaced(out: Path) -> None:
    older = render(Page("older", "an audit", None, ["b"]))
    (out / "report.html").write_bytes(older)
    path, kept = write_report(out)
    assert kept is None
    assert path.read_bytes() != older


def test_a_result_that_was_edited_is_not_believed(out: Path) -> None:
    document = json.loads((out / "result.json").read_bytes())
    document["verdict"] = "consistent"
    (out / "result.json").write_text(json.dumps(document))
    with pytest.raises(InvalidInput, match=r"trials\.sqlite beside it holds.*run the audit again"):
        write_report(out)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"rows": 1}', b'{"plan_sha256": 1, "lower_bound": 2}'])
def test_what_is_no_result_is_refused_in_one_line(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "result.json").write_bytes(content)
    with pytest.raises(InvalidInput) as refused:
        write_report(tmp_path)
    assert "\n" not in str(refused.value)
    with pytest.raises(InvalidInput, match="finished run"):
        write_report(tmp_path.parent)


def test_one_training_with_canaries_has_a_report_too(tmp_path: Path) -> None:
    settings = {"training": {"steps": 2}, "adversary": {"name": "canaries", "canaries": 40}}
    page = page_of(json.loads(json.dumps(to_json(run(spec_from_dict(settings).plan())))))
    assert "As trials came in" not in [section.title for section in page.sections]
    assert any("--one-run" in block.text for block in blocks(page, Code))
    assert b"not independent" in render(page)
    assert all(len(row) == 2 for one in blocks(page, Facts) for row in one.rows)


def test_columns_for_a_person_say_whether_they_are_of_a_curve_or_of_a_point(finished: tuple[Path, AuditResult]) -> None:
    """The claim's curve stood as "the claim" beside its own point as "theory", and the two contradicted each other."""
    columns = {one["label"]: one for one in to_json(finished[1])["means"]}
    assert not any(one["stands"] for one in columns.values())  # the claim is refuted, and a lower bound is no promise
    whole = next(one for label, one in columns.items() if label.startswith("the claim, its whole curve"))
    point = next(one for label, one in columns.items() if label.startswith("of the claim, only its point"))
    assert not any("theory" in label for label in columns)  # its curve is the one that is claimed
    assert whole["epsilon"] == pytest.approx(point["epsilon"])
    assert whole["accuracy"] < point["accuracy"]
    bare = spec_from_dict({"training": {"steps": 3, "noise_multiplier": 1.0}, "claim": {"epsilon": 9.0}}).plan()
    rows = _means(replace(finished[1], plan=bare, verdict=Verdict(Outcome.CONSISTENT, "")))
    labels = [one["label"] for one in rows]
    assert labels[1] == "the claim: ε = 9"
    assert labels[2].startswith("theory, its whole curve (ε = ")
    assert [one["stands"] for one in rows] == [False, True, True]


def facts(page: Page) -> dict[str, str]:
    return {label: text for block in blocks(page, Facts) for label, text in block.rows}


def with_verdict(result: AuditResult, outcome: Outcome) -> Page:
    return page_of(json.loads(json.dumps(to_json(replace(result, verdict=Verdict(outcome, "because"))))))


def test_the_residual_risk_is_what_theory_allows_and_the_lower_bound_is_evidence(
    finished: tuple[Path, AuditResult],
) -> None:
    """A lower bound stood there, as if no attacker could get further."""
    result = finished[1]
    assert result.upper_bound is not None
    upper, low = f"ε ≤ {up(result.upper_bound.epsilon)} at δ = 1e-05", f"ε ≥ {down(result.lower_bound.epsilon)}"
    for outcome in (Outcome.CONSISTENT, Outcome.INCONCLUSIVE):
        said = facts(with_verdict(result, outcome))
        risk = f"{upper}, if the training does what it states; verdict: {outcome}"
        assert said["residual risk"] == risk
        assert risk in said["(c) risks to rights and freedoms"]
        assert low in said["evidence from attacks"]
        assert "no limit on the risk" in said["evidence from attacks"]
    nothing = to_json(replace(result, verdict=Verdict(Outcome.INCONCLUSIVE, ""))) | {"upper_bound": None}
    assert facts(page_of(nothing))["residual risk"] == "no upper bound is known; verdict: inconclusive"


def test_a_violated_report_says_do_not_release(page: Page, finished: tuple[Path, AuditResult]) -> None:
    assert page.refused == "Do not release."
    assert '<p class="verdict refused" id="refused">Do not release.</p>' in (finished[0] / "report.html").read_text()
    said = facts(page)
    assert said["residual risk"].startswith("no upper bound stands: the claim is refuted")
    for label in ("residual risk", "(c) risks to rights and freedoms", "(d) measures and safeguards"):
        assert "do not release" in said[label]
    assert "Do not release." in str(headline_of(finished[1]))
    other = with_verdict(finished[1], Outcome.CONSISTENT)
    assert not other.refused
    assert b"o not release" not in render(other)


def test_no_column_for_the_best_possible_attacker_contradicts_the_verdict(
    page: Page, finished: tuple[Path, AuditResult]
) -> None:
    """The refuted claim had columns with what attackers reach at most, less than this one reached for sure; and the
    lower bound's point allowed more than the claim's curve, as if it refuted that."""
    assert [one.caption for one in blocks(page, Numbers)].count("The best possible attacker") == 0
    older = json.loads((finished[0] / "result.json").read_bytes())
    older["means"] = [{key: value for key, value in one.items() if key != "stands"} for one in older["means"]]
    assert "The best possible attacker" not in [one.caption for one in blocks(page_of(older), Numbers)]
    for kept in (with_verdict(finished[1], Outcome.CONSISTENT), page_of(older | {"verdict": "consistent"})):
        (table,) = [one.table for one in blocks(kept, Numbers) if one.caption == "The best possible attacker"]
        assert all("claim" in column or "theory" in column for column in table.columns[1:])
