"""`bound` and `compare` on scores that others have made: claims, verdicts, remarks, other files and headers."""

import importlib.util
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from program import Shown
from pyarrow import parquet

from epsilometer.accounting import DpSgd, curve
from epsilometer.auditing import decide
from epsilometer.bounds import EProcess, ExactRank, OneRunPoint, refute_curve
from epsilometer.claims import Claim, PointClaim
from epsilometer.cli.columns import find_columns
from epsilometer.errors import InvalidInput
from epsilometer.evidence import Counts, OneRun, PairedRuns

Program = Callable[..., Shown]
TRAINING = ["--sample-rate", "0.1", "--noise-multiplier", "1.4", "--steps", "100"]
INDEPENDENT = "each row must be the score of an independent training"


def gaussian(mu: float, n: int = 300, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=n), rng.normal(mu, size=n)


def write(path: Path, outs: Any, ins: Any, header: str = "world,score") -> Path:
    rows = [f"{world},{score!r}" for world, scores in ((0, outs), (1, ins)) for score in scores.tolist()]
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def document(shown: Shown) -> dict[str, Any]:
    assert shown.stderr == ""
    found: dict[str, Any] = json.loads(shown.stdout)  # one object
    return found


def as_parquet(path: Path, **columns: Any) -> Path:
    parquet.write_table(pyarrow.table(columns), path)
    return path


def lines(shown: Shown) -> set[str]:
    """Its lines, with one space after a label."""
    return {" ".join(line.split()) for line in shown.stdout.splitlines()}


# -------------------------------------------------------------------------------------------- claims and verdicts
@pytest.mark.parametrize("arguments", [["--claim", "1"], TRAINING], ids=["point", "curve"])
@pytest.mark.parametrize("mu", [0.3, 3.0])
def test_scores_are_tested_as_an_audit_tests_them(here: Program, place: Path, arguments: list[str], mu: float) -> None:
    runs = PairedRuns(*gaussian(mu))
    write(place / "scores.csv", runs.out_scores, runs.in_scores)
    claim: Claim = PointClaim(1.0, 1e-5) if arguments[0] == "--claim" else curve(DpSgd(0.1, 1.4, 100))
    test = ExactRank().test(runs, claim)
    verdict = decide(runs, test, ExactRank())
    shown = here("bound", "scores.csv", "--delta", "1e-5", *arguments)
    assert {f"claim {test}", f"verdict {verdict}"} <= lines(shown)
    assert shown.stdout.startswith(f"{verdict.outcome}: ")
    assert shown.returncode == (verdict.outcome == "violated") == (mu > 1)
    found = document(here("bound", "scores.csv", "--delta", "1e-5", *arguments, "--json"))
    assert found["test"]["refuted"] is test.refuted
    assert (found["verdict"], found["reason"]) == (verdict.outcome, verdict.reason)
    assert (found["power"], found["blind_spot"]) == (verdict.power, verdict.blind_spot)
    assert found["claim"]["delta"] == 1e-5
    assert found["claim"]["epsilon"] == pytest.approx(claim.epsilon_at(1e-5))


def test_without_a_claim_there_is_no_verdict(here: Program, place: Path) -> None:
    write(place / "scores.csv", *gaussian(3.0))
    shown = here("bound", "scores.csv")
    assert (shown.returncode, "verdict" in shown.stdout) == (0, False)
    assert shown.stdout.startswith("Quote ε ≥ ")
    found = document(here("bound", "scores.csv", "--json"))
    assert [found[name] for name in ("claim", "test", "verdict")] == [None, None, None]


def test_power_makes_a_claim_consistent(here: Program, place: Path) -> None:
    write(place / "scores.csv", *gaussian(1.0, n=500))
    weak = ["--sample-rate", "1", "--noise-multiplier", "1", "--steps", "1"]  # allows exactly what is seen
    found = document(here("bound", "scores.csv", *weak, "--json"))
    assert found["verdict"] == "consistent"
    assert found["power"] > 0.8
    assert 0 < found["blind_spot"] < 1


