"""Lines of all runs → what a replay says of each training, as facts of its reference."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from epsilometer.errors import MALFORMED
from epsilometer.watching.facts import Facts, MovedSums, Replay, Unlike
from epsilometer.watching.recording import SUFFIX, Reader, Told, Writer
from epsilometer.watching.replay.files import unlike
from epsilometer.watching.replay.roles import BOUNDS, FIXED, LEFT_OUT, LINES, NOISE, PLACEHOLDER, READ
from epsilometer.watching.settings import Replaying

Line = dict[str, Any]
_TINY = 1e-3  # clip norms, or of the larger number: what differs by less is the order of additions
_TIMES = 10.0  # the largest difference that comes without any change of a record
_ROUNDING = 1e-6  # of the larger number: what single precision may lose
_SLACK = 2e-3  # clip norms: as much is rounding
_RESIZED = 0.05  # clip norms: of a batch with one record less, which may be added up in another way
_MOVED = 1e-5  # clip norms: less is no trace of a record
_NOT_FOLLOWED = "replays follow Opacus trainings of the first process that makes one private"
_COPIES = 8  # of a record in one batch: more are no copies
_STATE = ("weights", "state of the optimizer", "clip norm")  # of what the next sum is made


def tell(
    meeting: Path,
    runs: Sequence[Replaying],
    recordings: Path,
    written: Mapping[int, Mapping[str, Path]],
    codes: Mapping[int, int],
) -> None:
    """Facts of every training once more, with the replay's, at the end of the recording of the reference. Checkpoints
    were `written` by whole runs, which ended with such exit codes."""
    lines = {run.run: list(_lines(meeting / f"{run.run}.{LINES}")) for run in runs}
    process = next((line["pid"] for line in lines[0] if "pid" in line), None)
    followed = {line["training"] for line in lines[0] if "training" in line}
    for path in sorted(recordings.glob(f"*{SUFFIX}")):
        first = path.name.startswith(f"{process}-")
        for training, told in _told(path, followed if first else set()).items():
            if first and training in followed:
                of = {
                    run: [one for one in said if one.get("training", training) == training]
                    for run, said in lines.items()
                }
                found = replace(told, replay=replay_of(runs, of, written, codes))
            else:
                found = replace(told, troubles={**told.troubles, "replay": _NOT_FOLLOWED})
            Writer(path).take(Told(training, found))


def _told(path: Path, others: Iterable[int]) -> dict[int, Facts]:
    """By training, of which some may have come to no end."""
    told = dict.fromkeys(others, Facts())
    with suppress(OSError):
        told |= {record.training: record.facts for record in Reader(path).new() if isinstance(record, Told)}
    return told


def replay_of(
    runs: Sequence[Replaying],
    lines: Mapping[int, Sequence[Line]],
    written: Mapping[int, Mapping[str, Path]] | None = None,
    codes: Mapping[int, int] | None = None,
) -> Replay:
    """Of one training; of every run, what it has written and how it ended."""
    merge = _Merge(runs, lines, codes or {})
    merge.compare_files(written or {})
    return merge.replay()


class _Merge:
    """What every neighbour's lines say, as far as the run with other noise lets them."""

    def __init__(
        self, runs: Sequence[Replaying], lines: Mapping[int, Sequence[Line]], codes: Mapping[int, int]
    ) -> None:
        self._codes = codes
        self.untested: list[str] = []
        self.sums: dict[str, MovedSums] = {}
        self.states: dict[str, Unlike] = {}
        self.others: Unlike | None = None
        self.ends: list[str] = []
        self.compared = self.absent = self.records = self.files_compared = 0
        self.files: list[str] = []
        self._complete: list[int] = []  # neighbours that came to their end in step with the reference
        reference = lines[0]
        self._ended = any("end" in line for line in reference)
        told = reference if self._ended else [line for one in lines.values() for line in one if "delta" in line]
        self.steps: int = max((int(line["end"] if "end" in line else line.get("step", 0)) for line in told), default=0)
        failed = [line["over"] for line in reference if line.get("over")]
        self._noise_before = any(line.get("noise before") for one in lines.values() for line in one)
        self._before = any(run.role in (READ, PLACEHOLDER) for run in runs)
        self._noise = next(run.run for run in runs if run.role == NOISE)
        self._study(lines[self._noise])
        if failed:
            self._end = 0
            self.untested = [f"nothing: {failed[0]}"]
        self.neighbours: list[str] = []
        for run in runs:
            if run.run and run.role != NOISE:
                self._take(run, lines[run.run])

    def _study(self, lines: Sequence[Line]) -> None:
        """Of the run with other noise: until which step what differs cannot come from noise, and rounding."""
        self._tolerance = self._rounding = 0.0
        self._begin, self._end = 1, 0
        why = "the run with other noise had ended"
        for line in lines:
            if "delta" not in line:
                why = _left(line) or why
                continue
            if line["drew"]:
                why = "the script draws random numbers of its own between steps, which may be noise"
                break
            larger = [(name, size) for name, size in line["differs"] if size > _TINY]
            if line["step"] == 1 and any(name.startswith("weights") for name, _ in larger):
                self._begin, self._end = 2, 1  # of a later training: its first weights are drawn where noise may be
                continue
            if line["delta"] > _TINY or larger:
                what = larger[0][0] if larger else "the sum of gradients"
                why = f"{what} depends on noise that is not the step's own, or is not the same twice"
                break
            self._tolerance = max(self._tolerance, line["delta"])
            self._rounding = max([self._rounding, *(size for _, size in line["differs"])])
            self._end = line["step"]
        self._last = self._final(lines)
        if self._end < self.steps:
            remedy = "; declare what it releases (epsilometer.opacus.release)" if "noise" in why else ""
            self.untested.append(f"steps {self._end + 1} to {self.steps}: {why}{remedy}")

    def _final(self, lines: Sequence[Line]) -> bool:
        """Does what is left at the end come without noise?"""
        if self._end < self.steps or not self._ended:
            return False
        return any("differs" in line and "end" in line and not line["drew"] and not line["differs"] for line in lines)

    def _take(self, run: Replaying, lines: Sequence[Line]) -> None:
        name, judged = _name(run, lines), 0
        self.neighbours.append(name)
        if run.role == READ and not any(line.get("changed") for line in lines):
            self.untested.append(f"{name}: no reader that is known returned a table to change")
            return
        if run.role in (PLACEHOLDER, READ) and self._noise_before:
            self.untested.append(
                f"{name}: the script draws random numbers before its training, which may be noise for what the "
                "neighbour changes there"
            )
            return
        for line in lines:
            if "step" in line and self._begin <= line["step"] <= self._end and "delta" in line and not line["drew"]:
                judged += 1
                self._sum(line, name, run)
                self._state(line, line["step"], name)
            elif "differs" in line and "end" in line and self._last and not line["drew"]:
                self._complete.append(run.run)
                self._state(line, line["end"], name)
            elif line.get("fewer") and self._codes.get(run.run) != self._codes.get(0):
                self.untested.append(f"{name}: it ended with exit code {self._codes.get(run.run)}")
            elif (line.get("fewer") or line.get("more")) and self._last:
                many = line.get("end", line.get("step", 0))
                self.ends.append(f"{name}: {many}{' or more' if line.get('more') else ''} steps, not {self.steps}")
        self.compared += judged
        expected = min(self._end, self.steps)
        if judged < expected - self._begin + 1 and not any(line.get("fewer") for line in lines):
            why = next(filter(None, (_left(line) for line in lines)), "it drew random numbers, or ended early")
            self.untested.append(f"{name}: steps {judged + self._begin} to {expected}: {why}")

    def compare_files(self, written: Mapping[int, Mapping[str, Path]]) -> None:
        """Only where the run with other noise came to its end and wrote the same."""
        noise = written.get(self._noise, {})
        for name, path in written.get(0, {}).items():
            if not self._last or name not in noise or unlike(path, noise[name]) != "":
                self._say(f"{name}: depends on noise, or cannot be read")
                continue
            self.files_compared += 1
            for run in self._complete:
                where = unlike(path, written[run][name]) if name in written.get(run, {}) else "which is missing"
                if where:
                    self.files.append(f"{name} ({where})")
                    break

    def _sum(self, line: Line, name: str, run: Replaying) -> None:
        if any(what.startswith(_STATE) for what, size in line["differs"] if size > self._ulp):
            return  # it is a sum at other weights
        reached, delta = line["reached"], line["delta"]
        self.records += bool(line["kind"])
        if reached == 0 or _all_others(line):
            self.absent += 1
            if delta > max(_MOVED, _TIMES * self._tolerance) and not line["mixed"]:
                self.others = _first(self.others, Unlike("sum", line["tensor"], line["step"], _finite(delta), 1, name))
            return
        kind = line["kind"] or _KIND[run.role]
        if line["mixed"] or not math.isfinite(delta):
            why = "random numbers of the script's own come before its sum, and move every record's gradient"
            self._say(f"some sums: {why}" if line["mixed"] else f"sums that are no numbers with a record {kind}")
            return
        found = self.sums.get(kind) or MovedSums(kind, 0, BOUNDS.get(kind, 2.0), 0.0, None, "", 0)
        if delta > max(_MOVED, _TIMES * self._tolerance):
            found = replace(found, steps=found.steps + 1)
        slack = _RESIZED if kind == LEFT_OUT else _SLACK
        if delta > found.bound + max(slack, _TIMES * self._tolerance):
            found = replace(found, over=found.over + 1)
        if delta > found.most:
            found = replace(found, most=delta, step=line["step"], tensor=line["tensor"])
        self.sums[kind] = found

    def _state(self, line: Line, step: int, name: str) -> None:
        for full, size in line["differs"]:
            if size > self._ulp:
                what, _, part = full.partition(": ")
                self.states[what] = _first(self.states.get(what), Unlike(what, part, step, size, 1, name))

    def _say(self, line: str) -> None:
        if line not in self.untested:
            self.untested.append(line)

    @property
    def _ulp(self) -> float:
        return max(_ROUNDING, _TIMES * self._rounding)

    def replay(self) -> Replay:
        states = sorted(self.states.values(), key=lambda one: one.step)
        return Replay(
            self.steps, self.neighbours, self.records, self.compared, list(self.sums.values()), self.absent,
            self.others, states, self.ends, self.files, self.files_compared, _TIMES * self._tolerance, self.untested,
            self._before,
        )  # fmt: skip


