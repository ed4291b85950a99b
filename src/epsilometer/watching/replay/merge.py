"""Lines of all runs → what a replay says of each training, as facts of its reference."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from epsilometer.errors import MALFORMED
from epsilometer.watching.facts import Facts, MovedSums, Replay, Unlike
from epsilometer.watching.recording import SUFFIX, Reader, Told, Writer
from epsilometer.watching.replay.effective import data_with_noise, with_effective
from epsilometer.watching.replay.files import unlike
from epsilometer.watching.replay.marks import reached
from epsilometer.watching.replay.roles import (
    BOUNDS,
    COPY,
    FIXED,
    LEFT_OUT,
    LINES,
    NEGATED,
    NOISE,
    OTHERS,
    PLACEHOLDER,
    READ,
)
from epsilometer.watching.settings import Declared, Replaying

Line = dict[str, Any]
_TINY = 1e-3  # clip norms, or of the larger number: what differs by less is the order of additions
_TIMES = 10.0  # the largest difference that comes without any change of a record
_ROUNDING = 1e-6  # of the larger number: what single precision may lose
_SLACK = 2e-3  # clip norms: as much is rounding
_RESIZED = 0.05  # clip norms: of a batch with one record less, which may be added up in another way
_MOVED = 1e-5  # clip norms: less is no trace of a record
# Numbers that scripts note for people beside a model.
_FIGURE = re.compile(r"(loss|acc|score|metric|eps|auc|f1|err|perplex|grad_?norm|time|best|history)[^.]*$")
_NOT_FOLLOWED = "replays follow Opacus trainings of the first process that makes one private"
_COPIES = 8  # of a record in one batch: more are no copies
_STATE = ("weights", "state of the optimizer", "clip norm")  # of what the next sum is made


def tell(
    meeting: Path,
    runs: Sequence[Replaying],
    recordings: Path,
    written: Mapping[int, Mapping[str, Path]],
    codes: Mapping[int, int],
    declared: Declared | None = None,
) -> None:
    """Facts of every training once more, with the replay's, at the end of the recording of the reference. Checkpoints
    were `written` by whole runs, which ended with such exit codes."""
    lines = {run.run: list(_lines(meeting / f"{run.run}.{LINES}")) for run in runs}
    process = next((line["pid"] for line in lines[0] if "pid" in line), None)
    followed = {line["training"] for line in lines[0] if "training" in line}
    taken = sum(line["end"] for line in lines[0] if "end" in line)
    outside = any("outside" in line for line in lines[0])
    noisy = data_with_noise(runs, lines) if outside else {}
    for path in sorted(recordings.glob(f"*{SUFFIX}")):
        first = path.name.startswith(f"{process}-")
        for training, told in _told(path, followed if first else set()).items():
            if first and training in followed:
                of = {
                    run: [one for one in said if one.get("training", training) == training]
                    for run, said in lines.items()
                }
                if outside and declared is not None:
                    found = with_effective(told, runs, of, noisy, declared, codes)
                else:
                    found = replace(told, replay=replay_of(runs, of, written, codes, _not_followed(told, taken)))
            else:
                found = replace(told, troubles={**told.troubles, "replay": _NOT_FOLLOWED})
            Writer(path).take(Told(training, found))


def _not_followed(told: Facts, taken: int) -> int:
    """Private steps that were accounted for, and of which no run in lockstep knows: their gradients are not the
    reference's, and what is made of them is other in every run."""
    accounted = told.accounted.total if told.accounted is not None and told.accounted.total is not None else taken
    return max(accounted - taken, 0)


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
    not_followed: int = 0,
) -> Replay:
    """Of one training; of every run, what it has written and how it ended; and how many steps it does not know."""
    merge = _Merge(runs, lines, codes or {}, not_followed)
    merge.compare_saves(runs, lines)
    merge.compare_files(written or {})
    return merge.replay()


