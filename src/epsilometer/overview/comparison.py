"""Runs side by side: the settings in which they differ, what each claims, what was certified, and the verdicts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epsilometer.errors import InvalidInput
from epsilometer.figures import RunMarks, SideBySide
from epsilometer.overview.listing import FINISHED, STOPPED_EARLY, KnownRun
from epsilometer.overview.places import PLACES, places_below, places_in, runs_at
from epsilometer.report import duration
from epsilometer.rounding import down, up
from epsilometer.runs import RESULTS, STORE
from epsilometer.runs.directory import flat

MOST_RUNS = 100
ABSENT = "–"
_NO_VERDICT = {FINISHED: "none: no claim was tested"}  # of a run that is not finished there may be one later
_FOLLOWS = ("claim.sha256", "claim.points")  # from the curve, whose name is a setting
_HASH = 64  # letters, of which a dozen tell as much


@dataclass(frozen=True)
class Setting:
    """A setting that is not the same in all runs, with its value in each; none where a run does not have it."""

    key: str
    values: tuple[Any, ...]

    def in_words(self) -> tuple[str, ...]:
        return tuple(shown(value) for value in self.values)


@dataclass(frozen=True)
class Comparison:
    """Two runs or more, each under a name that tells it from the others."""

    names: tuple[str, ...]
    runs: tuple[KnownRun, ...]
    settings: tuple[Setting, ...]

    @property
    def incomparable(self) -> str:
        """Why no ε of one run may be held against that of another; empty if it may."""
        parts = [
            f"{what} ({', '.join(dict.fromkeys(values))})"
            for what, values in (
                ("unit", [run.neighbours.unit for run in self.runs]),
                ("relation", [run.neighbours.relation.value for run in self.runs]),
                ("δ", [f"{run.delta:g}" for run in self.runs]),
            )
            if len(set(values)) > 1
        ]
        return f"not comparable: these runs differ in {' and '.join(parts)}" if parts else ""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What must be known before the numbers are read."""
        told = [self.incomparable] if self.incomparable else []
        for name, run in zip(self.names, self.runs, strict=True):
            if run.state not in (FINISHED, STOPPED_EARLY):
                told.append(f"{name}: not finished ({run.state}, {run.done_so_far}), so there is no bound yet")
            if run.has_faults:
                told.append(f"{name}: a fault was injected on purpose")
            told += [f"{name}: {remark}" for remark in run.remarks]
        return tuple(told)

    def rows(self) -> list[tuple[str, ...]]:
        """What was found, a row each; those that must not be compared are marked."""
        mark = " (not comparable)" if self.incomparable else ""
        others = [_other(run) != ABSENT for run in self.runs]
        rows = [
            ("state", *(run.state for run in self.runs)),
            (" or ".join(dict.fromkeys(run.counted for run in self.runs)), *(run.progress for run in self.runs)),
            (f"claimed ε{mark}", *(run.promise for run in self.runs)),
            (f"theory ε ≤{mark}", *(ABSENT if run.upper is None else up(run.upper) for run in self.runs)),
            (f"certified ε ≥{mark}", *(ABSENT if run.certified is None else down(run.certified) for run in self.runs)),
            (f"if DP-SGD ε ≥{mark}", *(ABSENT if run.family is None else down(run.family) for run in self.runs)),
        ]
        if any(others):
            rows.append((f"other ε{mark}", *(_other(run) for run in self.runs)))
        rows.append(("verdict", *(run.outcome or _NO_VERDICT.get(run.state, "not finished") for run in self.runs)))
        rows.append(("time", *(duration(run.seconds) for run in self.runs)))
        return rows

    def differences(self) -> list[tuple[str, ...]]:
        """The settings that differ, a row each."""
        return [(setting.key, *setting.in_words()) for setting in self.settings]

    def figure(self) -> SideBySide:
        marks = tuple(
            RunMarks(name, run.certified, run.family, run.claimed, run.upper, _note(run))
            for name, run in zip(self.names, self.runs, strict=True)
        )
        warning = f"{self.incomparable.capitalize()}." if self.incomparable else ""
        return SideBySide(f"{len(marks)} runs", marks, warning)

    def to_dict(self) -> dict[str, Any]:
        return {
            "runs": [
                {
                    "run": name,
                    "plan_sha256": run.fingerprint,
                    "state": run.state,
                    "trials": {"done": run.done, "of": run.total},
                    "claimed": run.claimed,
                    "delta": run.delta,
                    **run.neighbours.to_dict(),
                    "upper_bound": run.upper,
                    "lower_bound": run.lower,
                    "family_bound": run.family,
                    "verdict": run.outcome,
                    "reason": run.verdict and run.verdict["reason"],
                    "seconds": run.seconds,
                }
                for name, run in zip(self.names, self.runs, strict=True)
            ],
            "settings": {setting.key: list(setting.values) for setting in self.settings},
            "comparable": not self.incomparable,
            "remarks": list(self.remarks),
            "figure": self.figure().to_dict(),
        }


