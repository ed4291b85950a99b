"""`epsilometer reproduce`, and what audits say about data: one line for each mistake, and nothing left behind."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from program import Shown

from epsilometer.reproductions import REPRODUCTIONS, Cell, Reproduction, Row, Session


def there(*arguments: str) -> Shown:
    """The program as its users meet it."""
    command = [sys.executable, "-m", "epsilometer", *arguments]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return Shown(shown.returncode, shown.stdout, shown.stderr)


def listing(directory: Path) -> dict[str, bytes]:
    """Every file and directory below, with what is in it; who has opened a store is nobody's work."""
    paths = [path for path in directory.rglob("*") if path.suffix != ".lock"]
    return {str(path.relative_to(directory)): path.read_bytes() if path.is_file() else b"" for path in paths}


def refused(epsilometer: Callable[..., Shown], words: str, *arguments: str) -> None:
    before = listing(Path())
    shown = epsilometer(*arguments)
    assert shown.returncode == 2, shown
    assert words in shown.stderr
    lines = [line for line in shown.stderr.splitlines() if not line.startswith("1 of 1: ")]  # what was begun
    assert len(lines) == 1
    assert "Traceback" not in shown.stderr
    assert shown.stdout == ""
    assert listing(Path()) == before
    assert not any(listing(Path("../cache")).values())


B = "jagielski-appendix-b"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["jagielski-tabel2"], "NAME = 'jagielski-tabel2': expected one of abadi-accounting, abadi-cifar10, abadi-m"),
        (["jagielski-tabel2"], "did you mean 'jagielski-table2'?"),
        (
            ["jagielski-table2", "--only", "init=fixd"],
            "--only = 'fixd': expected one of 0.5, 1, 2, fixed; did you mean",
        ),
        (["jagielski-table2", "--only", "fixed"], "--only = 'fixed': expected one of C=…, eps=…, init=…"),
        (
            ["jagielski-figure2", "--only", "data=purchase", "--only", "attack=backdoor"],
            "--only = 'data=purchase attack=backdoor': expected settings that occur together",
        ),
        ([B, "--trials", "3"], "--trials = 3: expected a whole number ≥ 20"),
        ([B, "--trials", "many"], "--trials"),
        ([B, "--seed", "-1"], "--seed = -1"),
        ([B, "--executor", "nobody"], "nobody"),
        ([B, "--out", "mine"], "--out = 'mine': expected a new or empty directory, or one with a run in it"),
        ([B, "--out", "file"], "--out = 'file': expected a directory to write to (this is a file)"),
        ([B, "--out", ""], "a directory of its own"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_are_refused_in_one_line(
    here: Callable[..., Shown], place: Path, arguments: list[str], words: str
) -> None:
    (place / "mine").mkdir()
    (place / "mine" / "thesis.tex").write_text("do not touch")
    (place / "file").write_text("do not touch")
    where = [] if "--out" in arguments else ["--out", "new"]
    refused(here, words, "reproduce", *arguments, *where)


def test_where_to_write_must_be_said(here: Callable[..., Shown]) -> None:
    refused(here, "Missing option '--out'", "reproduce", B)


def test_data_that_nobody_has_are_asked_for_in_one_line(place: Path) -> None:
    """Market baskets have no checksum and are never downloaded; MNIST cannot be without a network."""
    chosen = ("data=purchase", "model=lr", "attack=mi", "eps=1", "init=1")
    only = [word for setting in chosen for word in ("--only", setting)]
    words = "data.name = 'retail': expected retail.dat.gz"
    refused(there, words, "reproduce", "jagielski-figure2", *only, "--out", "new")
    (place / "mnist.toml").write_text('[data]\nname = "mnist"\n')
    for command in (["audit", "mnist.toml", "--out", "new"], ["preview", "mnist.toml"]):
        refused(there, "download = 'train-images-idx3-ubyte.gz'", *command)


# -- specs -----------------------------------------------------------------------------------------------------------

CLASSES = '[data]\nname = "fashion-mnist"\nclasses = ["Bag", "trouserz"]\n'
FEW = "[data]\nclasses = [0, 1]\nper_class = 5\n"
VECTORS = '[data]\nname = "adult"\n'


def write_fashion(folder: Path) -> None:
    """Twenty pictures in the official format."""
    folder.mkdir(parents=True, exist_ok=True)
    images = np.zeros((20, 28, 28), np.uint8)
    header = b"\0\0\x08\x03" + np.array(images.shape, ">i4").tobytes()
    (folder / "train-images-idx3-ubyte").write_bytes(header + images.tobytes())
    labels = np.arange(20, dtype=np.uint8) % 10
    (folder / "train-labels-idx1-ubyte").write_bytes(
        b"\0\0\x08\x01" + np.array([20], ">i4").tobytes() + labels.tobytes()
    )


def write_adult(folder: Path) -> None:
    """Forty people; their records are vectors."""
    who = "39, {work}, 77516, {school}, 13, {home}, {job}, {role}, White, Male, 2174, 0, 40, United-States, {income}"
    poor = {"work": "State-gov", "school": "Bachelors", "home": "Never-married", "job": "Adm-clerical"}
    rich = {"work": "Private", "school": "HS-grad", "home": "Divorced", "job": "Sales"}
    people = [
        who.format(**poor, role="Not-in-family", income="<=50K"),
        who.format(**rich, role="Husband", income=">50K"),
    ]
    (folder / "adult.data").write_text("\n".join(people * 20) + "\n")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (CLASSES, "data.classes = 'trouserz': expected one of"),
        (CLASSES, "did you mean 'Trouser'?"),
        (
            FEW + '[adversary]\nname = "clipbkd"\ncopies = 10\n',
            "copies = 10: expected fewer than the 10 records of digits",
        ),
        (
            '[adversary]\nname = "clipbkd"\ncopies = 2000\n',
            "adversary.copies = 2000: expected a whole number from 1 to 1",
        ),
        (
            FEW + '[adversary]\nname = "backdoor"\ncopies = 2\n',
            "copies + probes = 102: expected at most the 5 records of digits that are not of class 0",
        ),
        ('[adversary]\nname = "backdoor"\ntarget = 10\n', "target = 10: expected a class of digits, 0 to 9"),
        ('[adversary]\nname = "backdoor"\nsize = 9\n', "images of at least 9 × 9 pixels"),
        (
            VECTORS + '[adversary]\nname = "backdoor"\nprobes = 5\n',
            "images of at least 5 × 5 pixels; use clipbkd instead",
        ),
        ('[adversary]\nname = "membership"\nrecords = 1797\n', "records = 1797: expected fewer than the 1797 records"),
        (
            '[claim]\nrelation = "replace"\n[adversary]\nname = "membership"\n',
            "relation = 'replace': expected add-remove or zero-out",
        ),
        ('[adversary]\nname = "membership"\n[audit]\nthreshold = nan\n', "threshold = nan"),
    ],
    ids=lambda _: "",
)
def test_specs_that_do_not_fit_their_data_are_refused_in_one_line(
    here: Callable[..., Shown], place: Path, spec: str, words: str
) -> None:
    write_fashion(place.parent / "data" / "fashion-mnist")
    write_adult(place.parent / "data")
    (place / "spec.toml").write_text(spec)
    refused(here, words, "audit", "spec.toml", "--out", "new", "--trials", "5", "--executor", "inline", "--quiet")


