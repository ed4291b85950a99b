"""What must not be called consistent: processes that nobody looked into, and faults that a check has found."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from opacus.optimizers import DPOptimizer
from test_watch import PRIVATE, script, watch
from trainings import train

from epsilometer.watching.monitor import Monitor
from epsilometer.watching.recording import Reader

pytestmark = pytest.mark.filterwarnings("ignore")
LITTLE = (
    "import opacus.optimizers.optimizer as inner\nright = inner._generate_noise\n"
    "def less(share):\n    inner._generate_noise = lambda std, **others: right(std=std * share, **others)\n"
)
LATE = "def work(share):\n" + "".join(
    f"    {line}\n" for line in (PRIVATE + LITTLE + "less(share)\ntrain(private(), 25)\n").splitlines()
)
SWEEP = "import os\nfor share in (0.3, 1.0):\n    if os.fork() == 0:\n        {child}\n    os.wait()\n"


def verdicts(tmp_path: Path, text: str, *options: str) -> tuple[int, list[tuple[str, bool]], str]:
    """Exit code, verdict of each training and whether it came to its end, and what was said."""
    out = tmp_path / "audit"
    seen = watch("--out", str(out), "--seed", "1", *options, "--", *script(tmp_path, text))
    trainings = json.loads((out / "result.json").read_text())["trainings"]
    return seen.returncode, [(one["verdict"], one["ended"]) for one in trainings], seen.stderr


def test_forked_children_that_import_opacus_later_have_a_verdict_each(tmp_path: Path) -> None:
    """The last one's was all: the first has .3 of its noise."""
    text = LATE + SWEEP.format(child="work(share)\n        raise SystemExit")
    code, found, _ = verdicts(tmp_path, text, "--require", "not-violated", "--ignore", "composition")
    assert (code, sorted(found)) == (1, [("consistent", True), ("violated", True)])


@pytest.mark.full
def test_forked_children_of_a_process_that_has_opacus_have_a_verdict_each(tmp_path: Path) -> None:
    text = PRIVATE + LITTLE + SWEEP.format(child="less(share)\n        train(private(), 25)\n        raise SystemExit")
    code, found, _ = verdicts(tmp_path, text, "--require", "not-violated", "--ignore", "composition")
    assert (code, sorted(found)) == (1, [("consistent", True), ("violated", True)])


NO_NOISE_ON_WEIGHTS = PRIVATE + (
    "import opacus.optimizers.optimizer as inner\nright = inner._generate_noise\n"
    "def matrices_have_none(std, reference, **others):\n"
    "    return right(std=std if reference.dim() < 2 else 0.0, reference=reference, **others)\n"
    "inner._generate_noise = matrices_have_none\n"
)


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ("import os\ntrain(private(), 25)\nos._exit(0)\n", ("violated", True)),
        ("import os, signal\ntrain(private(), 25)\nos.kill(os.getpid(), signal.SIGKILL)\n", ("inconclusive", False)),
        (
            "import multiprocessing\n"
            "child = multiprocessing.get_context('fork').Process(target=lambda: train(private(), 25))\n"
            "child.start()\nchild.join()\n",
            ("violated", True),
        ),
    ],
    ids=["os._exit", "killed", "multiprocessing"],
)
def test_a_process_without_checks_is_not_consistent(tmp_path: Path, end: str, expected: tuple[str, bool]) -> None:
    code, found, said = verdicts(tmp_path, NO_NOISE_ON_WEIGHTS + end, "--require", "consistent")
    assert found == [expected]
    assert code == {"inconclusive": 137, "violated": 1}[expected[0]]
    assert "before checks were made (a signal)" in said or expected[1]