_KIND = {FIXED: "of the data set", PLACEHOLDER: "of the user's own neighbour", READ: "that is read"}


def _all_others(line: Line) -> bool:
    """Are so many records of the batch others that they cannot be copies of one? Then something that was computed from
    all is in all of them."""
    return line["reached"] is not None and line["reached"] > max(_COPIES, line["size"] / 2)


def _first(known: Unlike | None, new: Unlike) -> Unlike:
    """The earlier of two, with the number of both and the larger size."""
    if known is None:
        return new
    earlier = new if new.step < known.step else known
    return replace(earlier, steps=known.steps + new.steps, size=max(known.size, new.size))


def _name(run: Replaying, lines: Sequence[Line]) -> str:
    changed = next((line["changed"] for line in lines if line.get("changed")), "")
    if run.role == FIXED:
        return f"neighbour {run.number} (a record of the data set {changed})" if changed else f"neighbour {run.number}"
    if run.role == PLACEHOLDER:
        return f"neighbour {run.number} (of the command)"
    if run.role == READ:
        return (
            f"neighbour {run.number} (a record {changed})" if changed else f"neighbour {run.number} (of what is read)"
        )
    return "another record of every batch"


def _left(line: Line) -> str:
    """Why a run went no further."""
    if line.get("parted"):
        return f"{line['parted']} part from the reference's at step {line['step']}"
    return str(line.get("over") or "")


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 1e30


def _lines(path: Path) -> Iterable[Line]:
    try:
        text = path.read_bytes()
    except OSError:
        return
    for line in text[: text.rfind(b"\n") + 1].splitlines():
        try:
            yield json.loads(line)
        except MALFORMED:
            continue
