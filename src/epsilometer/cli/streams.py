"""Standard streams that can be relied on: always open, and stdout for results only."""

from __future__ import annotations

import os
import sys

_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def open_closed_streams() -> None:
    """Let streams that the caller closed lead nowhere: the next file opened would get their number, and their text."""
    for number, (name, mode) in enumerate(_STREAMS):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115 (it lasts as long as the process)


def set_stdout_apart() -> None:
    """Let `print` alone write to stdout; what libraries write to its number (C++ does) goes to stderr.

    An ε that a terminal cannot show is no reason to crash.
    """
    kept = os.dup(sys.stdout.fileno())  # not inherited: no child can hold a reader up
    os.dup2(2, 1)
    sys.stdout = open(kept, "w", encoding=sys.stdout.encoding, errors="backslashreplace")  # noqa: SIM115
