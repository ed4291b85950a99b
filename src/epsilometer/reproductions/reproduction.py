"""What a reproduction is: cells with settings, a way to measure one, and a picture of all."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from epsilometer.data import Progress as Download
from epsilometer.errors import InvalidInput, unknown_name
from epsilometer.figures import Figure
from epsilometer.report.headline import Headline
from epsilometer.runs import Executor, MemoryStore, Progress, Store

Cell = Mapping[str, str]  # a setting's name → its value, as the paper writes it


@dataclass(frozen=True)
class Session:
    """With what a reproduction is run. Only `trials` and `seed` change results."""

    trials: int
    seed: int = 0
    data_dir: Path | None = None
    store: Store = field(default_factory=MemoryStore)
    directory: Path | None = None  # for cells that have one of their own in it
    executor: Executor | None = None
    progress: Progress | None = None
    download: Download | None = None


@dataclass(frozen=True)
class Row:
    """A cell, what the paper has there (if anything), what was measured, and how."""

    cell: Cell
    paper: float | None
    measured: float
    details: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return {**self.cell, "paper": self.paper, "measured": self.measured, **self.details}


@dataclass(frozen=True)
class Reproduction:
    """A published table or figure, cell by cell."""

    name: str
    summary: str
    about: str  # how what is measured relates to what the paper states
    trials: int  # the usual number: in each world, or of what else is counted
    cells: tuple[Cell, ...]
    measure: Callable[[Cell, Session], Row]
    draw: Callable[[Sequence[Row]], Figure]
    shown: tuple[str, ...]  # the details that stand in a line
    at_least: tuple[str, ...] = ()  # which of these, or `measured`, are lower bounds: never rounded up
    headline: Callable[[Sequence[Row]], Headline] | None = None  # of all cells together, where a claim is tested
    earlier: Mapping[str, str] = field(default_factory=dict)  # what rows had that were stored before there was the key

    def chosen(self, only: Sequence[str]) -> tuple[Cell, ...]:
        """The cells with these settings, KEY=VALUE,VALUE…; several values of one key are alternatives.

        Cells that do not have a key are there with all of its values.
        """
        wanted: dict[str, set[str]] = {}
        for word in only:
            key, sign, given = word.partition("=")
            keys = list(dict.fromkeys(itertools.chain(*self.cells)))
            if not sign or key not in keys:
                raise unknown_name("only", key, [f"{name}=…" for name in keys])
            known = list(dict.fromkeys(cell[key] for cell in self.cells if key in cell))
            for value in given.split(","):
                if value not in known:
                    raise unknown_name("only", value, known)
                wanted.setdefault(key, set()).add(value)
        cells = self.cells
        for key, values in wanted.items():
            left = tuple(cell for cell in cells if key not in cell or cell[key] in values)
            if not left:
                there = ", ".join(dict.fromkeys(cell[key] for cell in cells))
                expected = f"settings that occur together (with the other settings, {key} is one of {there})"
                raise InvalidInput("only", " ".join(only), expected, "leave one out")
            cells = left
        return cells

    def rows(self, cells: Sequence[Cell], session: Session) -> Iterator[Row]:
        """Measure cells one after another; trials that the session's store has are not played again."""
        for cell in cells:
            yield self.measure(cell, session)


def grid(**values: Sequence[str]) -> tuple[Cell, ...]:
    """All combinations, the last key varying fastest.

    >>> grid(a=("1", "2"), b=("x",))
    ({'a': '1', 'b': 'x'}, {'a': '2', 'b': 'x'})
    """
    return tuple(dict(zip(values, row, strict=True)) for row in itertools.product(*values.values()))
