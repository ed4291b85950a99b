"""Counters and texts that all runs share, each written by one run only. Nobody waits for a run that has gone."""

from __future__ import annotations

import json
import mmap
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

CONTROL = "control"
_WORDS = 512  # of the control's head
_TEXT = 8 << 20  # bytes of each text: states of generators, names of rows
_SIZE = 8 * _WORDS + 2 * _TEXT
PUBLISHED, STATUS, REQUESTED, BLOCK_ID, TAKEN, LENGTHS = 0, 1, 2, 3, 4, 5  # words; lengths of two texts
_FIRST, _EACH = 16, 2  # words of a run: what it has compared, and its status
RUNNING, ENDED = 1, 2  # status; 0 is one that has not come yet
_LONGEST = 900.0  # seconds without a sign of life


class Gone(Exception):
    """The other side has ended."""


def create(directory: Path) -> None:
    """The control, empty, for its owner only."""
    descriptor = os.open(directory / CONTROL, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.ftruncate(descriptor, _SIZE)
    os.close(descriptor)


class Control:
    """As one run, or whoever has started them, sees it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        with open(directory / CONTROL, "r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _SIZE)
        self._words = np.frombuffer(self._memory, np.int64, _WORDS)
        self._fence = threading.Lock()

    def read(self, word: int) -> int:
        with self._fence:  # a barrier for the processor, too
            return int(self._words[word])

    def write(self, word: int, value: int) -> None:
        with self._fence:
            self._words[word] = value
        with self._fence:
            pass

    def text(self, which: int) -> Any:
        length = self.read(LENGTHS + which)
        at = 8 * _WORDS + which * _TEXT
        return json.loads(self._memory[at : at + length])

    def set_text(self, which: int, content: Any) -> None:
        line = json.dumps(content).encode()
        if len(line) > _TEXT:
            raise ValueError(f"{len(line)} bytes beside a step's numbers")
        at = 8 * _WORDS + which * _TEXT
        self._memory[at : at + len(line)] = line
        self.write(LENGTHS + which, len(line))

    def compared(self, run: int) -> int:
        """How many steps another run has compared."""
        return self.read(_FIRST + _EACH * run)

    def set_compared(self, run: int, steps: int) -> None:
        self.write(_FIRST + _EACH * run, steps)

    def status(self, run: int) -> int:
        return self.read(STATUS if run == 0 else _FIRST + _EACH * run + 1)

    def set_status(self, run: int, status: int) -> None:
        self.write(STATUS if run == 0 else _FIRST + _EACH * run + 1, status)

    def wait(self, until: Callable[[], bool], gone: Callable[[], bool]) -> None:
        """Poll, at first often."""
        pause, begun = 2e-5, time.monotonic()
        while not until():
            if gone():
                if until():
                    return
                raise Gone
            if time.monotonic() - begun > _LONGEST:
                raise TimeoutError("a run in lockstep does not move")
            time.sleep(pause)
            pause = min(pause * 1.3, 2e-3)