def test_the_relation_is_that_of_the_curve(here: Program, place: Path) -> None:
    write(place / "scores.csv", *gaussian(1.0))
    found = [
        document(here("bound", "scores.csv", "--delta", "1e-5", *TRAINING, "--relation", relation, "--json"))["claim"]
        for relation in ("add-remove", "replace")
    ]
    assert [claim["relation"] for claim in found] == ["add-remove", "replace"]
    assert found[0]["epsilon"] < found[1]["epsilon"]


def test_every_method_that_can_tests_the_claim(here: Program, place: Path) -> None:
    runs = PairedRuns(*gaussian(4.0, n=120))
    write(place / "scores.csv", runs.out_scores, runs.in_scores)
    for method in ("exact-rank-union", "eprocess", "simultaneous", "union-bound", "split"):
        shown = here("bound", "scores.csv", "--method", method, *TRAINING)
        assert (shown.returncode, shown.stdout.startswith("violated: ")) == (1, True), method
    fixed = here("bound", "scores.csv", "--threshold", "2", "--claim", "1", "--json")
    assert (fixed.returncode, document(fixed)["test"]["threshold"]) == (1, 2.0)
    ordered = document(here("bound", "scores.csv", "--method", "eprocess", "--in-order", "--claim", "1", "--json"))
    assert ordered["test"]["log_e_value"] == EProcess(in_order=True).test(runs, PointClaim(1.0, 1e-5)).proof.log_e_value


def test_counts_are_tested_against_points_and_curves(here: Program) -> None:
    counts = ["--counts", "970", "20", "30", "980", "--delta", "1e-5"]
    shown = here("bound", *counts, *TRAINING)
    assert shown.returncode == 1
    assert str(refute_curve(Counts(970, 20, 30, 980), curve(DpSgd(0.1, 1.4, 100)))) in shown.stdout
    for claim, outcome in (("3.5", "consistent"), ("9", "inconclusive")):
        found = document(here("bound", *counts, "--claim", claim, "--json"))
        assert (found["verdict"], found["test"]["method"]) == (outcome, "clopper-pearson (counts)")
        assert (found["power"] >= 0.8) == (outcome == "consistent")
    many = [str(1000 * n) for n in (970, 20, 30, 980)]
    huge = document(here("bound", "--counts", *many, "--claim", "5", "--json"))
    assert (huge["verdict"], huge["power"]) == ("inconclusive", None)
    assert here("bound", "--counts", *many, "--claim", "3").returncode == 1
    assert here("bound", "--counts", "9" * 12, "0", "1", "9" * 12, "--claim", "3").returncode == 1


def test_canaries_are_tested_against_points_and_curves(here: Program, place: Path) -> None:
    rng = np.random.default_rng(0)
    member = rng.random(600) < 0.5
    run = OneRun(rng.normal(size=600) + 3.0 * member, member)
    rows = "\n".join(f"{int(m)},{s!r}" for m, s in zip(member, run.scores.tolist(), strict=True))
    (place / "canaries.csv").write_text("member,score\n" + rows)
    for arguments, claim in ((["--claim", "1"], PointClaim(1.0, 1e-5)), (TRAINING, curve(DpSgd(0.1, 1.4, 100)))):
        shown = here("bound", "--one-run", "canaries.csv", "--delta", "1e-5", *arguments)
        test = OneRunPoint().test(run, claim)
        verdict = decide(run, test, OneRunPoint())
        assert {f"claim {test}", f"verdict {verdict}"} <= lines(shown)
        assert shown.returncode == (verdict.outcome == "violated")
    assert here("bound", "--one-run", "canaries.csv", "--claim", "1").returncode == 1
    guesses = document(here("bound", "--one-run", "canaries.csv", "--guesses", "100", "--claim", "1", "--json"))
    assert guesses["test"]["guesses"] == 100
    (place / "turned.csv").write_text("member,score\n" + rows.replace(",", ",-").replace("--", ""))
    turned = here("bound", "--one-run", "turned.csv", "--direction", "lower", "--claim", "1")
    assert turned.returncode == 1