class _Merge:
    """What every neighbour's lines say, as far as the run with other noise lets them."""

    def __init__(
        self,
        runs: Sequence[Replaying],
        lines: Mapping[int, Sequence[Line]],
        codes: Mapping[int, int],
        not_followed: int,
    ) -> None:
        self._codes = codes
        self.untested: list[str] = []
        self.sums: dict[str, MovedSums] = {}
        self.states: dict[str, Unlike] = {}
        self.others: Unlike | None = None
        self.chosen: Unlike | None = None
        self.mixed: Unlike | None = None
        self.ends: list[str] = []
        self.compared = self.absent = self.records = self.files_compared = 0
        self.files: list[str] = []
        self.figures: list[str] = []
        self._complete: list[int] = []  # neighbours that came to their end in step with the reference
        reference = lines[0]
        self._ended = any("end" in line for line in reference)
        told = reference if self._ended else [line for one in lines.values() for line in one if "delta" in line]
        self.steps: int = max((int(line["end"] if "end" in line else line.get("step", 0)) for line in told), default=0)
        failed = [line["over"] for line in reference if line.get("over")]
        self._noise_before = any(line.get("noise before") for one in lines.values() for line in one)
        self._before = any(run.role in (READ, PLACEHOLDER) for run in runs)
        self._noise = next(run.run for run in runs if run.role == NOISE)
        self._marks = _marks(reference)
        self._elsewhere: set[int] = set()  # runs whose changed record is not in the data
        self._study(lines[self._noise])
        if failed or not_followed or not self.steps:
            self._end, self._last = 0, False
            why = f"{not_followed} private steps were not followed" if not_followed else "no private step was followed"
            self.untested = [f"nothing: {failed[0] if failed else why}"]
        self._choosing = any(line.get("chose") for one in lines.values() for line in one)
        self.neighbours: list[str] = []
        for run in runs:
            if run.run and run.role not in (NOISE, NEGATED):
                self._take(run, lines[run.run])

    def _study(self, lines: Sequence[Line]) -> None:
        """Of the run with other noise: until which step what differs cannot come from noise, and rounding."""
        self._tolerance = self._rounding = 0.0
        self._begin, self._end = 1, 0
        self._alike = not any(line.get("mixes") for line in lines)  # gradients of records, with other noise
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
        name = _name(run, lines)
        self.neighbours.append(name)
        why = self._not_compared(run, lines)
        if why:
            self._elsewhere.add(run.run)
            self.untested.append(f"{name}: {why}")
            return
        judged = sum(self._step(line, name, run) for line in lines if "step" in line)
        for line in lines:
            if "end" in line:
                self._at_end(line, name, run)
        if run.role == OTHERS:  # it looks further where it can: nothing rests on it
            return
        self.compared += judged
        expected = min(self._end, self.steps)
        if judged < expected - self._begin + 1 and not any(line.get("fewer") for line in lines):
            why = next(filter(None, (_left(line) for line in lines)), "it drew random numbers, or ended early")
            self.untested.append(f"{name}: steps {judged + self._begin} to {expected}: {why}")

    def _not_compared(self, run: Replaying, lines: Sequence[Line]) -> str:
        """Why a run tells nothing; empty if it does."""
        if run.role == READ and not any(line.get("changed") for line in lines):
            return "no reader that is known returned a table to change"
        if run.role == READ and reached(self._marks, _marks(lines)) is False:
            return "that record is not in the data of the training"
        if run.role in (PLACEHOLDER, READ) and self._noise_before:
            return "the script draws random numbers before its training, which may be noise for what it changes there"
        return ""

    def _step(self, line: Line, name: str, run: Replaying) -> bool:
        """Was it compared?"""
        if line.get("more") and self._last:
            self.ends.append(f"{name}: {line['step']} or more steps, not {self.steps}")
        if not self._begin <= line["step"] <= self._end or line.get("drew", True):
            return False
        if line.get("skips"):
            self.ends.append(f"{name}: no step on a batch before step {line['step']}")
        if "delta" not in line:
            return False
        if run.role != OTHERS:
            self._sum(line, name, run)
        self._state(line, line["step"], name)
        return True

    def _at_end(self, line: Line, name: str, run: Replaying) -> None:
        if not self._last:
            return
        if "differs" in line and not line["drew"]:
            self._complete.append(run.run)
            found = line["differs"]
            if any(what.startswith(COPY) and ", weights " in what for what, _ in found):  # trained in another way
                found = [one for one in found if not one[0].startswith(COPY)]
            self._state({**line, "differs": found}, line["end"], name)
        elif line.get("fewer") and self._codes.get(run.run) == self._codes.get(0):
            self.ends.append(f"{name}: {line['end']} steps, not {self.steps}")
        elif line.get("fewer") and run.role != OTHERS:
            self.untested.append(f"{name}: it ended with exit code {self._codes.get(run.run)}")

    def compare_saves(self, runs: Sequence[Replaying], lines: Mapping[int, Sequence[Line]]) -> None:
        """Arrays that `torch.save` wrote, wherever it did, if they are the same with other noise."""
        if not self._last:
            return
        own, noise = (_saves(lines[run]) for run in (0, self._noise))
        others = [_saves(lines[run.run]) for run in runs if run.run not in self._elsewhere]
        for number, arrays in own.items():
            fixed = sorted(name for name, digest in arrays.items() if noise.get(number, {}).get(name) == digest)
            self.files_compared += bool(fixed)
            found = [one[number] for one in others if number in one]
            unlike = [name for name in fixed if any(one.get(name) != arrays[name] for one in found)]
            figures = [name for name in unlike if _FIGURE.search(name.lower())]
            told = f"what torch.save wrote as number {number}"
            self.files += [f"{told} ({name or 'a tensor'})" for name in unlike if name not in figures][:1]
            self.figures += [f"{told} ({name})" for name in figures][:1]
        for run in runs:
            many = len(_saves(lines[run.run]))
            if run.run in self._complete and len(own) == len(noise) != many:
                self.files.append(f"what torch.save wrote ({many} times, not {len(own)})")

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
        if line.get("mixes") and self._alike:
            mixed = Unlike("gradients", line["kind"], line["step"], float(line["mixes"]), 1, name)
            self.mixed = _first(self.mixed, mixed)
        if line.get("chose"):
            self.chosen = _first(self.chosen, Unlike("batch", "", line["step"], 1.0, 1, name))
        if self._choosing and line.get("batches", 1) > 1:
            return  # perhaps it is a sum over another one
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
            self._before, self.chosen, self.figures, self.mixed,
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
    if run.role == OTHERS:
        return "all records of the data set others"
    if run.role == PLACEHOLDER:
        return f"neighbour {run.number} (of the command)"
    if run.role == READ:
        return (
            f"neighbour {run.number} (a record {changed})" if changed else f"neighbour {run.number} (of what is read)"
        )
    return "another record of every batch"


def _marks(lines: Iterable[Line]) -> str:
    return next((line["marks"] for line in lines if "marks" in line), "")


def _saves(lines: Iterable[Line]) -> dict[int, dict[str, str]]:
    return {line["save"]: line["arrays"] for line in lines if "save" in line}


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
