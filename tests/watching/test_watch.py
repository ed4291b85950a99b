"""`epsilometer watch` on real scripts in real processes: their output, exit code and results are their own."""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent / "scripts"
DIGITS = [sys.executable, "-W", "ignore", str(SCRIPTS / "digits.py")]
NOTHING = "epsilometer: nothing was audited: "


def run(command: list[str], **settings: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **settings.pop("env", {})}
    return subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=120, env=environment, **settings
    )


def watch(*arguments: str, **settings: object) -> subprocess.CompletedProcess[str]:
    """With a seed of its own: a verdict that depends on chance would be a flaky test."""
    seed = () if "--again" in arguments or "--seed" in arguments else ("--seed", "1")
    return run([sys.executable, "-m", "epsilometer", "watch", *seed, *arguments], **settings)


def script(tmp_path: Path, text: str, name: str = "script.py") -> list[str]:
    path = tmp_path / name
    path.write_text(text)
    return [sys.executable, "-W", "ignore", str(path)]


PRIVATE = """
import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)

def private(noise=1.0, size=8):
    data = TensorDataset(torch.randn(64, size), torch.randint(0, 2, (64,)))
    model = torch.nn.Linear(size, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return PrivacyEngine(accountant="rdp").make_private(
        module=model, optimizer=optimizer, data_loader=DataLoader(data, batch_size=16),
        noise_multiplier=noise, max_grad_norm=1.0)

def train(made, steps):
    model, optimizer, loader = made
    while steps:
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            steps -= 1
            if not steps:
                return
"""


def test_a_script_does_what_it_does_without_watch(tmp_path: Path) -> None:
    without = run([*DIGITS, "--exit", "7"])
    out = tmp_path / "audit"
    seen = watch("--out", str(out), "--", *DIGITS, "--exit", "7")
    assert (seen.returncode, seen.stdout) == (without.returncode, without.stdout)
    assert without.returncode == 7
    assert json.loads(seen.stdout)["history"] == [[1.386, 0.1, 20]]
    result = json.loads((out / "result.json").read_text())
    assert result["exit_code"] == 7
    (training,) = result["trainings"]
    assert (training["verdict"], training["steps"], training["ended"]) == ("consistent", 20, True)
    assert training["noise_multiplier"] == 1.386
    verdict, statements, limit = seen.stderr.splitlines()
    held = "held: clipping, noise, sampling, accounting"
    assert verdict.startswith(f"epsilometer: training 1: consistent: {held}; nothing else: held, without replay")
    assert statements.startswith(f"epsilometer: training 1: {held}, nothing else (without replay); accounted: ε ≤ ")
    assert statements.endswith("; next: --neighbours 2 replays it with a record changed")
    assert limit.startswith("epsilometer: a limit of every training of this kind: nonfinite-record: ")
    again = watch("--again", str(out), "--verbose").stderr.splitlines()
    assert again[0].startswith(
        "epsilometer: training 1: DPOptimizer, noise multiplier 1.386, clip norm 1, 200 canaries"
    )
    assert again[1] == verdict
    rows = [line.removeprefix("epsilometer: training 1: ").split(": ")[:2] for line in again[2:7]]
    assert [words[0] for words in rows] == ["clipping", "noise", "sampling", "accounting", "nothing else"]
    assert all(words[1].startswith("held (by ") for words in rows)
    assert again[7].startswith("epsilometer: training 1: quote: 20 steps do not refute the stated noise")
    assert watch("--out", str(out), "--", "true").returncode == 2  # results are not overwritten


@pytest.mark.parametrize(
    "mode",
    [
        pytest.param([], id="hooks", marks=pytest.mark.full),
        pytest.param(["--mode", "ghost", "--physical", "50"], id="ghost"),
    ],
)
def test_half_of_the_noise_is_violated(mode: list[str]) -> None:
    seen = watch("--require", "not-violated", "--", *DIGITS, "--noise-scale", "0.5", *mode)
    assert seen.returncode == 1
    assert "violated: noise is broken at step" in seen.stderr
    assert json.loads(seen.stdout)["history"] == [[1.386, 0.1, 20]]


