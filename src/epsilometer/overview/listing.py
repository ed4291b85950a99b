"""The runs of a folder, and what is known of each, also while it is running. Readers touch nothing."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epsilometer.errors import MALFORMED, EpsilometerError, InvalidInput
from epsilometer.neighbours import RECORD, Neighbours
from epsilometer.runs import RESULTS, SqliteStore, StoredRun

RUNNING, INTERRUPTED, FINISHED, STOPPED_EARLY = "running", "interrupted", "finished", "stopped early"
MOST_BYTES = 8 * 2**20  # of a result.json: ours have some thousands
_CAREFULLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


@dataclass(frozen=True)
class KnownRun:
    """A run as its directory tells it. Bounds and verdict are none before it is finished.

    `upper` and `family` are not in the store: they are known where result.json is of this run and says the same.
    """

    where: Path
    fingerprint: str
    plan: dict[str, Any]
    state: str
    done: int
    total: int
    claimed: float | None  # ε at the plan's δ; none where nothing is promised
    seconds: float
    begun: str
    lower: dict[str, Any] | None = None
    verdict: dict[str, Any] | None = None
    upper: float | None = None
    family: float | None = None
    remarks: tuple[str, ...] = ()
    counted: str = "trials"  # what `done` and `total` are

    @property
    def delta(self) -> float:
        """At which the bound holds; a membership run is judged at one that is no part of its plan."""
        return float((self.lower or {}).get("delta", self.plan["delta"]))

    @property
    def neighbours(self) -> Neighbours:
        return Neighbours.read(self.plan["claim"])

    @property
    def of_unit(self) -> str:
        """Behind every ε of it in a list, where it is not of records."""
        unit = self.neighbours.unit
        return "" if unit == RECORD else f", {unit}-level"

    @property
    def adversary(self) -> str:
        return str(self.plan["adversary"]["name"])

    @property
    def outcome(self) -> str | None:
        return None if self.verdict is None else str(self.verdict["outcome"])

    @property
    def proved(self) -> float | None:
        """The lower bound that it ended with, of whatever kind."""
        return None if self.lower is None else float(self.lower["epsilon"])

    @property
    def certified(self) -> float | None:
        return self.proved if self.lower is not None and self.lower["kind"] == "certified" else None

    def complete(self) -> KnownRun:
        """Itself, if it has what is told of every run: what is missing is missed here, where a file can be named."""
        _ = self.delta, self.neighbours, self.adversary, self.outcome, self.certified
        return self

    @property
    def has_faults(self) -> bool:
        """Whether faults were put in on purpose."""
        return bool(self.plan.get("faults", {}).get("noise_scale", 1) != 1)

    @property
    def progress(self) -> str:
        return f"{self.done} of {self.total}" if self.counted == "trials" else f"{self.done} {self.counted}"

    @property
    def done_so_far(self) -> str:
        return f"{self.progress} trials" if self.counted == "trials" else self.progress

    @property
    def which(self) -> str:
        """What tells it from another run in the same directory."""
        number = self.plan.get("training", {}).get("number")
        return self.adversary if number is None else f"training {number}"

    @property
    def promise(self) -> str:
        """What is claimed, in a few letters."""
        return "–" if self.claimed is None else f"{self.claimed:.4g}"


def runs_in(store: Path) -> list[KnownRun]:
    """The runs of one store; parts of others, such as controls, are left out.

    Whatever is wrong with it is one `EpsilometerError`: a store that cannot be read must not hide others.
    """
    try:
        with SqliteStore.reading(store) as opened:
            driven, found = opened.is_driven, [run for run in opened.runs() if not run.is_part]
        return [_known(store.parent, run, driven, alone=len(found) == 1) for run in found]
    except EpsilometerError:
        raise
    except OSError as error:
        expected = f"a file that can be read ({error.strerror})"
        raise InvalidInput("store", str(store), expected, "check its permissions") from None
    except MALFORMED as error:  # it is whole, but not what we write
        expected = f"a run as this version writes it ({type(error).__name__}: {error})"
        remedy = "look at it with the version that has made it"
        raise InvalidInput("store", str(store), expected, remedy) from None


def small_file(path: Path, most: int = MOST_BYTES) -> bytes | None:
    """The content of a plain file that is not too large; none of a link, a pipe, or what cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | _CAREFULLY)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(file.fileno())
        return file.read(most) if stat.S_ISREG(found.st_mode) and found.st_size <= most else None


def _known(where: Path, run: StoredRun, driven: bool, alone: bool) -> KnownRun:
    end = run.conclusion or {}
    finished = STOPPED_EARLY if end.get("stopped_early") else FINISHED
    upper, family, remarks = _from_result(where / RESULTS[0], run) if end and alone else (None, None, ())
    return KnownRun(
        where=where,
        fingerprint=run.fingerprint,
        plan=run.plan,
        state=finished if end else RUNNING if driven else INTERRUPTED,
        done=run.trials,
        total=run.total,
        claimed=_claimed(run),
        seconds=run.seconds,
        begun=run.begun,
        lower=end.get("lower_bound"),
        verdict=end.get("verdict"),
        upper=upper,
        family=family,
        remarks=remarks,
    ).complete()


def _claimed(run: StoredRun) -> float | None:
    found = run.about.get("claimed_epsilon")
    return None if found is None else float(found)


def _from_result(path: Path, run: StoredRun) -> tuple[float | None, float | None, tuple[str, ...]]:
    """What only result.json has, if it is of this run and says what the store does, which has checksums."""
    content = small_file(path)
    if content is None:
        return None, None, ()
    try:
        document = json.loads(content)
        same = document["plan_sha256"] == run.fingerprint and run.conclusion is not None
        if same and document.get("records_sha256", 0) == run.conclusion.get("records_sha256"):  # type: ignore[union-attr]
            return _epsilon(document["worst_case"]), None, ()
        if same and document["lower_bound"] is None and run.conclusion["lower_bound"] is None:  # type: ignore[index]
            return _epsilon(document["upper_bound"]), None, ()
        if same and document["lower_bound"]["epsilon"] == run.conclusion["lower_bound"]["epsilon"]:  # type: ignore[index]
            return _epsilon(document["upper_bound"]), _epsilon(document["family_bound"]), ()
    except MALFORMED:
        pass
    return None, None, (f"{path.name} does not say what the stored trials show: it is not used",)


def _epsilon(bound: dict[str, Any] | None) -> float | None:
    return None if bound is None else float(bound["epsilon"])
