"""What every figure is: numbers first, with their table; drawn second, if somebody looks."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from html import escape
from typing import Any, ClassVar

from epsilometer.escape import visible
from epsilometer.json_values import json_values

WIDTH = 5.8  # inches, with letters of 9 points: they can still be read on a telephone


@dataclass(frozen=True)
class Table:
    """The numbers of a figure for whoever cannot see it, or wants to check it."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Figure(ABC):
    """The numbers of a picture. Subclasses are frozen dataclasses of plain values, which go to JSON and back."""

    kind: ClassVar[str]
    title: str

    @property
    def reading(self) -> str:
        """How the picture is to be read, in a sentence or two."""
        return ""

    @property
    def height(self) -> float:
        """Inches."""
        return 3.2

    @abstractmethod
    def table(self) -> Table: ...

    @abstractmethod
    def draw(self, ax: Any) -> None:
        """Draw it into matplotlib's axes."""

    @property
    @abstractmethod
    def marks(self) -> int:
        """How many marks stand for data in it."""

    def parts(self) -> Sequence[Figure]:
        """What has axes of its own."""
        return (self,)

    def plot(self, ax: Any = None) -> Any:
        """Draw it, into new axes if none are given, and give these back."""
        from epsilometer.figures.canvas import axes_for

        return axes_for(self, ax)

    def to_dict(self) -> dict[str, Any]:
        values: dict[str, Any] = json_values({"kind": self.kind, **_values(self)})
        return values

    def _repr_html_(self) -> str:
        from epsilometer.figures.canvas import svg

        return svg(self)


class Drawable(ABC):
    """Whatever has a figure: `plot` draws it, and a notebook shows it."""

    @abstractmethod
    def figure(self) -> Figure:
        """Its numbers, for a picture."""

    def plot(self, ax: Any = None) -> Any:
        """Draw it with matplotlib, into new axes if none are given, and give these back."""
        return self.figure().plot(ax)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(visible(repr(self)))}</pre>\n{self.figure()._repr_html_()}"


def _values(one: Any) -> Any:
    if is_dataclass(one):
        kind = {"kind": one.kind} if hasattr(one, "kind") else {}
        return kind | {field.name: _values(getattr(one, field.name)) for field in fields(one)}
    return [_values(item) for item in one] if isinstance(one, tuple | list) else one


def number(value: float | None, digits: int = 3) -> str:
    """A number for a table or beside a mark.

    >>> number(0.70712), number(float("inf")), number(None), number(12345.0)
    ('0.707', '∞', '–', '12,345')
    """
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if abs(value) >= 10**digits and abs(value) < 1e7:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def percent(share: float, digits: int = 3) -> str:
    """
    >>> percent(0.5), percent(0.0012345)
    ('50 %', '0.123 %')
    """
    return f"{100 * share:.{digits}g} %"


def plain_ticks(axis: Any, least: float | None = None) -> None:
    """Numbers at powers of ten only, written as such: the usual ones are formulas. `least` stands for all below it."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    def told(value: float, _: int) -> str:
        return f"≤ {number(value)}" if least is not None and math.isclose(value, least) else number(value)

    axis.set_major_formatter(FuncFormatter(told))
    axis.set_minor_formatter(NullFormatter())
