"""Exit code 1 accuses: whatever ends the process that works, nobody is accused by it. Real processes, real signals."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = [sys.executable, "-m", "epsilometer"]
LONG = "[claim]\nepsilon = 4.0\n[training]\nnoise_multiplier = 1.4\nsteps = 60\n[audit]\ntrials = 2000\n"
VIOLATED = ["bound", "--counts", "970", "20", "30", "980", "--claim", "0.1"]

# Programs whose libraries do what libraries do. They stand for the real one, which is started in the same way.
STAGED = """
import ctypes, os, signal, sys
from epsilometer.cli import app, main
def run():
    {body}
app.run = run
main()
"""


def staged(body: str, *arguments: str, **settings) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", STAGED.format(body=body), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **settings)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("os._exit(1)", "ended with code 1"),  # Ray without its node, OpenBLAS without memory
        ("os._exit(0)", "ended with code 0"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL: out of memory?"),
        ("ctypes.string_at(0)", "SIGSEGV"),
    ],
)
def test_an_end_without_a_verdict_is_exit_code_3(body: str, words: str) -> None:
    shown = staged(body, "audit", "my.toml", "--out", "a run")
    assert shown.returncode == 3
    assert words in shown.stderr
    assert shown.stderr.splitlines()[-1].endswith("to continue: epsilometer audit my.toml --out 'a run'")
    assert shown.stdout == ""


def test_a_reported_verdict_outlives_a_crash_at_the_end() -> None:
    crash = "import atexit; atexit.register(os._exit, {code}); return {verdict}"
    assert staged(crash.format(code=0, verdict=1)).returncode == 1
    assert staged(crash.format(code=1, verdict=0)).returncode == 0


def test_an_address_space_that_is_too_small_accuses_nobody() -> None:
    """OpenBLAS ends the process with 1, tells it to stop (150,000), or tries for ever (200,000)."""
    for limit in (60_000, 100_000, 150_000, 200_000):
        command = f"ulimit -v {limit}; exec {' '.join([*PROGRAM, *VIOLATED])}"
        shown = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60, check=False)
        assert shown.returncode == 2, (limit, shown.stderr)
        assert shown.stderr.startswith(f"epsilometer: ulimit -v = {limit}: expected at least ")


def test_work_that_hears_nothing_is_ended() -> None:
    """As compiled code that never returns to Python; whoever asks, asks once."""
    body = "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM]); os.write(1, b'x'); signal.pause()"
    script = "from epsilometer.cli import supervisor\nsupervisor._DEAF = 1\n" + STAGED.format(body=body)
    command = [sys.executable, "-c", script, "audit", "--out", "run"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.read(1) == "x"  # what is written to the number of stdout goes to stderr
        process.terminate()
        _, rest = process.communicate(timeout=60)
    assert process.returncode == 130
    assert rest.splitlines() == [
        "epsilometer: interrupted; finished trials are stored; to continue: epsilometer audit --out run"
    ]


def test_under_json_stdout_is_one_object_whatever_others_write() -> None:
    script = (
        "import os, sys\n"
        "from epsilometer.cli import app, main\n"
        "real = app._run\n"
        "def noisy():\n"
        "    os.write(1, b'from C++\\n'); os.system('echo from a child'); print('from an adversary')\n"
        "    return real()\n"
        "app._run = noisy\n"
        "main()\n"
    )
    command = [sys.executable, "-c", script, *VIOLATED]
    shown = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=60, check=False)
    assert shown.returncode == 1
    assert json.loads(shown.stdout)["verdict"] == "violated"
    assert sorted(shown.stderr.splitlines()) == ["from C++", "from a child", "from an adversary"]
    words = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout
    assert "from an adversary" in words
    assert "from C++" not in words


def test_streams_may_be_closed() -> None:
    for arguments, code in (
        (VIOLATED, 1),
        (["bogus"], 2),
        (["bound", "--delta", "7", "--counts", "1", "1", "1", "1"], 2),
    ):
        heard = subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, timeout=60, check=False)
        for closed in ("2>&-", "<&-", "<&- >&- 2>&-"):
            command = f"{' '.join([*PROGRAM, *arguments])} {closed}"
            shown = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60, check=False)
            assert shown.returncode == code
            assert shown.stdout == ("" if ">&- 2" in closed else heard.stdout)


# ------------------------------------------------------------------------------------------------------- signals
def driver(where: Path, *options: str, **settings) -> subprocess.Popen[str]:
    """An audit with a session of its own that has begun to store."""
    (where / "spec.toml").write_text(LONG)
    process = subprocess.Popen(
        [*PROGRAM, "audit", "spec.toml", "--out", "run", *options], cwd=where, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler), **settings,
    )  # fmt: skip
    assert process.stderr is not None
    assert process.stderr.readline().startswith("gradient:")
    return process


def descendants(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children] + [far for child in children for far in descendants(int(child))]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def session_of(process: subprocess.Popen[str]) -> list[int]:
    """The processes that live in a driver's session."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z" and int(fields[3]) == process.pid:
            found.append(int(entry.name))
    return found


