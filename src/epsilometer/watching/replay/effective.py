"""Lines of all runs of a loop by hand → what they say of each training.

The run with other noise differs from the reference by two draws of all that is random: half of the square is the
variance of the noise, or more. A run with one record changed differs by what that record moves. Noise is as large as is
stated if the second, in units of the first, is 2/σ at most, in every step and over all tensors together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from epsilometer.watching.facts import Effective, Facts, Replay, Unlike
from epsilometer.watching.replay.roles import (
    GRADIENT,
    HUGE,
    HUGE_LABEL,
    NEGATED,
    NOISE,
    OTHERS,
    PLACEHOLDER,
    READ,
    REFERENCE,
    ROTATING,
    WEIGHTS,
    WITHIN,
)
from epsilometer.watching.settings import Declared, Replaying

Line = Mapping[str, Any]
Squares = Mapping[str, float]
_TWICE = 2.0  # clip norms that a record moves a sum by which is replaced
_TRACE = 1e-5  # of a gradient's norm: less is rounding
_NONE = 1e-6  # the same, of noise
_CHANCE = 1e-6  # that the limit of any variance of a training is wrong
_ULP = 1e-6
_UNLIKE = 20.0  # a huge record moves so many times what others do, where nothing is clipped
_SAME = 0.999  # a cosine
_RIGHT = 0.05  # by which a scale may be off that is found
_KIND = {READ: "replaced where it is read", PLACEHOLDER: "of the user's own neighbour"}


def with_effective(
    told: Facts,
    runs: Sequence[Replaying],
    lines: Mapping[int, Sequence[Line]],
    noisy: Mapping[int, set[int]],
    declared: Declared,
    codes: Mapping[int, int],
) -> Facts:
    """Facts of one training with what its runs have found; `noisy` is the data of steps with noise, in any."""
    found = _Found(runs, lines, codes)
    return replace(told, effective=found.effective(noisy, declared), replay=found.replay())


def data_with_noise(runs: Sequence[Replaying], lines: Mapping[int, Sequence[Line]]) -> dict[int, set[int]]:
    """Data sets that steps with noise take their records from, and which, of all trainings."""
    run = next(one.run for one in runs if one.role == NOISE)
    found: dict[int, set[int]] = {}
    for line in lines[run]:
        if "squares" in line and _has_noise(line):
            found.setdefault(line["source"], set()).update(line["members"])
    return found


def _has_noise(line: Line) -> bool:
    """More than rounding."""
    most: float = max(_released(line).values(), default=0.0)
    return most > float((_NONE * max(line["norm"], 1e-300)) ** 2)


def _released(line: Line) -> Squares:
    """Of what is between two runs: at the place after which nothing is drawn in the step."""
    return line["squares"].get(_place(line), {})  # type: ignore[no-any-return]


def _place(line: Line) -> str:
    if line["place"] != WEIGHTS:
        return str(line["place"])
    drawn = line["drawn"]
    for place in (WITHIN, GRADIENT):
        if place in drawn:
            return place if not drawn[place] else WEIGHTS
    return WEIGHTS


@dataclass
class _Silent:
    """Tensors of one step that a changed record reaches, and no random number."""

    step: int
    tensors: list[str]
    whole: bool


@dataclass
class _Smallest:
    """The multiplier at most, of one kind of change."""

    value: float = math.inf
    step: int | None = None
    moved: float = 0.0  # the largest difference
    deviation: float = 0.0  # of the noise, in that step


@dataclass
class _Found:
    """Of one training."""

    runs: Sequence[Replaying]
    lines: Mapping[int, Sequence[Line]]
    codes: Mapping[int, int]  # with which they ended
    untested: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        of = {one.role: one.run for one in self.runs}
        self._reference = self.lines[of[REFERENCE]]
        self.sizes: dict[str, int] = next((one["sizes"] for one in self._reference if "sizes" in one), {})
        self.steps = max((int(one["end"]) for one in self._reference if "end" in one), default=0)
        begun = next((one for one in self._all(of[REFERENCE]) if "outside" in one), {})
        self._drawn_before = int(begun.get("drawn before", 0))
        self._unseen_before = bool(begun.get("noise before", True))
        self._within = any(one.get("within") for lines in self.lines.values() for one in lines)
        self._noise_lines = self._of_noise(of[NOISE])
        self._negated = self._of_noise(of[NEGATED]) if NEGATED in of else {}
        self._variances = self._limits()
        for run in self.runs:
            for why in filter(None, (one.get("over") for one in self.lines[run.run])):
                self._say(f"the {run.role} run: {why}")

    def _all(self, run: int) -> Sequence[Line]:
        return self.lines[run]

    def _usable(self, run: int) -> Iterator[Line]:
        """Lines of steps. Where a training draws within some of its steps, those are left that met after them, but for
        the first one: it comes after a step that ended differently in every run."""
        met_before = False  # the step before met before its end
        for one in self.lines[run]:
            if "squares" not in one:
                continue
            early, met_before = met_before, one["place"] != WEIGHTS
            if not one["parted"] and not (self._within and (met_before or early)):
                yield one

    def _of_noise(self, run: int) -> dict[int, Line]:
        """By step, but for those at other weights: a script may add noise to them by itself."""
        found = {}
        for one in self._usable(run):
            if one["place"] != WEIGHTS and any(what.startswith("weights") for what, _ in one["differs"]):
                self._say("steps before which weights get random numbers, after the step that moved them")
            else:
                found[one["step"]] = one
        return found

    # Noise

    def _limits(self) -> dict[int, dict[str, float]]:
        """By step and tensor, the variance of the noise at most. Of a tensor whose noise has the same size in every
        step all steps together, else each by itself."""
        squares: dict[str, dict[int, float]] = {}
        for step, line in self._noise_lines.items():
            for name, square in _released(line).items():
                squares.setdefault(f"{_place(line)}/{name}", {})[step] = square / 2
        found: dict[int, dict[str, float]] = {}
        chance = _CHANCE / max(sum(map(len, squares.values())), 1)  # of each, so that all hold at once
        for full, of in squares.items():
            name = full.partition("/")[2]
            size, positive = self.sizes.get(name, 0), {step: one for step, one in of.items() if one > 0}
            together = _same_size(list(positive.values()), size)
            limit = sum(positive.values()) / max(_least(size * len(positive), chance), 1e-300) if together else 0.0
            for step, one in of.items():
                alone = one / max(_least(size, chance), 1e-300)
                found.setdefault(step, {})[name] = 0.0 if not one else limit if together else alone
        return found

    def _neighbours(self) -> Iterator[tuple[Replaying, Line, Squares, Line]]:
        """Steps of runs with one record changed that this record reached: what it moved, and the same step with other
        noise."""
        for run in self.runs:
            if run.role not in (ROTATING, READ, PLACEHOLDER) or self._not_compared(run):
                continue
            for line in self._usable(run.run):
                other = self._noise_lines.get(line["step"])
                if other is None or line["reached"] == 0 or _place(line) != _place(other):
                    continue
                moved = self._moved(line)
                if moved:
                    yield run, line, moved, other

    def _moved(self, line: Line) -> Squares:
        """Tensors that a changed record reached, and by how much it moved them."""
        least = (_TRACE * max(line["norm"], 1e-300)) ** 2
        return {name: one for name, one in _released(line).items() if one > least}

    def _not_compared(self, run: Replaying) -> str:
        if run.role == READ and not any(line.get("changed") for line in self._all(run.run)):
            return "no reader that is known returned a table to change"
        if run.role in (READ, PLACEHOLDER) and self._unseen_before:
            return "the script draws random numbers before its training, which may be noise for what it changes there"
        return ""

    def effective(self, noisy: Mapping[int, set[int]], declared: Declared) -> Effective:
        kinds: dict[str, _Smallest] = {}
        silent: list[_Silent] = []
        compared = 0
        for run, line, moved, other in self._neighbours():
            compared += 1
            without = self._silent(line, moved, other, noisy)
            if without is not None:
                silent.append(without)
                continue
            found = kinds.setdefault(line["kind"] or _KIND[run.role], _Smallest())
            self._take(found, line, moved)
        silent = self._certain(silent)
        smallest = min(kinds, key=lambda kind: kinds[kind].value, default="")
        if not compared:
            self._say("no changed record reached a gradient")
        return Effective(
            declared.noise_multiplier, declared.clip_norm, declared.sample_rate, self.steps, compared,
            {kind: one.value for kind, one in kinds.items() if math.isfinite(one.value)}, smallest,
            kinds[smallest].step if smallest else None,
            sorted({name for one in silent for name in one.tensors}), len({one.step for one in silent}),
            min((one.step for one in silent), default=None), all(one.whole for one in silent),
            self._blames_clipping(kinds, declared), self._normal(), self._repeated(), *self._sampled(), self.untested,
        )  # fmt: skip

    def _take(self, found: _Smallest, line: Line, moved: Squares) -> None:
        if _place(line) == WEIGHTS and not line["linear"]:
            self._say("weights after steps that are not linear in their gradients")
            return
        limits = self._variances.get(line["step"], {})
        weighed = {name: one / limits[name] for name, one in moved.items() if limits.get(name, 0.0) > 0}
        total = sum(weighed.values())
        if not total or not math.isfinite(total):
            return
        value, distance = _TWICE / math.sqrt(total), math.sqrt(sum(moved.values()))
        size = sum(self.sizes.get(name, 0) for name in limits)
        deviation = math.sqrt(sum(limits[name] * self.sizes.get(name, 0) for name in limits) / max(size, 1))
        found.moved = max(found.moved, distance)
        if value < found.value:
            found.value, found.step, found.deviation = value, line["step"], deviation

    def _silent(self, line: Line, moved: Squares, other: Line, noisy: Mapping[int, set[int]]) -> _Silent | None:
        """Tensors that the record reaches and no random number does, if that may be held against them."""
        least = (_NONE * max(line["norm"], 1e-300)) ** 2
        spread = _released(other)
        names = [name for name in moved if spread.get(name, 0.0) <= least]
        if not names:
            return None
        later = other["squares"].get(WEIGHTS, {}) if other["place"] == WEIGHTS else {}
        if any(later.get(name, 0.0) > 0 for name in names):
            self._say(f"tensors that get random numbers after the gradient (step {line['step']})")
            return _Silent(line["step"], [], whole=False)
        whole = all(one <= least for one in spread.values())
        size = sum(self.sizes.get(name, 0) for name in names)
        if other["unseen"] or other["window"]["other"] >= size:
            self._say("steps before whose batch random numbers are drawn in a way that may be noise")
            return _Silent(line["step"], [], whole)
        if whole and noisy and not noisy.get(line["source"], set()) & set(other["members"]):
            self._say("steps without noise on other records than those with it, which may be public")
            return _Silent(line["step"], [], whole)
        return _Silent(line["step"], names, whole)

    def _certain(self, silent: list[_Silent]) -> list[_Silent]:
        """Those that no noise of before the training can be in: there were too few numbers for all of their steps."""
        found = [one for one in silent if one.tensors]
        if not found:
            return []
        names = {name for one in found for name in one.tensors}
        needed = sum(self.sizes.get(name, 0) for name in names) * len({one.step for one in found})
        if self._unseen_before or self._drawn_before >= needed:
            self._say(
                f"{', '.join(sorted(names)[:3])} without noise in {len({one.step for one in found})} steps: random "
                "numbers that were drawn before the training may be it (more steps would tell)"
            )
            return []
        return found

    def _blames_clipping(self, kinds: Mapping[str, _Smallest], declared: Declared) -> str:
        """Why a multiplier is too small: because a record moves more than noise is made for?"""
        huge = max((one.moved for kind, one in kinds.items() if kind in (HUGE, HUGE_LABEL)), default=0.0)
        others = max((one.moved for kind, one in kinds.items() if kind not in (HUGE, HUGE_LABEL)), default=0.0)
        if others and huge > _UNLIKE * others:
            return f"a huge record moves the step {huge / others:.3g} times as far as any other"
        sizes = [line["size"] for line in self._noise_lines.values() if line["size"]]
        deviation = max((one.deviation for one in kinds.values()), default=0.0)
        if declared.clip_norm is None or not sizes or not deviation:
            return ""
        records = max((line["records"] or 0 for line in self._noise_lines.values()), default=0)
        for divisor in filter(None, (1.0, sum(sizes) / len(sizes), records * (declared.sample_rate or 0.0))):
            if abs(deviation * divisor / (declared.noise_multiplier * declared.clip_norm) - 1) < _RIGHT:
                most = max(huge, others) * divisor / declared.clip_norm
                return f"noise is made for the clip norm {declared.clip_norm:g}, and a record moves {most:.3g} times it"
        return ""

    def _normal(self) -> float:
        """The share of the variance that the run with negated normal numbers explains."""
        explained = total = 0.0
        for step, line in self._negated.items():
            other = self._noise_lines.get(step)
            if other is not None and _place(line) == _place(other):
                explained += sum(_released(line).values()) / 4
                total += sum(_released(other).values()) / 2
        return explained / total if total else 0.0

    def _repeated(self) -> int:
        """Steps in a row whose noise is that of the step before, the most there are, or steps whose noise takes it
        off: what lies between runs with other noise, or with negated normal numbers, is the same, or the negative."""
        most = 0
        for lines in (self._noise_lines, self._negated):
            row, undone = 0, 0
            for step in sorted(lines):
                again = lines[step]["again"] if _has_noise(lines[step]) else 0.0
                row = row + 1 if again > _SAME else 0
                undone += again < -_SAME
                most = max(most, row, undone)
        return most

    def _sampled(self) -> tuple[list[int], int | None, bool]:
        """Sizes of the batches from the data set that most steps with noise take their records from."""
        lines = [one for one in self._noise_lines.values() if _has_noise(one) and one["records"]]
        sources = [one["source"] for one in lines]
        if not sources:
            return [], None, False
        of = max(set(sources), key=sources.count)
        found = [one for one in lines if one["source"] == of]
        return [int(one["size"]) for one in found], int(found[0]["records"]), all(one["loader"] for one in found)

    # All else

    def replay(self) -> Replay:
        noise = {what for line in self._noise_lines.values() for what, size in line["differs"] if size > 0}
        states: dict[str, Unlike] = {}
        ends: list[str] = []
        names, compared, records = [], 0, 0
        usual = all("gone" not in one and "fewer" not in one and "more" not in one for one in self._of(NOISE))
        for run in self.runs:
            if run.role not in (ROTATING, READ, PLACEHOLDER, OTHERS) or self._not_compared(run):
                continue
            name = "another record of every batch" if run.role == ROTATING else f"neighbour {run.number}"
            if not any(self._moved(line) for line in self._usable(run.run)):
                self._say(f"{name}: it reached no gradient")
                continue
            names.append(name)
            for line in self._usable(run.run):
                if line["place"] == WEIGHTS:
                    continue
                compared += 1
                records += bool(line["kind"])
                for full, size in line["differs"]:
                    if size > _ULP and full not in noise:
                        what, _, part = full.partition(": ")
                        first = states.get(what)
                        if first is None or line["step"] < first.step:
                            states[what] = Unlike(what, part, line["step"], size, 1, name)
            if self.codes.get(run.run) != self.codes.get(0):  # a changed record made it fail, as by a division by zero
                self._say(f"{name}: it ended with exit code {self.codes.get(run.run)}")
                continue
            for line in self.lines[run.run]:
                if usual and (line.get("fewer") or line.get("more")):
                    ends.append(f"{name}: {line.get('end', line.get('step'))} steps, not {self.steps}")
        found = sorted(states.values(), key=lambda one: one.step)
        return Replay(
            self.steps, names, records, compared, [], 0, None, found, ends, [], 0, 0.0,
            [*self.untested, "what is saved"], before=any(run.role in (READ, PLACEHOLDER) for run in self.runs),
        )  # fmt: skip

    def _of(self, role: str) -> Sequence[Line]:
        return self.lines[next(one.run for one in self.runs if one.role == role)]

    def _say(self, line: str) -> None:
        if line not in self.untested:
            self.untested.append(line)


def _least(size: int, chance: float) -> float:
    """A sum of so many squares is this at least, but with this chance."""
    from scipy import special  # when it is needed: a command starts before

    return float(special.chdtri(size, 1 - chance)) if size else 0.0


def _same_size(squares: Sequence[float], size: int) -> bool:
    """May these be sums of as many squares of one deviation?"""
    if len(squares) < 2 or not size:
        return False
    mean = sum(squares) / len(squares) / size
    from scipy import special

    low, high = special.chdtri(size, 1 - 1e-4), special.chdtri(size, 1e-4)
    return bool(min(squares) >= low * mean and max(squares) <= high * mean)