def test_data_are_where_one_says(here: Callable[..., Shown], place: Path) -> None:
    write_fashion(place / "mine")
    spec = '[data]\nname = "fashion-mnist"\nclasses = [0, 1]\nper_class = 2\n[training]\nsteps = 2\nsample_rate = 0.5\n'
    (place / "spec.toml").write_text(spec + "[audit]\ntrials = 4\n")
    for command in (["audit", "spec.toml", "--executor", "inline"], ["preview", "spec.toml"]):
        shown = here(*command, "--data-dir", "mine", "--json")
        assert shown.returncode == 0, shown.stderr
        assert json.loads(shown.stdout)["plan"]["data"]["records"] == 4
        refused(here, "an existing directory", *command, "--data-dir", "nowhere")


# -- what is done ----------------------------------------------------------------------------------------------------


def test_every_reproduction_is_listed(here: Callable[..., Shown]) -> None:
    listed = json.loads(here("list", "--json").stdout)["reproductions"]
    assert listed == {name: one.summary for name, one in REPRODUCTIONS.items()}


def test_a_reproduction_continues_and_merges(here: Callable[..., Shown], place: Path) -> None:
    """First one cell, then all of them: what was there stays, and other settings are refused with the difference."""
    first = there("reproduce", B, "--trials", "50", "--only", "eps=8", "--out", "b")
    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith("eps=8 lambda=200: paper ")
    assert "wrote b/table.csv, b/figure.svg, b/result.json" in first.stderr
    again = here("reproduce", B, "--trials", "50", "--out", "b", "--quiet", "--json")
    document = json.loads(again.stdout)
    assert document["schema"] == 1
    assert document["settings"] == {"reproduction": B, "trials": 50, "seed": 0}
    assert [row["eps"] for row in document["rows"]] == ["0.5", "1", "2", "4", "8"]
    assert json.loads((place / "b" / "result.json").read_text())["rows"] == document["rows"]
    lines = (place / "b" / "table.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["eps", "0.5", "1", "2", "4", "8"]
    other = ["reproduce", B, "--trials", "60", "--seed", "1", "--out", "b"]
    refused(here, "trials: 50 there, 60 now; seed: 0 there, 1 now", *other)
    words = f"reproduction: {B} there, jagielski-table2 now"
    refused(here, words, "reproduce", "jagielski-table2", "--trials", "50", "--out", "b")


def test_a_quick_look_is_called_one_and_has_the_seed_that_was_given(here: Callable[..., Shown], place: Path) -> None:
    few = here("reproduce", B, "--trials", "50", "--seed", "7", "--only", "eps=1,8", "--out", "b", "--quiet")
    words = "This run has --trials 50, where 200,000 are usual: it can show less."
    assert words in " ".join(few.stdout.split())
    document = json.loads((place / "b" / "result.json").read_text())
    assert words in document["about"]
    assert [(row["seed"], row["own_seed"]) for row in document["rows"]] == [(7, 1007), (7, 4007)]
    assert REPRODUCTIONS[B].about in document["about"]


def test_lower_bounds_are_never_rounded_up(
    here: Callable[..., Shown], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """.69689 would be .697 in three digits, which nobody has proved; an accuracy is rounded as usual."""

    def measure(cell: Cell, _: Session) -> Row:
        return Row(cell, 0.69689, 0.69689, {"papers_rule": 0.69689, "exact_rank": 2.0, "train_accuracy": 0.69689})

    monkeypatch.setitem(REPRODUCTIONS, "jagielski-table2", replace(REPRODUCTIONS["jagielski-table2"], measure=measure))
    only = ("--only", "init=fixed", "--only", "C=1", "--only", "eps=4")
    line = here("reproduce", "jagielski-table2", *only, "--out", "t", "--quiet").stdout.splitlines()[0]
    assert "paper 0.697, measured 0.696 (papers_rule 0.696," in line
    assert "exact_rank 2.000" in line
    assert "train_accuracy 0.697" in line


def test_which_numbers_are_lower_bounds() -> None:
    bounds = {name: set(one.at_least) for name, one in REPRODUCTIONS.items() if one.at_least}
    assert bounds == {
        "jagielski-table2": {"measured", "papers_rule", "exact_rank"},
        "jagielski-figure2": {"measured", "papers_rule"},
        "jagielski-appendix-b": {"certified", "certified_exact_rank"},
        "nasr-ladder": {"measured", "family", "per_step"},
        "nasr-mnist": {"measured", "family", "per_step"},
        "nasr-adaptive": {"measured", "family"},
        "cebere-gcr": {"measured", "certified"},
        "annamalai-init": {"measured", "certified"},
        "annamalai-shuffle": {"measured", "times"},
    }


def test_counts_that_are_not_of_trials_may_be_as_small_as_usual(here: Callable[..., Shown]) -> None:
    """Reference models: the usual number is 2, and 20 would be asked for."""
    refused(here, "--trials = 1: expected a whole number ≥ 2", "reproduce", "nasr-defences", "--trials", "1",
            "--out", "d")  # fmt: skip


def test_an_interrupted_reproduction_says_how_to_continue(
    here: Callable[..., Shown], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = REPRODUCTIONS[B]

    def after(cells: int) -> Reproduction:
        def measure(cell, session):
            if whole.cells.index(cell) == cells:
                raise KeyboardInterrupt
            return whole.measure(cell, session)

        return replace(whole, measure=measure)

    command = ["reproduce", B, "--trials", "50", "--out", "b", "--quiet"]
    monkeypatch.setitem(REPRODUCTIONS, B, after(0))
    shown = here(*command)
    assert (shown.returncode, shown.stderr) == (130, "epsilometer: interrupted; nothing was stored yet\n")
    assert listing(place) == {}
    monkeypatch.setitem(REPRODUCTIONS, B, after(2))
    shown = here(*command)
    assert shown.returncode == 130
    assert f"stored in b; to continue: epsilometer {' '.join(command)}\n" in shown.stderr
    assert len((place / "b" / "table.csv").read_text().splitlines()) == 3
    monkeypatch.setitem(REPRODUCTIONS, B, whole)
    assert here(*command).returncode == 0
    assert len((place / "b" / "table.csv").read_text().splitlines()) == 6