def test_a_direction_counts_for_test_and_power(here: Program, place: Path) -> None:
    outs, ins = gaussian(1.0, n=500)
    write(place / "higher.csv", outs, ins)
    write(place / "lower.csv", -outs, -ins)
    claim = ["--sample-rate", "1", "--noise-multiplier", "1", "--steps", "1"]
    expected = document(here("bound", "higher.csv", *claim, "--json"))
    lower = document(here("bound", "lower.csv", "--direction", "lower", *claim, "--json"))
    assert (lower["verdict"], lower["power"]) == (expected["verdict"], expected["power"])
    for name in ("higher.csv", "lower.csv"):
        either = document(here("bound", name, "--direction", "either", *claim, "--json"))
        assert either["verdict"] == "consistent"
        assert either["blind_spot"] > expected["blind_spot"]  # half of α for each direction
    options = ["--threshold", "-2", "--direction", "lower", "--claim", "9", "--json"]
    fixed = document(here("bound", "lower.csv", *options))
    mirrored = document(here("bound", "higher.csv", "--threshold", "2", "--claim", "9", "--json"))
    assert fixed["power"] == mirrored["power"]


def test_claims_that_promise_nothing_are_inconclusive(here: Program, place: Path) -> None:
    write(place / "scores.csv", *gaussian(3.0, n=50))
    for arguments in (["--claim", "inf"], ["--sample-rate", "0.1", "--noise-multiplier", "0", "--steps", "1"]):
        shown = here("bound", "scores.csv", *arguments, "--json")
        assert shown.returncode == 0
        assert "promises nothing" in document(shown)["reason"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--steps", "100"], "--steps = 100: expected --sample-rate and --noise-multiplier beside it"),
        (["--sample-rate", "0.1", "--steps", "9"], "--sample-rate = 0.1: expected --noise-multiplier beside it"),
        (["--claim", "4", *TRAINING], "--claim = 4.0: expected nothing beside --sample-rate and --noise-multiplier"),
        (["--claim", "4", "--steps", "3"], "--claim = 4.0: expected nothing beside --steps"),
        (["--claim", "-1"], "--claim = -1.0"),
        ([*TRAINING[:4], "--steps", "0"], "--steps = 0"),
        (["--sample-rate", "2", *TRAINING[2:]], "--sample-rate = 2.0"),
        ([*TRAINING, "--relation", "rep"], "--relation = 'rep'"),
        ([*TRAINING, "--method", "bayesian"], "--method = 'bayesian': expected a method that can test a claim"),
        (["--claim", "1", "--delta", "1e-5", "--method", "gaussian"], "a method that can test a claim: exact-rank"),
        (["--claim", "1", "--method", "nonsense"], "--method = 'nonsense': expected one of"),
        (["--claim", "1", "--method", "fixed"], "--threshold is missing"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_claims_that_cannot_be_tested_are_refused(here: Program, place: Path, arguments: list[str], words: str) -> None:
    write(place / "scores.csv", *gaussian(1.0, n=40))
    refused(here("bound", "scores.csv", *arguments), words)


def refused(shown: Shown, words: str) -> None:
    assert shown.returncode == 2, shown
    assert words in shown.stderr
    assert (len(shown.stderr.splitlines()), shown.stdout) == (1, "")


def test_bounds_without_a_test_are_refused_for_counts_and_canaries(here: Program, place: Path) -> None:
    (place / "canaries.csv").write_text("member,score\n" + "\n".join(f"{i % 2},{i}" for i in range(40)))
    for evidence, method, able in (
        (["--counts", "9", "1", "1", "9"], "bayesian", "clopper-pearson"),
        (["--one-run", "canaries.csv"], "one-run", "one-run-point"),
    ):
        for claim in (["--claim", "1"], TRAINING):
            words = f"--method = '{method}': expected a method that can test a claim: {able}; leave out the claim"
            refused(here("bound", *evidence, "--method", method, *claim), words)
    both = here("bound", "--one-run", "canaries.csv", "--direction", "either", *TRAINING)
    refused(both, "--direction = 'either': expected higher or lower with one run")


# --------------------------------------------------------------------------------------------------- remarks
def test_what_must_be_true_of_the_evidence_is_said_once(here: Program, place: Path) -> None:
    write(place / "scores.csv", *gaussian(1.0))
    for command in ("bound", "compare"):
        shown = here(command, "scores.csv")
        assert shown.stderr.count(INDEPENDENT) == 1
        assert len(shown.stderr.splitlines()) == 1
        assert INDEPENDENT not in shown.stdout
        (remark,) = document(here(command, "scores.csv", "--json"))["remarks"]
        assert remark.startswith(INDEPENDENT)
    assert "independent trainings" in here("bound", "--counts", "9", "1", "1", "9").stderr
    (place / "canaries.csv").write_text("member,score\n0,1\n1,2")
    assert "fair coin" in here("bound", "--one-run", "canaries.csv").stderr


def test_reversed_scores_get_a_remark_and_others_none(here: Program, place: Path) -> None:
    for mu, count in ((-1.0, 1), (1.0, 0), (0.0, 0)):
        write(place / "scores.csv", *gaussian(mu))
        remarks = document(here("bound", "scores.csv", "--json"))["remarks"][1:]
        assert len(remarks) == count
        for remark in remarks:
            assert remark.startswith("higher must mean member, but members score lower here")
            assert "known before any score, say --direction lower" in remark
            assert "--direction either tries both and pays" in remark
    write(place / "scores.csv", *gaussian(-1.0))
    assert len(document(here("bound", "scores.csv", "--direction", "lower", "--json"))["remarks"]) == 1
    assert len(document(here("bound", "scores.csv", "--direction", "either", "--json"))["remarks"]) == 1
    write(place / "scores.csv", *gaussian(1.0))
    wrong = document(here("bound", "scores.csv", "--direction", "lower", "--json"))["remarks"][1]
    assert "lower must mean member, but members score higher" in wrong


def test_reversed_canaries_have_no_paid_way(here: Program, place: Path) -> None:
    (place / "canaries.csv").write_text("member,score\n" + "\n".join(f"{int(i < 50)},{i}" for i in range(100)))
    remark = document(here("bound", "--one-run", "canaries.csv", "--json"))["remarks"][1]
    assert "--direction lower" in remark
    assert "either" not in remark
    (place / "canaries.csv").write_text("member,score\n0,1\n0,2")  # all coins fell on one side
    assert here("bound", "--one-run", "canaries.csv").returncode == 0


# --------------------------------------------------------------------------------------- headers and Parquet
def test_labels_and_losses_are_read_with_a_remark(here: Program, place: Path) -> None:
    outs, ins = gaussian(2.0)
    write(place / "scores.csv", outs, ins)
    write(place / "losses.csv", -outs, -ins, "Label, loss")
    plain, other = (document(here("bound", f"{name}.csv", "--json")) for name in ("scores", "losses"))
    assert other["lower_bound"] == plain["lower_bound"]
    label, loss = other["remarks"][1:]
    assert label == "the column label is read as world: 1 is a training with the canary, 0 one without"
    assert "lower for members: its sign is turned" in loss
    compared = here("compare", "losses.csv")
    assert compared.returncode == 0
    assert [line[:25] for line in compared.stderr.splitlines()[1:]] == [
        "remark: the column label ",
        "remark: the column loss i",
    ]
    (place / "canaries.csv").write_text("label,loss\n" + "\n".join(f"{int(i < 50)},{i}" for i in range(100)))
    canaries = document(here("bound", "--one-run", "canaries.csv", "--json"))
    assert canaries["lower_bound"]["epsilon"] > 1
    assert "the column label is read as member" in canaries["remarks"][1]


def test_a_loss_is_turned_once(here: Program, place: Path) -> None:
    outs, ins = gaussian(2.0)
    write(place / "losses.csv", outs, ins, "world,loss")  # members have higher losses
    refused(here("bound", "losses.csv", "--direction", "lower"), "--direction = 'lower': expected higher (default)")
    refused(here("bound", "losses.csv", "--threshold", "0.3"), "--threshold = 0.3: expected none with a column loss")
    remark = document(here("bound", "losses.csv", "--json"))["remarks"][2]
    assert "call the column score; if it was not, --direction either" in remark
    (place / "canaries.csv").write_text("member,loss\n0,1\n1,2")
    refused(here("bound", "--one-run", "canaries.csv", "--threshold", "0.3"), "--threshold = 0.3: expected none")
    (place / "bad.csv").write_text("world,loss\n0,x\n1,2")
    refused(here("bound", "bad.csv"), "loss in line 2 = 'x'")


@pytest.mark.parametrize(
    ("header", "side", "words"),
    [
        (["world", "label", "score"], "world", "one of the columns world and label; rename the other"),
        (["world", "score", "loss"], "world", "one of the columns score and loss; rename the other"),
        (["member", "label", "score"], "member", "one of the columns member and label"),
        (["label", "label", "loss"], "world", "one column label"),
        (["label", "member", "score"], "world", "the columns world and score; it has canaries: use --one-run"),
        (["label", "world", "loss"], "member", "the columns member and score; it has pairs: leave out --one-run"),
        (["label", "gradient", "score"], "member", "the columns member and score; start the file with member,score"),
        (["label"], "world", "start the file with world,score"),
        (["loss"], "world", "start the file with world,score"),
    ],
)
def test_headers_that_could_mean_two_things_are_refused(header: list[str], side: str, words: str) -> None:
    with pytest.raises(InvalidInput) as error:
        find_columns(header, side)
    assert words in str(error.value)


def test_parquet_is_read_as_csv_is(here: Program, place: Path) -> None:
    outs, ins = gaussian(2.0)
    write(place / "scores.csv", outs, ins)
    world, scores = np.repeat([0, 1], 300), np.concatenate([outs, ins])
    expected = document(here("bound", "scores.csv", *TRAINING, "--json"))
    for values in (world, world.astype(bool), world.astype(np.float32), world.astype(np.int8)):
        as_parquet(place / "scores.parquet", index=np.arange(600), score=scores, World=values)
        assert document(here("bound", "scores.parquet", *TRAINING, "--json")) == expected
    compared = [here("compare", name) for name in ("scores.csv", "scores.parquet")]
    assert compared[0] == compared[1]
    as_parquet(place / "losses.parquet", label=world, loss=-scores)
    found = document(here("bound", "losses.parquet", *TRAINING, "--json"))
    assert found["lower_bound"] == expected["lower_bound"]
    assert len(found["remarks"]) == 3
    as_parquet(place / "canaries.parquet", member=world, score=scores)
    (place / "canaries.csv").write_text((place / "scores.csv").read_text().replace("world", "member"))
    canaries = [document(here("bound", "--one-run", f"canaries.{kind}", "--json")) for kind in ("csv", "parquet")]
    assert canaries[0] == canaries[1]


def test_parquet_comes_from_stdin_and_under_any_name(
    here: Program, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = as_parquet(place / "scores.dat", world=[0, 1], score=[0.5, 2.0])
    shown = here("bound", "scores.dat")
    assert shown.returncode == 0
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    assert here("bound", "-") == shown


def test_parquet_says_how_large_groups_are(here: Program, place: Path) -> None:
    as_parquet(place / "scores.parquet", world=[0, 1], score=[0.5, 2.0], group_size=[2, 2])
    assert document(here("bound", "scores.parquet", "--json"))["lower_bound"]["group_size"] == 2
    refused(here("bound", "scores.parquet", "--group-size", "3"), "--group-size = 3: expected 2, as the file says")
    for sizes in ([2, 3], [1.5, 1.5], [-1, -1], [float("inf")] * 2):
        as_parquet(place / "scores.parquet", world=[0, 1], score=[0.5, 2.0], group_size=sizes)
        refused(here("bound", "scores.parquet"), "group_size")


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"world": [0, 1], "score": [0.5, None]}, "score in row 2"),
        ({"world": [0, 1], "score": [0.5, float("nan")]}, "score in row 2"),
        ({"world": [0, 2], "score": [0.5, 1.0]}, "world in row 2 = 2.0: expected 0 (out) or 1 (in)"),
        ({"label": [0, None], "score": [0.5, 1.0]}, "label in row 2"),
        ({"world": [False, None], "score": [0.5, 1.0]}, "world = 'a column of object': expected a column of numbers"),
        ({"world": [0, 1], "score": ["a", "b"]}, "score = 'a column of object': expected a column of numbers"),
        ({"world": [0, 0], "score": [0.5, 1.0]}, "no row with world 1"),
        ({"world": [1, 1], "score": [0.5, 1.0]}, "no row with world 0"),
        ({"world": pyarrow.array([], "int8"), "score": pyarrow.array([], "double")}, "no rows"),
        ({"member": [0, 1], "score": [0.5, 1.0]}, "it has canaries: use --one-run"),
        ({"world": [0, 1], "score": [0.5, 1.0], "loss": [0.5, 1.0]}, "one of the columns score and loss"),
        ({"world": [0, 1], "score": [{"x": 1}, {"x": 2}]}, "a column of numbers"),
    ],
)
def test_bad_parquet_is_refused_in_one_line(here: Program, place: Path, columns: dict[str, Any], words: str) -> None:
    as_parquet(place / "scores.parquet", **columns)
    refused(here("bound", "scores.parquet"), words)