def test_a_script_that_fails_keeps_its_exit_code_and_traceback(tmp_path: Path) -> None:
    command = script(tmp_path, PRIVATE + "made = private()\ntrain(made, 3)\nraise ValueError('no such file')\n")
    seen = watch("--require", "consistent", "--", *command)
    assert seen.returncode == 1
    assert "ValueError: no such file" in seen.stderr
    assert "3 steps do not refute" in seen.stderr


def test_a_killed_script_is_judged_by_what_was_seen(tmp_path: Path) -> None:
    text = PRIVATE + "import os, signal\ntrain(private(), 5)\nos.kill(os.getpid(), signal.SIGKILL)\n"
    out = tmp_path / "audit"
    seen = watch("--out", str(out), "--", *script(tmp_path, text))
    assert seen.returncode == 128 + signal.SIGKILL
    (training,) = json.loads((out / "result.json").read_text())["trainings"]
    assert (training["verdict"], training["steps"], training["ended"]) == ("inconclusive", 5, False)
    assert "its process was ended early (exit code 137)" in seen.stderr


@pytest.mark.full
def test_engines_and_processes_have_a_verdict_each(tmp_path: Path) -> None:
    text = PRIVATE + (
        "import os, subprocess, sys\n"
        "train(private(), 2)\ntrain(private(2.0), 3)\n"
        "if len(sys.argv) == 1:\n    subprocess.run([sys.executable, __file__, 'again'], check=True)\n"
    )
    out = tmp_path / "audit"
    seen = watch("--out", str(out), "--", *script(tmp_path, text))
    assert seen.returncode == 0
    trainings = json.loads((out / "result.json").read_text())["trainings"]
    assert sorted((one["noise_multiplier"], one["steps"]) for one in trainings) == [(1, 2), (1, 2), (2, 3), (2, 3)]
    assert len({one["pid"] for one in trainings}) == 2
    assert "training 2 of process" in seen.stderr


@pytest.mark.full
def test_processes_that_share_a_step_are_not_audited(tmp_path: Path) -> None:
    text = PRIVATE + (
        "import sys\nimport torch.distributed as group\n"
        "import torch.multiprocessing as processes\n"
        "def work(rank, file):\n"
        "    group.init_process_group('gloo', init_method='file://' + file, rank=rank, world_size=2)\n"
        "    train(private(), 3)\n"
        "if __name__ == '__main__':\n    processes.spawn(work, (sys.argv[1],), nprocs=2)\n"
    )
    seen = watch("--", *script(tmp_path, text), str(tmp_path / "meeting"))
    assert seen.returncode == 0, seen.stderr
    last = [line for line in seen.stderr.splitlines() if ": inconclusive: " in line]
    assert len(last) == 2
    assert all("not audited, because it trains on 2 processes" in line for line in last)


@pytest.mark.full
def test_a_copy_of_the_process_is_not_audited(tmp_path: Path) -> None:
    text = PRIVATE + (
        "import os\nmade = private()\nif os.fork() == 0:\n    train(made, 3)\n    os._exit(0)\nos.wait()\n"
    )
    seen = watch("--", *script(tmp_path, text))
    assert seen.returncode == 0
    assert "the process was forked after the training began" in seen.stderr


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (["no-such-command", "x"], 127, "epsilometer: no-such-command x: command not found"),
        ([str(SCRIPTS)], 126, "it cannot be run"),
        (["true"], 0, f"{NOTHING}the hook got into no Python process"),
        ([sys.executable, "-I", "-c", "print(1)"], 0, f"{NOTHING}the hook got into no Python process"),
        ([sys.executable, "-c", "print(1)"], 0, f"{NOTHING}opacus or optax or jax_privacy was never imported"),
        (
            [sys.executable, "-c", "import no_opacus"],
            1,
            "jax_privacy was never imported (the command ended with exit code 1)",
        ),
        (
            [sys.executable, "-c", "import opacus"],
            0,
            f"{NOTHING}opacus was imported, but PrivacyEngine.make_private was not called, and no private",
        ),
        (
            [sys.executable, "-c", "import opacus; raise SystemExit(3)"],
            3,
            "make_private never returned (the command ended with exit code 3)",
        ),
    ],
)
def test_why_nothing_was_audited(command: list[str], code: int, words: str) -> None:
    seen = watch("--", *command)
    assert seen.returncode == code
    assert words in seen.stderr
    assert seen.stdout == ("1\n" if "print(1)" in command else "")


