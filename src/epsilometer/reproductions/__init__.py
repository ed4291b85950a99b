"""Published tables and figures, rerun with one command: what the paper has beside what was measured."""

import importlib
from typing import TYPE_CHECKING

from epsilometer.reproductions.directory import VIEWS, has_trials, reproduction_directory, write_rows
from epsilometer.reproductions.ladder import ladder, ladder_headline, ladder_of
from epsilometer.reproductions.reproduction import Cell, Reproduction, Row, Session
from epsilometer.reproductions.sweep import Axis, parse_axis, sweep_of

if TYPE_CHECKING:
    from epsilometer.reproductions.catalogue import REPRODUCTIONS, reproduction_named

__all__ = [
    "REPRODUCTIONS",
    "Axis",
    "Cell",
    "Reproduction",
    "Row",
    "Session",
    "VIEWS",
    "has_trials",
    "ladder",
    "ladder_headline",
    "ladder_of",
    "parse_axis",
    "reproduction_directory",
    "reproduction_named",
    "sweep_of",
    "write_rows",
]


def __getattr__(name: str) -> object:
    """The table, once it is asked for: it imports every study, of which a ladder or a sweep needs none."""
    if name in ("REPRODUCTIONS", "reproduction_named"):
        return getattr(importlib.import_module("epsilometer.reproductions.catalogue"), name)
    raise AttributeError(f"module 'epsilometer.reproductions' has no attribute {name!r}")