@pytest.mark.parametrize("content", [b"", b"world,score\n0,1\n1,2\n", b"PAR1", b"PAR1" + bytes(100) + b"PAR1"])
def test_what_is_no_parquet_is_refused_in_one_line(here: Program, place: Path, content: bytes) -> None:
    (place / "scores.parquet").write_bytes(content)
    refused(here("bound", "scores.parquet"), "expected a Parquet file")


def test_damaged_parquet_never_crashes(here: Program, place: Path) -> None:
    path = as_parquet(place / "scores.parquet", world=np.repeat([0, 1], 50), score=np.arange(100.0))
    whole = path.read_bytes()
    for cut in (20, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        refused(here("bound", "scores.parquet"), "a Parquet file")
    rng = np.random.default_rng(0)
    for _ in range(50):
        damaged = bytearray(whole)
        for at in rng.integers(4, len(whole), 3):
            damaged[at] = rng.integers(256)
        path.write_bytes(bytes(damaged))
        assert here("bound", "scores.parquet").returncode in (0, 2)


def test_parquet_needs_a_library_and_says_which(here: Program, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_parquet(place / "scores.parquet", world=[0, 1], score=[0.5, 2.0])
    for name in ("pyarrow", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    words = "expected pyarrow or polars to be installed; pip install 'epsilometer[parquet]', or write .csv"
    refused(here("bound", "scores.parquet"), words)


@pytest.mark.skipif(importlib.util.find_spec("polars") is None, reason="polars is not installed")
def test_polars_reads_what_pyarrow_reads(here: Program, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outs, ins = gaussian(2.0)
    as_parquet(place / "scores.parquet", label=np.repeat([False, True], 300), loss=-np.concatenate([outs, ins]))
    as_parquet(place / "gaps.parquet", world=[0, 1], score=[0.5, None])
    as_parquet(place / "words.parquet", world=[0, 1], score=["a", "b"])
    (place / "none.parquet").write_bytes(b"PAR1 and no more")
    expected = here("bound", "scores.parquet", *TRAINING)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert here("bound", "scores.parquet", *TRAINING) == expected
    refused(here("bound", "gaps.parquet"), "score in row 2")
    refused(here("bound", "words.parquet"), "a column of numbers")
    refused(here("bound", "none.parquet"), "a Parquet file")
