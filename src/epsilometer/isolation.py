"""What to be careful about where code is played that nobody here has tested."""

from __future__ import annotations

from dataclasses import dataclass

LATE = 72  # exit code of a process whose training could not be interrupted


@dataclass(frozen=True)
class Isolation:
    """How trials are kept apart: foreign code may keep state, hang, or end its process."""

    foreign: bool = False  # code that nobody here has tested
    travels: bool = True  # other processes can find it by name
    fresh_process: bool = False  # every training gets a process of its own
    seconds: float | None = None  # for one training; if nothing is said, what others took decides
    repeats: bool = True  # a trial that is played again gives the same score
