"""What the program shows, without a process of its own: many mistakes in little time."""

import contextlib
import io
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from epsilometer.cli.app import run


@dataclass(frozen=True)
class Shown:
    returncode: int
    stdout: str
    stderr: str


def in_process(*arguments: str, cwd: Path = Path()) -> Shown:
    """As a process would answer that was started there."""
    streams = {name: io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for name in ("stdout", "stderr")}
    with contextlib.chdir(cwd), mock.patch.multiple(sys, argv=["epsilometer", *arguments], **streams):
        code = run()
    out, err = (stream.buffer.getvalue().decode() for stream in streams.values())
    return Shown(code, out, err)
