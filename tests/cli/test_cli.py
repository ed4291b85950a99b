"""The program as its users meet it: exit codes, one line for each mistake; in real processes where these matter."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from program import Shown, in_process

from epsilometer import __version__
from epsilometer.bounds import METHODS
from epsilometer.cli.scores import parse_scores
from epsilometer.errors import InvalidInput

QUICK = "[training]\nsteps = 4\nsample_rate = 0.3\n[audit]\ntrials = 20\n"
Here = Callable[..., Shown]


def epsilometer(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "epsilometer", *arguments], capture_output=True, text=True, cwd=cwd, timeout=120,
        check=False, env={**os.environ, "COLUMNS": "200"},
    )  # fmt: skip


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    path = tmp_path / "scores.csv"
    rows = [f"{world},{score}" for world in (0, 1) for score in range(40 * world, 40 * world + 100)]
    path.write_text("world,score\n" + "\n".join(rows) + "\n")
    return path


COMMANDS = [
    "init", "preview", "audit", "ladder", "runs", "account", "bound", "compare", "coverage", "power", "reproduce",
    "list",
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(command: str, here: Here) -> None:
    shown = here(command, "--help")
    assert shown.returncode == 0
    assert "Examples" in shown.stdout
    assert f"epsilometer {command}" in shown.stdout
    assert "--json" in shown.stdout


def test_the_program_lists_its_commands() -> None:
    shown = epsilometer("--help")
    assert all(command in shown.stdout for command in COMMANDS)
    assert epsilometer("--version").stdout.strip() == __version__


@pytest.mark.parametrize(
    "arguments",
    [
        ["account", "--sample-rate", "0.01", "--noise-multiplier", "4", "--steps", "100", "--accountant", "all"],
        ["account", "--sample-rate", "0.1", "--epsilon", "2", "--steps", "10", "--relation", "replace"],
        ["bound", "--counts", "970", "20", "30", "980", "--delta", "1e-5"],
        ["power", "--epsilon", "1", "--true-epsilon", "4"],
        ["list"],
    ],
    ids=" ".join,
)
def test_json_is_one_object_with_a_schema(arguments: list[str], here: Here) -> None:
    shown = here(*arguments, "--json")
    assert shown.returncode == 0
    assert json.loads(shown.stdout)["schema"] == 1
    assert here(*arguments).stdout


def test_no_heavy_imports_where_they_are_not_needed() -> None:
    """Help must be quick: no numpy, scipy, torch or scikit-learn; and no torch for anything but training."""
    code = (
        "import sys; sys.argv = ['epsilometer', *{arguments!r}]\n"
        "from epsilometer.cli.app import run\n"
        "run()\n"
        "print([m for m in {heavy!r} if m in sys.modules], file=sys.stderr)"
    )
    light = ("torch", "sklearn.datasets", "jax")
    cases = [
        (["--help"], (*light, "numpy", "scipy", "dp_accounting", "pydantic.main")),
        (["list"], (*light, "dp_accounting")),
        (["power", "--epsilon", "1"], (*light, "dp_accounting", "scipy.stats")),
        (["bound", "--counts", "9", "1", "1", "9"], (*light, "dp_accounting", "scipy.stats")),
        (["bound", "--counts", "9", "1", "1", "9", "--claim", "1"], (*light, "dp_accounting", "scipy.stats")),
        (["account", "--sample-rate", "0.1", "--noise-multiplier", "1", "--steps", "2"], light),
    ]
    for arguments, heavy in cases:
        script = code.format(arguments=arguments, heavy=[m for m in heavy if m != "pydantic.main"])
        shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert shown.stderr.strip().splitlines()[-1] == "[]", arguments


def test_bound_from_scores(scores: Path, here: Here) -> None:
    found = json.loads(here("bound", str(scores), "--json").stdout)["lower_bound"]
    assert found["kind"] == "certified"
    assert found["epsilon"] > 0.3
    estimate = json.loads(here("bound", str(scores), "--method", "best-on-same", "--json").stdout)
    assert estimate["lower_bound"]["kind"] == "estimate"
    fixed = json.loads(here("bound", str(scores), "--threshold", "99", "--json").stdout)["lower_bound"]
    assert fixed["counts"] == {"tp": 40, "fp": 0, "fn": 60, "tn": 100}


def test_a_refuted_claim_is_exit_code_1(here: Here) -> None:
    counts = ["--counts", "970", "20", "30", "980", "--delta", "1e-5"]
    assert here("bound", *counts, "--claim", "3").returncode == 1
    assert here("bound", *counts, "--claim", "3.5").returncode == 0


def test_an_estimate_refutes_nothing(scores: Path, here: Here) -> None:
    shown = here("bound", str(scores), "--method", "best-on-same", "--claim", "0.01", "--json")
    assert shown.returncode == 0
    document = json.loads(shown.stdout)
    assert (document["test"]["kind"], document["verdict"]) == ("estimate", "inconclusive")


def test_audit_writes_what_bound_can_read(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(QUICK)
    shown = in_process("audit", "spec.toml", "--out", "run", "--json", cwd=tmp_path)
    assert shown.returncode == 0
    document = json.loads(shown.stdout)
    assert document["verdict"] in ("consistent", "inconclusive")
    written = json.loads((tmp_path / "run" / "result.json").read_text())
    assert written.pop("command") == "epsilometer audit spec.toml --out run --json"
    assert written == document
    again = in_process("bound", "run/scores.csv", "--delta", "1e-5", "--json", cwd=tmp_path)
    assert json.loads(again.stdout)["lower_bound"] == document["lower_bound"]
    # Nothing is overwritten: the same spec finds everything done, and another is refused.
    before = (tmp_path / "run" / "result.json").read_bytes()
    same = in_process("audit", "spec.toml", "--out", "run", cwd=tmp_path)
    assert (same.returncode, same.stderr) == (0, "run had its results already\n")
    other = in_process("audit", "spec.toml", "--seed", "9", "--out", "run", cwd=tmp_path)
    assert other.returncode == 2
    assert "seed: 0 there, 9 now" in other.stderr
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "result.json").write_text("mine")
    foreign = in_process("audit", "spec.toml", "--out", "foreign", cwd=tmp_path)
    assert foreign.returncode == 2
    assert "a new or empty directory, or one with a run in it" in foreign.stderr
    assert (tmp_path / "run" / "result.json").read_bytes() == before


@pytest.mark.full
def test_scores_of_a_violated_audit_are_judged_as_the_audit_judged_them(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(QUICK)
    audited = in_process(
        "audit", "spec.toml", "--noise-scale", "0.5", "--trials", "150", "--out", "run", "--json", cwd=tmp_path
    )
    assert audited.returncode == 1
    result = json.loads(audited.stdout)
    training = [
        f"--{name.replace('_', '-')}={result['plan']['recipe'][name]!r}"
        for name in ("sample_rate", "noise_multiplier", "steps")
    ]
    again = in_process("bound", "run/scores.csv", "--delta", "1e-5", *training, "--json", cwd=tmp_path)
    assert (again.returncode, again.stderr) == (1, "")
    judged = json.loads(again.stdout)
    assert judged["verdict"] == "violated"
    assert judged["test"] == result["claim_test"]
    assert all(judged[name] == result[name] for name in ("verdict", "reason", "power", "claim", "lower_bound"))
    # The point (4, 1e-5) on that curve promises far less.
    point = in_process("bound", "run/scores.csv", "--delta", "1e-5", "--claim", "4", "--json", cwd=tmp_path)
    assert (point.returncode, json.loads(point.stdout)["verdict"]) == (0, "inconclusive")
    exported = in_process("runs", "run", "--export", "scores.parquet", cwd=tmp_path)
    assert exported.returncode == 0
    from_parquet = in_process("bound", "scores.parquet", "--delta", "1e-5", *training, "--json", cwd=tmp_path)
    assert json.loads(from_parquet.stdout) == judged


def test_options_override_the_spec_and_faults_are_seen(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(QUICK)
    options = ["--trials", "150", "--seed", "3", "--confidence", "0.9", "--noise-scale", "0.25", "--json"]
    shown = in_process("audit", "spec.toml", *options, cwd=tmp_path)
    document = json.loads(shown.stdout)
    assert shown.returncode == 1
    assert document["verdict"] == "violated"
    assert (document["seed"], document["lower_bound"]["confidence"], document["trials"]["in"]) == (3, 0.9, 150)
    assert document["faults"] == {"noise_scale": 0.25}
    assert ": 300 of 300 trials" in shown.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"world,score\n0,nan\n1,1", "score in line 2 = 'nan'"),
        (b"world,score\n0,\n1,1", "score in line 2 = ''"),
        (b"world,score\n", "no row with world 0"),
        (b"world,score\n0,1", "no row with world 1"),
        (b"world,score\n2,1", "world in line 2 = '2'"),
        (b"world,score\n0\n1,1", "line 2"),
        (b"a,b\n1,2", "the columns world and score"),
        (b"", "the columns world and score"),
        (b"world,score,score\n0,1,2\n1,1,2", "one column score"),
        (b"world,score\n0,1_000\n1,1", "score in line 2 = '1_000'"),
        (b"world,score,x,x\n0,1,2,3\n1,1,2,3", "one column x"),
        (b"world,score,group_size,group_size\n0,1,1,2\n1,1,1,2", "one column group_size"),
        (b"world,score\n0,1\n1,1e400", "score in line 3 = '1e400': expected a number of at most 1.8e308"),
        (b"world,score\n0,1\n1.0,1", "world in line 3 = '1.0'"),
        (b"world,score\n0,1\n10,1", "world in line 3 = '10'"),
        (b"world,score,x\n0,1,2\n1,1,2,3", "line 3"),
        (b"\xff\xfe", "not UTF-8"),
    ],
)
def test_bad_score_files_are_refused_in_one_line(tmp_path: Path, content: bytes, words: str, here: Here) -> None:
    path = tmp_path / "scores.csv"
    path.write_bytes(content)
    shown = here("bound", str(path))
    assert shown.returncode == 2
    assert words in shown.stderr
    assert len(shown.stderr.strip().splitlines()) == 1
    assert shown.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["bound", "missing.csv"], "missing.csv"),
        (["bound", "."], "a readable file"),
        (["bound"], "exactly one of them"),
        (["bound", "--counts", "1", "-2", "3", "4"], "--counts: fp = -2"),
        (["bound", "--counts", "1", "2", "3", "4", "--delta", "1"], "delta = 1.0"),
        (["bound", "--counts", "1", "2", "3", "4", "--delta", "nan"], "delta = nan"),
        (["bound", "--counts", "1", "2", "3", "4", "--confidence", "0"], "confidence = 0.0"),
        (["bound", "--counts", "1", "2", "3", "4", "--claim", "-1"], "--claim = -1.0"),
        (
            ["bound", "--counts", "1", "2", "3", "4", "--method", "split"],
            "--method = 'split': expected a method for this evidence",
        ),
        (["bound", "--counts", "1", "2", "3"], "'--counts' requires 4 arguments (TP FP FN TN)"),
        (["bound", "--delta", "abc"], "given: 'abc'"),
        (["bund"], "Did you mean 'bound'"),
        (["bound", "--counts", "9", "1", "1", "9", "--threshold", "0"], "--threshold = 0.0"),
        (["bound", "--counts", "1", "2", "3", "x"], "given: '1 2 3 x'"),
        (["bound", "--counts", "1" + "0" * 400, "2", "3", "4"], "--counts = '1000"),
        (["bound", "--counts", "9", "1", "1", "9", "--group-size", "100000"], "--group-size = 100000"),
        (
            ["account", "--sample-rate", "0.1", "--noise-multiplier", "1e-200", "--steps", "5"],
            "--noise-multiplier = 1e-200",
        ),
        (["account", "--sample-rate", "0.1", "--noise-multiplier", "1", "--steps", "1" + "0" * 40], "--steps = 1000"),
        (["power", "--epsilon", "1", "--probability", "0"], "--probability = 0.0"),
        (["audit", "--trials", "1000000000000"], "trials = 1000000000000"),
        (["audit", "--out", ""], "a directory of its own"),
        (["audit", "--out", "/proc"], "a new or empty directory"),
        (["audit", "--out", "x" * 300], "--out = 'xxx"),
        (["account", "--sample-rate", "0.1", "--steps", "5"], "exactly one of them"),
        (["account", "--sample-rate", "2", "--steps", "5", "--noise-multiplier", "1"], "--sample-rate = 2"),
        (["account", "--sample-rate", "0.1", "--steps", "5", "--noise-multiplier", "1", "--accountant", "x"], "'x'"),
        (
            ["account", "--sample-rate", "0.1", "--steps", "5", "--noise-multiplier", "1", "--relation", "rep"],
            "replace",
        ),
        (["power", "--epsilon", "4", "--true-epsilon", "3"], "more than the claimed 4"),
        (["audit", "--adversary", "nobody"], "--adversary = 'nobody'"),
        (["audit", "--adversary", "lira"], "lira is an attack of 'epsilometer membership'"),
        (["audit", "missing:train"], "--data is missing: expected the records to train on"),
        (["init", "new.toml", "--template", "opacus"], "epsilometer watch -- python train.py"),
        (["audit", "--trials", "0"], "--trials = 0"),
        (["audit", "missing.toml"], "missing.toml"),
        (["audit", "--noise-scale", "-1"], "--noise-scale = -1"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_arguments_are_refused_in_one_line(arguments: list[str], words: str, here: Here) -> None:
    shown = here(*arguments)
    assert shown.returncode == 2
    assert words in shown.stderr
    assert len(shown.stderr.strip().splitlines()) == 1
    assert "Traceback" not in shown.stderr


def test_a_training_of_ones_own_is_not_given_digits_silently(tmp_path: Path, here: Here) -> None:
    spec = tmp_path / "own.toml"
    spec.write_text('[subject]\ntrain = "json:loads"\n[claim]\nepsilon = 1.0\n')
    shown = here("audit", str(spec))
    assert shown.returncode == 2
    assert "data.path is missing: expected the records to train on; name a file in [data]" in shown.stderr


def test_a_name_that_is_a_list_is_one_clear_line(tmp_path: Path, here: Here) -> None:
    spec = tmp_path / "list.toml"
    spec.write_text("[adversary]\nname = [1]\n")
    shown = here("audit", str(spec))
    assert (shown.returncode, "adversary.name = [1]: expected a text" in shown.stderr) == (2, True), shown.stderr


def test_nothing_but_a_violation_is_exit_code_1(tmp_path: Path) -> None:
    assert epsilometer().returncode == 0  # help
    (tmp_path / "spec.toml").write_text(QUICK)
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    for arguments in (["audit", "spec.toml"], ["power", "--epsilon", "1", "--json"], ["list"]):
        command = [sys.executable, "-m", "epsilometer", *arguments]
        shown = subprocess.run(command, capture_output=True, cwd=tmp_path, env=ascii_only, check=False)
        assert shown.returncode == 0
        assert b"Traceback" not in shown.stderr
    full = subprocess.run(
        f"{sys.executable} -m epsilometer list > /dev/full", shell=True, capture_output=True, check=False
    )
    assert full.returncode == 2
    for arguments, code in (("audit spec.toml", 0), ("bogus", 2), ("bound --delta 7 --counts 1 1 1 1", 2)):
        command = f"{sys.executable} -m epsilometer {arguments} 2> /dev/full"
        unheard = subprocess.run(command, shell=True, capture_output=True, cwd=tmp_path, check=False)
        assert unheard.returncode == code, arguments
    closed = f"{sys.executable} -m epsilometer bound --counts 970 20 30 980 --claim 0.1 >&-"
    assert subprocess.run(closed, shell=True, check=False).returncode == 1  # refuted, whoever listens
    gone = subprocess.run(
        f"set -o pipefail; {sys.executable} -m epsilometer list | true", shell=True, executable="/bin/bash", check=False
    )
    assert gone.returncode in (0, 141)  # ended by the closed pipe, as other tools are


def test_an_internal_error_is_exit_code_3() -> None:
    script = (
        "import sys, epsilometer.claims; sys.argv = ['epsilometer', 'power', '--epsilon', '1']\n"
        "def broken(*a, **k): raise RuntimeError('something')\n"
        "epsilometer.claims.PointClaim.max_tpr = broken\n"
        "from epsilometer.cli import main; main()"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert shown.returncode == 3
    assert "internal error (RuntimeError: something)" in shown.stderr
    assert "Traceback" not in shown.stderr


def test_scores_come_from_stdin_and_in_every_dialect(tmp_path: Path) -> None:
    expected = [[0.5], [2.0]]
    for content in (
        b'"world" , "score"\n0 , 0.5\n1 , "2"',
        b"world,score\r0,0.5\r1,2\r",
        b"\xef\xbb\xbfscore,x,world\n.5,a,0\n2,b,1\n",
    ):
        assert [scores.tolist() for scores in parse_scores(content)] == expected
    command = [sys.executable, "-m", "epsilometer", "bound", "-"]
    shown = subprocess.run(command, input=b"world,score\n0,0\n1,1\n", capture_output=True, check=False)
    assert shown.returncode == 0


def test_options_win_over_the_spec(tmp_path: Path) -> None:
    training = "[training]\nsteps = 2\nnoise_multiplier = 9.0\n[audit]\ntrials = 4\n"
    (tmp_path / "spec.toml").write_text(training + '[adversary]\nname = "clipbkd"\ncopies = 2\n')
    shown = in_process("audit", "spec.toml", "--epsilon", "3", "--adversary", "gradient", "--json", cwd=tmp_path)
    document = json.loads(shown.stdout)
    assert document["claim"]["epsilon"] == pytest.approx(3.0, abs=5e-3)
    assert document["plan"]["adversary"] == {"name": "gradient", "coordinates": 20, "direction": "watermark"}


def test_ctrl_c_is_exit_code_130(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(QUICK)
    process = subprocess.Popen(
        [sys.executable, "-m", "epsilometer", "audit", "spec.toml", "--trials", "20000", "--executor", "inline"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # CI may ignore it
    )
    assert process.stderr is not None
    assert process.stderr.readline().startswith("gradient: ")
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted; nothing is kept without --out DIR" in rest
    assert "Traceback" not in rest


@given(st.binary(max_size=300) | st.text(alphabet='world,score\n01.5-einfa" ', max_size=200).map(str.encode))
def test_arbitrary_bytes_never_crash_the_score_parser(content: bytes) -> None:
    try:
        out, member = parse_scores(content)
    except InvalidInput as error:
        assert "\n" not in str(error)
    else:
        assert len(out)
        assert len(member)


def test_compare_prints_every_bound(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    rng = np.random.default_rng(0)
    rows = [(0, x) for x in rng.normal(size=300)] + [(1, x) for x in rng.normal(2, size=300)]
    path.write_text("world,score\n" + "\n".join(f"{w},{s}" for w, s in rows))
    shown = epsilometer("compare", str(path), "--delta", "1e-5")
    names = [line.split("\t")[0] for line in shown.stdout.splitlines()]
    assert names[:4] == ["bound", "exact-rank", "exact-rank-union", "eprocess"]
    assert "expected 0 with a ratio" in shown.stdout  # Katz-log and Bailey know no δ, and say so
    assert "\tfamily\t" in shown.stdout
    bounds = json.loads(epsilometer("compare", str(path), "--delta", "0", "--json").stdout)["bounds"]
    assert "no ε at δ = 0" in bounds.pop("gaussian")["not_applicable"]
    assert bounds["exact-rank"]["epsilon"] > bounds["split"]["epsilon"] > 0
    assert {bound["kind"] for bound in bounds.values()} == {"certified", "credible", "estimate"}


def test_one_run_files_and_their_bounds(tmp_path: Path) -> None:
    path = tmp_path / "canaries.csv"
    path.write_text("member,score\n" + "\n".join(f"{int(i >= 500)},{i}" for i in range(1000)))
    shown = in_process("bound", "--one-run", str(path), "--delta", "1e-5", "--method", "one-run", "--guesses", "1000")
    assert shown.stdout.startswith("Quote ε ≥ 5.782")
    assert "1000 of 1000 guesses right" in shown.stdout
    assert in_process("bound", "--one-run", str(path), "--claim", "1").returncode == 1
    lines = in_process("compare", "--one-run", str(path), "--delta", "1e-5").stdout.splitlines()
    assert [line.split("\t")[0] for line in lines[1:]] == ["one-run-point", "one-run", "one-run-gaussian"]
    every = json.loads(in_process("bound", "--one-run", str(path), "--threshold", "499.5", "--json").stdout)
    assert every["lower_bound"]["guesses"] == 1000  # all of them, in iff above
    both = in_process("bound", "--one-run", str(path), "--threshold", "1", "--guesses", "10")
    assert (both.returncode, "--threshold = 1.0: expected nothing with --guesses" in both.stderr) == (2, True)
    lower = in_process("bound", "--one-run", str(path), "--direction", "lower", "--json")
    assert json.loads(lower.stdout)["lower_bound"]["epsilon"] == 0


def test_coverage_writes_a_page(tmp_path: Path) -> None:
    shown = in_process(
        "coverage", "--repetitions", "3", "--trials", "20", "--bound", "exact-rank", "--out", str(tmp_path)
    )
    assert shown.returncode == 0
    written = {"calibration.md", "calibration.svg", "calibration.json", "report.html"}
    assert {path.name for path in tmp_path.iterdir()} == written
    cells = json.loads((tmp_path / "calibration.json").read_text())["cells"]
    assert len(cells) == len((tmp_path / "calibration.md").read_text().splitlines()) - 2
    assert (tmp_path / "calibration.svg").read_text().startswith("<svg")


def test_coverage_measures_all_bounds_that_it_can() -> None:
    """It ended with exit code 2 after half of them: a Gaussian family has no ε at δ = 0."""
    shown = in_process("coverage", "--repetitions", "1", "--trials", "20", "--json")
    assert shown.returncode == 0
    measured = {cell["bound"] for cell in json.loads(shown.stdout)["cells"]}
    able = {name for name, one in METHODS.items() if not one.needs_mechanism}
    assert measured == able - {"clopper-pearson", "gaussian", "one-run-gaussian"}
    assert "not measured: clopper-pearson (takes counts, and here are scores); gaussian (holds for" in shown.stderr
    refused = in_process("coverage", "--bound", "gaussian")
    assert refused.returncode == 2
    assert "gaussian holds for Gaussian mechanisms, and none is measured here" in refused.stderr


def test_coverage_writes_through_no_link(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "calibration.md").symlink_to(tmp_path / "not there yet")
    command = ["coverage", "--repetitions", "3", "--trials", "20", "--bound", "exact-rank", "--out", "out"]
    shown = epsilometer(*command, cwd=tmp_path)
    assert shown.returncode == 2
    assert "a folder without calibration.md" in shown.stderr
    assert not (tmp_path / "not there yet").exists()


def test_only_the_command_that_is_asked_for_is_imported() -> None:
    code = "import sys; from epsilometer.cli.app import run; run(); print(*sys.modules, sep='\\n')"
    ran = subprocess.run([sys.executable, "-c", code, "power", "--help"], capture_output=True, text=True, check=True)
    ours = {name.split(".")[2] for name in ran.stdout.splitlines() if name.startswith("epsilometer.cli.")}
    assert "power" in ours
    assert not ours & {"audit", "instances", "reconstruct", "watch"}
