"""Trials: whatever is played one by one. Stores, executors, tally and resume know this much of it and no more."""

from __future__ import annotations

import io
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from epsilometer.arrays import Floats
from epsilometer.isolation import Isolation

Trial = tuple[int, int]  # world and index
Results = Mapping[Trial, Floats]  # what was seen: one score, or one for each canary


class Preparation:
    """What was made before the first trial: arrays, once for all processes, kept with the run."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.arrays = {name: np.asarray(values) for name, values in arrays.items()}

    def to_bytes(self) -> bytes:
        """Plain arrays: nothing in it can run. The same arrays are the same bytes."""
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            for name, values in sorted(self.arrays.items()):
                with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w") as member:
                    np.lib.format.write_array(member, values, allow_pickle=False)
        return file.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> Preparation:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            return cls({name: archive[name] for name in archive.files})


class Trials(Protocol):
    """Each a pure function of who they are, what was prepared, and (world, index)."""

    kind: ClassVar[str]  # of study, as results and stores call it

    @property
    def worlds(self) -> tuple[int, ...]:
        """Of which there are trials."""

    @property
    def planned_trials(self) -> int:
        """Of each world."""

    @property
    def first_look(self) -> int:
        """After how many trials of each world it is first asked whether there are enough."""

    def to_dict(self) -> dict[str, Any]:
        """All that decides results, as plain data."""

    def canonical_json(self) -> str: ...

    def fingerprint(self) -> str:
        """A hash of it."""

    def about(self) -> dict[str, Any]:
        """What a list of runs shows of them beside that, as plain data."""

    def prepare(self) -> Preparation: ...

    def play(self, prepared: Preparation, trials: Sequence[Trial]) -> list[Any]:
        """Their results: the same in any group, order and process, and after a resume."""

    def accepted(self, results: Mapping[Trial, Any], **remedy: str) -> dict[Trial, Floats]:
        """The same results, if they are what trials can give."""

    def is_enough(self, results: Results, count: int) -> bool:
        """Whether the first `count` trials of each world settle it, so that no more need be played."""

    def so_far(self, results: Results, count: int) -> str:
        """What the first `count` trials of each world show, in a few words; empty if that says nothing yet."""

    def rehearsal(self) -> Rehearsal | None:
        """What foreign code has to pass before the first trial; none if nothing."""

    def describe(self) -> str:
        """Whose trials they are, for whoever is watching."""

    @property
    def safeguards(self) -> Isolation: ...

    def code(self) -> list[Any]:
        """Classes and functions of the user's own that they consist of."""


class Rehearsal(Trials, Protocol):
    """Trials whose results nobody judges but this."""

    def require_passed(self, prepared: Preparation, results: Results) -> None:
        """An error that says why, if they show that the trials to come would mislead."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Small products gain nothing from more threads, and their number would change rounding."""
    with threadpool_limits(limits=1):
        torch = sys.modules.get("torch")  # whoever needs it has loaded it
        if torch is None:
            yield
            return
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)