def assert_nobody_is_left(process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 20
    while session_of(process) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert session_of(process) == []


@pytest.mark.parametrize("executor", ["inline", "local"])
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_quick_signals_to_all_processes_stop_once(tmp_path: Path, stop: signal.Signals, executor: str) -> None:
    """A terminal and `timeout` send to the whole group; people press Ctrl-C four times."""
    with driver(tmp_path, "--executor", executor) as process:
        for _ in range(4):
            os.killpg(process.pid, stop)
            time.sleep(0.03)
        shown, rest = process.communicate(timeout=60)
    assert process.returncode == 130
    assert shown == ""
    lines = [line for line in rest.splitlines() if not line.startswith("gradient:")]
    assert len(lines) == 1, rest
    assert "trials are stored in run; to continue: epsilometer audit spec.toml" in lines[0]
    assert_nobody_is_left(process)


def test_a_killed_parent_leaves_nobody_behind(tmp_path: Path) -> None:
    with driver(tmp_path, "--executor", "local", "--workers", "2") as process:
        assert len(session_of(process)) > 3
        process.kill()
        _, rest = process.communicate(timeout=60)
    assert_nobody_is_left(process)
    assert "Traceback" not in rest  # of workers that lost their driver


def test_a_killed_child_is_told_with_the_way_to_continue(tmp_path: Path) -> None:
    with driver(tmp_path, "--executor", "inline", "--json") as process:
        (child,) = (pid for pid in session_of(process) if pid != process.pid)
        os.kill(child, signal.SIGKILL)
        shown, rest = process.communicate(timeout=60)
    assert (process.returncode, shown) == (3, "")
    assert rest.splitlines()[-1].endswith("to continue: epsilometer audit spec.toml --out run --executor inline --json")


# Ray notices after a second that a node is gone, and not after a quarter of a minute.
SOON = {
    "RAY_health_check_initial_delay_ms": "0",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "5000",
    "RAY_health_check_failure_threshold": "2",
}


@pytest.mark.parametrize(
    "what", ["raylet", *(pytest.param(one, marks=pytest.mark.full) for one in ("group", "program"))]
)
def test_ray_that_is_killed_or_told_to_stop(tmp_path: Path, what: str) -> None:
    """Ray ends its driver with 1 if the node is gone, and answers SIGTERM with stacks of C++."""
    pytest.importorskip("ray", reason="RAY IS NOT INSTALLED: nothing is known about its ends")
    loopback = {**os.environ, **SOON, "RAY_OVERRIDE_NODE_IP_ADDRESS": "127.0.0.1"}
    with driver(tmp_path, "--executor", "ray", "--workers", "1", "--json", env=loopback) as process:
        family = descendants(process.pid)
        (raylet,) = (pid for pid in family if b"/raylet/raylet\0" in Path(f"/proc/{pid}/cmdline").read_bytes())
        if what == "raylet":
            os.kill(raylet, signal.SIGKILL)
        elif what == "group":
            os.killpg(process.pid, signal.SIGTERM)
        else:
            process.terminate()
        shown, rest = process.communicate(timeout=90)
    assert process.returncode == (3 if what == "raylet" else 130), rest
    assert shown == ""
    assert "to continue: epsilometer audit spec.toml --out run" in rest.splitlines()[-1]
    if what == "program":
        assert len([line for line in rest.splitlines() if not line.startswith("gradient:")]) == 1, rest
    deadline = time.monotonic() + 20
    while any(alive(pid) for pid in family) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert [pid for pid in family if alive(pid)] == []


def test_ctrl_c_in_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(LONG.replace("trials = 2000", "trials = 100000"))
    pid, terminal = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # tests in the background ignore it
        os.chdir(tmp_path)
        os.execv(sys.executable, [*PROGRAM, "audit", "spec.toml", "--out", "run", "--executor", "inline"])
    seen = b""
    while b"left" not in seen:
        seen += os.read(terminal, 4096)
    os.write(terminal, b"\x03\x03")
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        seen += part
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 130
    assert seen.count(b"interrupted") == 1
    assert b"Traceback" not in seen


def test_help_is_quick() -> None:
    """What the parent adds to it: next to nothing is imported before it forks."""
    script = (
        "import sys, epsilometer.cli\n"
        "print([m for m in ('typer', 'rich', 'numpy', 'ctypes', 'threading', 'subprocess') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"