def test_a_process_that_is_killed_keeps_what_was_known_before(tmp_path: Path) -> None:
    killed = "import os, signal\ntrain(private(), 6)\nos.kill(os.getpid(), signal.SIGKILL)\n"
    soon = "import epsilometer.watching.training as own\nown._PAUSE, own._SHARE = 0.0, 1e9\n"
    _, found, _ = verdicts(tmp_path, NO_NOISE_ON_WEIGHTS.replace("def private", f"{soon}\ndef private") + killed)
    assert found == [("violated", False)]
    right = tmp_path / "right"
    right.mkdir()
    _, found, said = verdicts(right, PRIVATE.replace("def private", f"{soon}\ndef private") + killed)
    assert found == [("inconclusive", False)]
    assert "its process never said that it ended (a signal): checks are those of a moment before" in said


def tamper(change: Any) -> Any:
    """Between noise and step, the gradient of the first matrix is changed."""

    def alter(optimizer: Any) -> None:
        class Tampering(type(optimizer)):  # type: ignore[misc]
            def step(self, closure: Any = None) -> Any:
                if self.pre_step():
                    change(self.params[0])
                    return self.original_optimizer.step(closure)
                return None

        optimizer.__class__ = Tampering

    return alter


def statuses(training: Any) -> dict[str, str]:
    return {check.name: check.status for check in training.checks}


def test_noise_that_is_taken_off_in_some_columns_is_seen() -> None:
    """Every 32nd value of 32 × 64 lies in two columns: all others were never looked at."""

    def keep_two_columns(p: torch.Tensor) -> None:
        rows = p.grad.reshape(32, 64)  # type: ignore[union-attr]
        rows[:, [c for c in range(64) if c % 32]] += 0.5

    watch = train({}, alter=tamper(keep_two_columns)).watch
    assert watch is not None
    assert statuses(watch.trainings[0])["noise-kept"] == "failed"


def test_a_buffer_of_which_one_value_moves_is_seen() -> None:
    """Every 16th of 65,536 values was looked at."""
    from epsilometer.watching.collect.movement import Places

    buffer = torch.zeros(256, 256)
    places = Places(lambda: {"mean": buffer})
    assert places.moved() == []
    buffer[3, 5] = 1e-9
    assert places.moved() == ["mean"]
    buffer[3, 5] = -0.0
    assert places.moved() == []


def test_a_failed_check_that_refutes_the_mechanism_is_no_pass(tmp_path: Path) -> None:
    text = NO_NOISE_ON_WEIGHTS + "train(private(), 25)\n"
    code, found, said = verdicts(tmp_path, text, "--require", "not-violated")
    assert (code, found) == (1, [("violated", True)])
    assert ": noise is broken at step 1 (by noise-law, noise-scale, 95 % confidence): weight: noise × 0 of" in said
    assert "check failed: independent-noise" not in said  # two coordinates with noise are often nearly parallel
    assert "broken: noise (step 1); held: clipping, sampling, accounting" in said
    accepted = watch(
        "--require", "not-violated", "--ignore", "noise-scale", "--ignore", "noise-law", "--", *script(tmp_path, text)
    )
    assert accepted.returncode == 0


