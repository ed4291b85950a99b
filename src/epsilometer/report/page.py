"""What a report consists of, whatever it is about: sections of words, facts, tables, code and figures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from epsilometer.figures import Figure, Table
from epsilometer.report.release import DO_NOT_RELEASE, is_refused

NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Words:
    """A paragraph."""

    block: ClassVar[str] = "words"
    text: str


@dataclass(frozen=True)
class Points:
    """A list; numbered, if its order matters."""

    block: ClassVar[str] = "points"
    items: Sequence[str]
    numbered: bool = False


@dataclass(frozen=True)
class Facts:
    """A table of labels and what is to be said of each."""

    block: ClassVar[str] = "facts"
    caption: str
    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Numbers:
    """A table with a head."""

    block: ClassVar[str] = "numbers"
    caption: str
    table: Table


@dataclass(frozen=True)
class Code:
    """A command or a few lines to run."""

    block: ClassVar[str] = "code"
    label: str
    text: str


@dataclass(frozen=True)
class Drawn:
    """A figure with its table."""

    block: ClassVar[str] = "drawn"
    figure: Figure


Block = Words | Points | Facts | Numbers | Code | Drawn


@dataclass(frozen=True)
class Section:
    """A heading, and what is below it."""

    title: str
    blocks: Sequence[Block]

    @property
    def anchor(self) -> str:
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


@dataclass(frozen=True)
class Page:
    """A whole report. `verdict` is none where no claim was tested."""

    title: str
    kind: str  # of the run, in words
    verdict: str | None
    sentences: Sequence[str]
    quote: str = ""
    sections: Sequence[Section] = ()
    version: str = ""
    warnings: Sequence[str] = field(default_factory=tuple)

    @property
    def refused(self) -> str:
        """What to do about a claim that does not hold; empty of any other."""
        return DO_NOT_RELEASE if is_refused(self.verdict) else ""