def compare(given: Sequence[Path]) -> Comparison:
    """The runs in these directories, which may also have runs below them."""
    found = [run for path in given for run in _runs_of(path)]
    twice = [str(run.where) for i, run in enumerate(found) if run in found[:i]]
    if twice:
        raise InvalidInput("RUN", twice[0], "each run once", "leave it out, or name another")
    if not 2 <= len(found) <= MOST_RUNS:
        which = ", ".join(map(str, given))
        raise InvalidInput("RUN", which, f"from 2 to {MOST_RUNS} runs (there are {len(found)})", "name others too")
    return Comparison(_names(found), tuple(found), _differing(found))


def _runs_of(path: Path) -> list[KnownRun]:
    if path.name in (*PLACES, RESULTS[0]) and path.is_file():
        path = path.parent
    if not path.is_dir():
        raise InvalidInput("RUN", str(path), "a run directory", "check the path")
    here = places_in(path)
    found = [run for place in here for run in runs_at(place)]
    if not found:  # a sweep has its runs below it
        found = [run for place in places_below(path)[0] if place not in here for run in runs_at(place)]
    if not found:
        raise InvalidInput(
            "RUN", str(path), f"a directory with a run in it ({STORE})", "audit --out DIR or watch --out DIR makes one"
        )
    return found


def _names(runs: Sequence[KnownRun]) -> tuple[str, ...]:
    """Directories; with the adversary or the number of a watched training, and if that is not enough the plan, where
    one has several runs."""
    names = [str(run.where) for run in runs]
    for more in ([run.which for run in runs], [run.fingerprint[:8] for run in runs]):
        counts = Counter(names)
        names = [f"{name}: {word}" if counts[name] > 1 else name for name, word in zip(names, more, strict=True)]
    return tuple(names)


def _differing(runs: Sequence[KnownRun]) -> tuple[Setting, ...]:
    plans = [flat(run.plan) for run in runs]
    found = []
    for key in dict.fromkeys(key for plan in plans for key in plan):
        values = tuple(plan.get(key) for plan in plans)
        if len({json.dumps(value, sort_keys=True) for value in values}) > 1:
            found.append(Setting(key, values))
    if any(setting.key == "claim.name" for setting in found):
        found = [setting for setting in found if setting.key not in _FOLLOWS]
    return tuple(found)


def shown(value: Any) -> str:
    if value is None:
        return ABSENT
    if isinstance(value, str):
        return f"{value[:12]}…" if len(value) == _HASH and not set(value) - set("0123456789abcdef") else value
    return json.dumps(value, ensure_ascii=False)


def _other(run: KnownRun) -> str:
    if run.lower is None or run.certified is not None or run.family == run.proved:
        return ABSENT
    return f"{down(float(run.lower['epsilon']))} ({run.lower['kind']})"


def _note(run: KnownRun) -> str:
    if run.lower is None:
        return f"{run.state}, {run.done_so_far}"
    return "" if run.certified is not None else f"no certified bound ({run.lower['kind']})"