def test_adaptive_clipping_and_correlated_noise_are_not_accused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is failed there may be right: another mechanism than the one that checks know."""
    adaptive = {
        "clipping": "adaptive", "target_unclipped_quantile": 0.5, "clipbound_learning_rate": 0.2,
        "max_clipbound": 10.0, "min_clipbound": 0.1, "unclipped_num_std": 10.0,
    }  # fmt: skip
    watch = train({}, poisson_sampling=False, **adaptive).watch
    assert watch is not None
    assert statuses(watch.trainings[0])["sampler"] == "failed"
    assert watch.verdict.outcome == "inconclusive"

    class Correlated(DPOptimizer):  # type: ignore[misc]
        """Half of the noise of a step is taken off in the next one, as in matrix factorization."""

        def add_noise(self) -> None:
            before = getattr(self, "remembered", [0.0] * len(self.params))
            super().add_noise()
            self.remembered = [(p.grad - p.summed_grad).clone() for p in self.params]
            for p, noise in zip(self.params, before, strict=True):
                p.grad -= 0.5 * noise

    monkeypatch.setattr("opacus.privacy_engine.get_optimizer_class", lambda **_: Correlated)
    watch = train({}, steps=30).watch
    assert watch is not None
    assert statuses(watch.trainings[0])["independent-noise"] == "failed"
    assert watch.verdict.outcome == "inconclusive"

    class Repeated(DPOptimizer):  # type: ignore[misc]
        def add_noise(self) -> None:
            torch.manual_seed(1)
            super().add_noise()

    monkeypatch.setattr("opacus.privacy_engine.get_optimizer_class", lambda **_: Repeated)
    watch = train({}).watch
    assert watch is not None
    assert watch.verdict.refuted == "the stated mechanism: noise, sampling"  # batches are drawn again, too


def test_a_layer_that_is_frozen_in_the_middle_is_followed() -> None:
    """It was the end of all checks: zip() argument 2 is shorter than argument 1."""
    taken = 0

    def freeze(optimizer: Any) -> None:
        step = optimizer.step

        def counting(closure: Any = None) -> Any:
            nonlocal taken
            result = step(closure)
            optimizer.zero_grad()
            taken += 1
            for p in optimizer.original_optimizer.param_groups[0]["params"][:2]:
                p.requires_grad_(not 8 <= taken < 16)
            return result

        optimizer.step = counting

    watch = train({}, steps=24, alter=freeze).watch
    assert watch is not None
    (training,) = watch.trainings
    found = statuses(training)
    assert found["noise-scale"] == found["independent-noise"] == "passed", training.checks
    assert training.verdict().outcome == "consistent"


NONSENSE = [
    {"kind": "step", "training": 1, "scores": "AAAA", "coins": "AA==", "canaries": 1, "noise_multiplier": "x"},
    {"kind": "made-private", "training": [], "optimizer": 3, "noise_multiplier": None, "clip_norm": {}},
    {"kind": "facts", "training": 1, "facts": {"steps": {"taken": 3}}},
    {"kind": "ended", "training": 1, "unseen": 0, "history": [["a", 0.1, 3]]},
    {"kind": "ended", "training": 1, "unseen": 0, "history": [[1.0, 0.1, float("nan")]]},
    {"kind": "facts", "training": 1, "facts": [1, 2]},
    {"kind": "started", "pid": "me", "argv": 7, "python": []},
]


def test_a_recording_that_makes_no_sense_leaves_the_exit_code_alone(tmp_path: Path) -> None:
    writing = (
        f"import glob, json, os\nlines = {NONSENSE!r}\n".replace("nan", "float('nan')")
        + "with open(glob.glob(os.environ['EPSILOMETER_WATCH'] + '/*.jsonl')[0], 'a') as file:\n"
        "    file.write(''.join(json.dumps(line) + '\\n' for line in lines))\n"
    )
    text = PRIVATE + writing + "train(private(), 25)\n"
    seen = watch("--seed", "1", "--require", "not-violated", "--", *script(tmp_path, text))
    assert seen.returncode == 0, seen.stderr
    assert "7 lines of the recordings make no sense, and were left out" in seen.stderr
    assert ": consistent: " in seen.stderr
    assert watch("--require", "consistent", "--", *script(tmp_path, text)).returncode == 4


def test_lines_that_make_no_sense_are_damaged_and_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "1-1.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in NONSENSE))
    reader, monitor = Reader(path), Monitor()
    for record in reader.new():
        monitor.take(record)
    assert (reader.damaged, list(monitor)) == (len(NONSENSE), [])


def test_noise_that_is_next_to_nothing_is_told(tmp_path: Path) -> None:
    seen = watch("--require", "not-violated", "--", *script(tmp_path, PRIVATE + "train(private(1e-300), 3)\n"))
    assert seen.returncode == 0
    assert "canaries: not audited, because a step makes no sense" in seen.stderr
    assert ": inconclusive: " in seen.stderr


def test_a_verdict_in_the_process_has_its_checks() -> None:
    watch = train({}, poisson_sampling=False, steps=20).watch
    assert watch is not None
    assert watch.verdict.refuted == "the stated mechanism: sampling"
    assert statuses(watch.trainings[0])["steps"] == "passed"
