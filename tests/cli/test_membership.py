"""`epsilometer membership`: results, files, going on, and one line for every mistake."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from epsilometer.instances import WARNING

QUIETLY = ("--quiet", "--executor", "inline")
SMALL = """
[model]
hidden = [8]
[training]
steps = 30
[membership]
records = 300
population = 100
references = 4
"""
PREDICT = """
import numpy as np

def predict(x):
    sure = np.where(x[:, 0] > 0, 0.9, 0.6)
    return np.stack([sure, 1 - sure], axis=1)

def logits(x):
    return np.log(predict(x))

def wrong(x):
    return predict(x)[:, :1].repeat(3, axis=1)
"""


@pytest.fixture
def small(place: Path) -> str:
    (place / "small.toml").write_text(SMALL)
    return "small.toml"


@pytest.fixture
def given(place: Path) -> str:
    (place / "mine.py").write_text(PREDICT)
    rng = np.random.default_rng(0)
    for name, sign in (("members", 1), ("others", -1)):
        x = sign * np.abs(rng.standard_normal((60, 2)))
        np.savez(place / f"{name}.npz", x=x, y=np.arange(60) % 2)
    (place / "given.toml").write_text(
        '[target]\npredict = "mine.py:predict"\nmembers = "members.npz"\nothers = "others.npz"\n'
        "[membership]\nreferences = 0\n"
    )
    return "given.toml"


def test_what_it_finds_is_printed_written_and_read_again(here, place: Path, small: str) -> None:
    shown = here("membership", small, "--out", "kept", "--scores", "scores.parquet", *QUIETLY)
    assert shown.returncode == 0, shown.stderr
    assert "certified ε ≥" in shown.stdout
    assert "No attack proves privacy" in shown.stdout
    document = json.loads((place / "kept" / "result.json").read_text())
    paid = "for all attacks together, it finds"
    for text in (shown.stdout, document["headline"], (place / "kept" / "report.html").read_text()):
        assert "the strongest of 5 attacks, finds" in text
        assert f"with 95 % confidence {paid}" in text
        assert "at a true false-positive rate of at most" in text
    assert document["quote"].startswith("TPR ≥ ")
    best = max(
        (one for one in document["attacks"] if one["lower_bound"]), key=lambda one: one["lower_bound"]["epsilon"]
    )
    assert f"so {best['name']} certifies ε ≥" in document["headline"]  # which need not be the one with the best TPR
    assert document["quote"].endswith(f", by {best['name']}")
    assert document["limits_hold"]["attacks"] == 5
    assert {one["auc"]["confidence"] for one in document["attacks"]} == {0.99}
    assert document["warning"].endswith(WARNING)  # pictures, numbers and membership of single records
    assert f'<p class="warning">{document["warning"]}</p>' in (place / "kept" / "report.html").read_text()
    assert "true FPR ≤" in (place / "kept" / "report.html").read_text()
    names = {path.name for path in (place / "kept").iterdir()}
    assert {"trials.sqlite", "result.json", "scores.csv", "report.html"} <= names
    rows = (place / "kept" / "scores.csv").read_text().splitlines()
    assert rows[0] == "target,record,class,member,loss-attack,modified-entropy,lira,lira-offline,rmia"
    assert len(rows) == 301
    parquet = pytest.importorskip("pyarrow.parquet")
    assert parquet.read_table(place / "scores.parquet").num_rows == 300
    report = (place / "kept" / "report.html").read_text()
    for said in ("true-positive rate", "Disparity", "Most exposed", "epsilometer membership small.toml --out kept"):
        assert said in report
    assert here("report", "kept").returncode == 0
    assert "finished\t5 of 5" in here("runs", "kept").stdout
    assert here("runs", "kept", "--export", "x.csv").returncode == 2
    again = here("membership", small, "--out", "kept", *QUIETLY)
    assert "had its results already" in again.stderr
    other = json.loads(here("membership", small, "--out", "kept", "--attack", "rmia", "--json", *QUIETLY).stdout)
    assert [one["name"] for one in other["attacks"]] == ["rmia"]
    assert other["headline"].startswith("rmia finds ")
    assert "together" not in other["headline"]  # one attack pays for itself only
    assert other["plan_sha256"] == json.loads((place / "kept" / "result.json").read_text())["plan_sha256"]
    refused = here("membership", small, "--seed", "1", "--out", "kept", *QUIETLY)
    assert refused.returncode == 2
    assert "seed: 0 there, 1 now" in refused.stderr
    assert here("membership", small, "--seed", "1", "--out", "other", *QUIETLY).returncode == 0
    beside = here("diff", "kept", "other").stdout
    assert "verdict\tnone: no claim was tested\tnone: no claim was tested" in beside
    assert "not comparable" not in beside


def test_a_given_model_has_no_epsilon(here, place: Path, given: str) -> None:
    shown = here("membership", given, "--out", "kept", "--json", *QUIETLY)
    assert shown.returncode == 0, shown.stderr
    found = json.loads(shown.stdout)
    assert found["lower_bound"] is None
    assert found["verdict"] is None
    assert found["attacks"][0]["lower_bound"] is None
    assert "certify no ε" in found["headline"]
    assert "certify no ε" in (place / "kept" / "report.html").read_text().replace("certifies no", "certify no")
    assert here("runs", "kept").returncode == 0


def test_references_for_a_given_model(here, place: Path, given: str) -> None:
    (place / "more.toml").write_text((place / given).read_text().replace("references = 0", "references = 4"))
    found = json.loads(here("membership", "more.toml", "--attack", "lira", "--json", *QUIETLY).stdout)
    assert found["lower_bound"] is None
    assert found["trials"] == {"targets": 1, "references": 4}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("mine.py:predict", "mine.py:logits"), "predictions of mine:logits = 'a row from"),
        (("mine.py:predict", "mine.py:wrong"), "expected an array of shape (120, 2)"),
        (("mine.py:predict", "mine.py:nothing"), "target.predict = 'mine:nothing': expected a function of mine"),
        (("others.npz", "shape.npz"), "target.others = 'records of shape (3,)': expected records of shape (2,)"),
        (("others.npz", "empty.npz"), "target.others = 0: expected at least one record"),
        (("others.npz", "none.npz"), "target.others = 'none.npz': expected a readable file"),
        (("references = 0", "references = 2\nattacks = ['lira']"), "membership.references = 2: expected at least 4"),
        (("references = 0", "references = 0\nattacks = ['rmia']"), "membership.references = 0: expected at least 2"),
        (("references = 0", "references = 4\nattacks = ['white-box']"), "white_box = True"),
    ],
)
def test_mistakes_are_one_line(here, place: Path, given: str, change: tuple[str, str], said: str) -> None:
    np.savez(place / "shape.npz", x=np.zeros((5, 3)), y=np.arange(5) % 2)
    np.savez(place / "empty.npz", x=np.zeros((0, 2)), y=np.zeros(0, int))
    (place / given).write_text((place / given).read_text().replace(*change))
    shown = here("membership", given, "--out", "kept", *QUIETLY)
    assert shown.returncode == 2
    assert said in shown.stderr
    assert len(shown.stderr.strip().splitlines()) == 1
    assert not (place / "kept" / "result.json").exists()


def test_options_that_make_no_sense(here, place: Path, small: str) -> None:
    for options, said in (
        (["--attack", "lyra"], "did you mean 'lira'"),
        (["--references", "2"], "--references = 2: expected at least 4 for lira"),
        (["--targets", "0"], "--targets = 0"),
        (["--scores", "a.txt"], "--scores = 'a.txt': expected a name that ends in .csv or .parquet"),
        (["--scores", "missing/a.csv"], "--scores = 'missing/a.csv': expected a file in a directory that exists"),
        (["--scores", "small.toml/a.csv"], "expected a file in a directory that exists"),
    ):
        shown = here("membership", small, *options, "--out", "kept", *QUIETLY)
        assert shown.returncode == 2
        assert said in shown.stderr, shown.stderr
        assert not (place / "kept").exists()  # nothing was trained


@pytest.mark.full
def test_a_killed_run_goes_on_and_ends_in_the_same(place: Path) -> None:
    (place / "long.toml").write_text(SMALL.replace("steps = 30", "steps = 4000").replace("= 4\n", "= 12\n"))
    command = [sys.executable, "-m", "epsilometer", "membership", "long.toml", "--executor", "inline", "--out"]
    first = subprocess.Popen([*command, "killed"], cwd=place, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    end = time.monotonic() + 120
    while time.monotonic() < end and not (place / "killed" / "trials.sqlite-wal").exists():
        time.sleep(0.05)
    time.sleep(1.0)
    first.send_signal(signal.SIGKILL)
    first.wait()
    for name in ("killed", "whole"):
        subprocess.run([*command, name], cwd=place, check=True, capture_output=True)
    assert (place / "killed" / "scores.csv").read_bytes() == (place / "whole" / "scores.csv").read_bytes()


def test_a_training_of_ones_own(here, place: Path, small: str) -> None:
    (place / "own.py").write_text(
        "from sklearn.tree import DecisionTreeClassifier\n"
        "def train(data, seed):\n"
        "    x, y = data\n"
        "    return DecisionTreeClassifier(random_state=seed).fit(x.reshape(len(x), -1), y)\n"
    )
    (place / "own.toml").write_text(
        '[subject]\ntrain = "own.py:train"\nisolation = "here"\n[membership]\nrecords = 300\nreferences = 4\n'
    )
    found = json.loads(here("membership", "own.toml", "--attack", "shadow", "--json", *QUIETLY).stdout)
    assert found["accuracy"]["members"] == 1.0
    assert found["attacks"][0]["auc"]["value"] > 0.55
    assert found["lower_bound"]["kind"] == "certified"
