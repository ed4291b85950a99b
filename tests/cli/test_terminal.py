"""Output as people see it, on a pseudo-terminal: lines end between words, the verdict comes first, colours can go."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from epsilometer.wrapping import told, wrapped

PROGRAM = [sys.executable, "-m", "epsilometer"]
COUNTS = ["bound", "--counts", "970", "20", "30", "980", "--claim", "3"]
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_terminal(*arguments: str, columns: int, place: Path, stderr: bool = False, **environment: str) -> str:
    """What the program writes to a terminal of so many columns."""
    ours, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    kept = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "TERM")}
    process = subprocess.Popen(
        [*PROGRAM, *arguments], stdin=terminal, stdout=terminal,
        stderr=terminal if stderr else subprocess.DEVNULL, cwd=place,
        env=kept | {"TERM": "xterm-256color"} | environment,
    )  # fmt: skip
    os.close(terminal)
    parts = []
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # how Linux says that nobody writes any more
            break
        if not part:
            break
        parts.append(part)
    process.wait()
    os.close(ours)
    return b"".join(parts).decode().replace("\r\n", "\n")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished audit: shown again, it plays nothing."""
    place = tmp_path_factory.mktemp("terminal")
    (place / "spec.toml").write_text(
        '[data]\nname = "digits"\nclasses = [0, 1]\nper_class = 30\n[training]\nsample_rate = 0.2\nsteps = 4\n'
        '[adversary]\nname = "canaries"\ncanaries = 60\n'
    )
    done = subprocess.run(
        [*PROGRAM, "audit", "spec.toml", "--out", "run", "--quiet"],
        cwd=place,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    (place / "piped.txt").write_text(done.stdout)
    return place


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_no_word_is_broken_and_the_verdict_comes_first(run: Path, columns: int) -> None:
    shown = on_terminal("audit", "spec.toml", "--out", "run", "--quiet", columns=columns, place=run)
    lines = ESCAPE.sub("", shown).splitlines()
    assert max(map(len, lines)) <= columns
    assert any(line.startswith(("consistent: ", "inconclusive: ", "violated: ")) for line in lines[:3])
    words = set((run / "piped.txt").read_text().split())  # each line whole in a pipe
    timing = re.compile(r"\d+\.\d$")
    broken = {word for line in lines for word in line.split()} - words
    assert not {word for word in broken if not timing.match(word) and word not in {"claim:", "theory:"}}, broken


def test_remarks_end_between_words_too(tmp_path: Path) -> None:
    shown = on_terminal("audit", "--adversary", "nobody", columns=60, place=tmp_path, stderr=True)
    lines = shown.splitlines()
    assert len(lines) > 2
    assert max(map(len, lines)) <= 60
    assert all(line.startswith("  ") for line in lines[1:])
    assert "malicious-dataset," in shown.split()


def test_a_table_that_does_not_fit_is_shown_row_by_row(run: Path) -> None:
    shown = ESCAPE.sub("", on_terminal("runs", "run", columns=80, place=run))
    assert max(map(len, shown.splitlines())) <= 80
    for word in ("canaries", "finished", "inconclusive"):
        assert word in shown.split()
    narrow = ESCAPE.sub("", on_terminal("list", "bounds", columns=60, place=run))
    assert max(map(len, narrow.splitlines())) <= 60
    assert "least-favourable" in narrow.split()


def test_colours_are_for_terminals_that_want_them(run: Path) -> None:
    assert "\x1b[1;31mviolated\x1b[0m: " in on_terminal(*COUNTS, columns=80, place=run)
    assert "\x1b[" not in on_terminal(*COUNTS, columns=80, place=run, NO_COLOR="1").replace("\x1b[1m", "").replace(
        "\x1b[0m", ""
    )
    piped = subprocess.run([*PROGRAM, *COUNTS], cwd=run, check=False, capture_output=True, text=True)
    assert piped.stdout.startswith("violated: ")
    assert "\x1b" not in piped.stdout
    assert len(piped.stdout.splitlines()) < 9  # nothing is wrapped


def test_the_shell_completes_commands(run: Path) -> None:
    asked = {**os.environ, "_EPSILOMETER_COMPLETE": "complete_bash", "COMP_WORDS": "epsilometer cov", "COMP_CWORD": "1"}
    script = [sys.executable, "-c", "import sys; sys.argv[0] = 'epsilometer'; from epsilometer.cli import main; main()"]
    shown = subprocess.run(script, env=asked, check=False, capture_output=True, text=True)
    assert (shown.returncode, shown.stdout.split(), shown.stderr) == (0, ["coverage"], "")


@pytest.mark.parametrize("width", [33, 60])
def test_a_text_is_wrapped_with_nothing_lost(width: int) -> None:
    text = "it proves ε ≥ 0.707 at δ = 1e-05 with 95 % confidence, by some-attack that took 12.5 s in all"
    rows = [("proved", text), ("", "from 20 trials"), ("unsaid", "")]
    shown = told(("violated: by much.",), rows, width)
    assert shown.split() == ["violated:", "by", "much.", "proved", *text.split(), "from", "20", "trials"]
    assert max(map(len, shown.splitlines())) <= width
    assert told((), rows).splitlines() == [f"proved  {text}", "        from 20 trials"]
    for glued in ("ε ≥ 0.707", "δ = 1e-05", "95 %", "12.5 s"):
        assert glued in wrapped(text, width)