def test_nothing_audited_is_too_weak_for_who_requires_consistency() -> None:
    assert watch("--require", "consistent", "--", "true").returncode == 4
    assert watch("--require", "not-violated", "--", "true").returncode == 0
    assert watch("--require", "consistent", "--", "false").returncode == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["true"], "COMMAND = 'true': expected -- before it"),
        (["--number", "0", "--", "true"], "--number = 0: expected a whole number from 1"),
        (["--confidence", "1", "--", "true"], "--confidence = 1"),
        (["--"], "COMMAND is missing: expected -- before it"),
        (["--again", "nowhere"], "--again = 'nowhere': expected a directory that epsilometer watch --out has written"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(arguments: list[str], words: str) -> None:
    seen = watch(*arguments)
    assert seen.returncode == 2
    assert words in seen.stderr
    assert seen.stderr.count("\n") == 1


def test_arguments_streams_and_path_of_the_script_are_its_own(tmp_path: Path) -> None:
    """Also options that would mean something to the program itself, and numbers that it would refuse."""
    text = (
        "import json, os, sys\nimport sitecustomize\n"
        "print(json.dumps([sys.argv[1:], sys.stdin.read(), os.getcwd(), __name__, sys.path, sitecustomize.__file__]))\n"
        "print('aside', file=sys.stderr)\n"
        "os.write(3, b'third')\n"
    )
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import os\nos.environ['SEEN'] = 'yes'\n")
    command = [*script(tmp_path, text + "assert os.environ['SEEN'] == 'yes'\n"), "--json", "--lr", "1e-400", "--help"]
    path = os.pathsep.join([str(own), *filter(None, [os.environ.get("PYTHONPATH")])])
    third = tmp_path / "third"
    shown = []
    for prefix in ([], [sys.executable, "-m", "epsilometer", "watch", "--"]):
        line = " ".join(f"'{word}'" for word in [*prefix, *command]) + f" 3> '{third}'"
        shown.append(run(["sh", "-c", line], input="typed", cwd=tmp_path, env={"PYTHONPATH": path}))
        assert third.read_text() == "third"
    without, seen = shown
    assert (seen.returncode, seen.stdout) == (without.returncode, without.stdout)
    assert without.returncode == 0
    assert [line for line in seen.stderr.splitlines() if not line.startswith("epsilometer:")] == ["aside"]


@pytest.mark.full
def test_modules_and_shell_scripts_are_watched_too(tmp_path: Path) -> None:
    script(tmp_path, PRIVATE + "train(private(), 2)\nprint('done')\n", "training.py")
    shell = tmp_path / "run.sh"
    shell.write_text(f"set -e\necho begin\n'{sys.executable}' -W ignore -m training\nexit 3\n")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    seen = watch("--", "sh", str(shell), env={"PYTHONPATH": path})
    assert (seen.returncode, seen.stdout) == (3, "begin\ndone\n")
    assert "2 steps do not refute" in seen.stderr


def _listening(number: int) -> str:
    """A script that counts how often it hears a signal."""
    return (
        "import signal, sys, time\n"
        "heard = []\n"
        f"signal.signal({int(number)}, lambda *_: heard.append(1))\n"
        "print('ready', flush=True)\n"
        "end = time.monotonic() + 60\n"
        "while not heard and time.monotonic() < end:\n    time.sleep(0.02)\n"
        "time.sleep(0.5)\nprint('heard', len(heard))\n"
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("whole_group", [False, True], ids=["program", "group"])
def test_signals_reach_the_script_once(tmp_path: Path, number: int, whole_group: bool) -> None:
    text = _listening(number) + "sys.exit(5)\n"
    command = [sys.executable, "-m", "epsilometer", "watch", "--", *script(tmp_path, text)]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # tests in the background ignore it
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"ready\n"
        time.sleep(0.1)
        if whole_group:
            os.killpg(program.pid, number)
        else:
            program.send_signal(number)
        output, _ = program.communicate(timeout=60)
    assert (program.returncode, output) == (5, b"heard 1\n")


def test_ctrl_c_in_a_terminal_reaches_the_script_once(tmp_path: Path) -> None:
    text = _listening(signal.SIGINT) + "sys.exit(6)\n"
    command = [sys.executable, "-m", "epsilometer", "watch", "--", *script(tmp_path, text)]
    controller, terminal = os.openpty()

    def take_the_terminal() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    with subprocess.Popen(
        command, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True, preexec_fn=take_the_terminal
    ) as program:
        os.close(terminal)
        seen = b""
        while b"ready" not in seen:
            seen += os.read(controller, 1000)
        os.write(controller, b"\x03")
        with contextlib.suppress(OSError):  # what a terminal says when all have left it
            while more := os.read(controller, 1000):
                seen += more
        assert program.wait(60) == 6, seen
    os.close(controller)
    assert b"heard 1" in seen


@pytest.mark.full
def test_a_script_can_be_stopped_once_the_verdict_is_known(tmp_path: Path) -> None:
    text = PRIVATE + (
        "import opacus.optimizers.optimizer as inner\nright = inner._generate_noise\n"
        "inner._generate_noise = lambda std, **others: right(std=std / 2, **others)\n"
        "train(private(), 1_000_000)\n"
    )
    seen = watch("--stop-when-known", "--", *script(tmp_path, text))
    assert seen.returncode == 128 + signal.SIGTERM
    assert "violated" in seen.stderr


@pytest.mark.full
def test_one_line_of_code_says_its_verdict_at_the_end(tmp_path: Path) -> None:
    text = PRIVATE + (
        "import epsilometer.opacus\nfrom opacus import PrivacyEngine\n"
        "make = PrivacyEngine.__init__\n"
        "def begin(self, **given):\n    make(self, **given)\n    epsilometer.opacus.watch(self, seed=1)\n"
        "PrivacyEngine.__init__ = begin\n"
        "train(private(), 12)\nprint('done')\n"
    )
    seen = run(script(tmp_path, text))
    assert (seen.returncode, seen.stdout) == (0, "done\n")
    assert seen.stderr.startswith("epsilometer: training 1: consistent: held: clipping, noise, sampling, accounting")
    both = watch("--", *script(tmp_path, text))
    assert "this training is being watched already" in both.stderr
    assert "training 1: consistent: held: clipping, noise, sampling, accounting" in both.stderr


SHUFFLED = PRIVATE.replace("noise_multiplier=noise", "poisson_sampling=False, noise_multiplier=noise")


def test_a_failed_check_can_be_accepted_and_is_shown_as_ignored(tmp_path: Path) -> None:
    command = script(tmp_path, SHUFFLED + "train(private(), 20)\n")
    out = tmp_path / "audit"
    seen = watch(
        "--require",
        "consistent",
        "--seed",
        "1",
        "--ignore",
        "sampler",
        "--ignore",
        "sample-rate",
        "--out",
        str(out),
        "--",
        *command,
    )
    assert seen.returncode == 0, seen.stderr
    told = watch("--again", str(out), "--verbose", "--ignore", "sampler", "--ignore", "sample-rate").stderr
    assert "check failed, and is ignored: sampler: poisson_sampling=False" in told
    verdict = next(line for line in seen.stderr.splitlines() if ": consistent: " in line)
    assert "failed checks that are ignored: sampler" in verdict
    assert "ε: not measured, because it does not train as is accounted (failed checks: sampler" in told
    (training,) = json.loads((out / "result.json").read_text())["trainings"]
    statuses = {check["name"]: check["status"] for check in training["checks"]}
    assert (statuses["sampler"], training["verdict"]) == ("ignored", "consistent")
    assert ">ignored<" in (out / "report.html").read_text()
    assert watch("--require", "consistent", "--", *command).returncode == 1
    again = watch("--again", str(out), "--require", "not-violated")  # the same recordings, without the excuse
    assert again.returncode == 1
    assert "violated: sampling is broken (by sampler): poisson_sampling=False" in again.stderr
    excused = ["--ignore", "sampler", "--ignore", "sample-rate"]
    assert watch("--again", str(out), "--require", "consistent", *excused).returncode == 0
    wrong = watch("--ignore", "no-such-check", "--", "true")
    assert wrong.returncode == 2
    assert "--ignore = 'no-such-check'" in wrong.stderr


def test_a_refuted_training_keeps_the_exit_code_and_says_how_to_change_that() -> None:
    seen = watch("--", *DIGITS, "--noise-scale", "0.5", "--steps", "8")
    assert seen.returncode == 0
    assert seen.stderr.splitlines()[-1].endswith("with --require not-violated it would be 1")
