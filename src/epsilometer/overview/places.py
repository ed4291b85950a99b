"""Where runs are: a store of trials, or what a watched command has left."""

from __future__ import annotations

from pathlib import Path

from epsilometer.overview.listing import KnownRun, runs_in
from epsilometer.overview.watched import watched_in
from epsilometer.runs import STORE
from epsilometer.runs.directory import files_below
from epsilometer.watching.settings import FILE

PLACES = (STORE, FILE)  # names of files by which a directory with a run is known


def runs_at(path: Path) -> list[KnownRun]:
    """The runs of one file of these names. Whatever is wrong with it is one `EpsilometerError`."""
    return watched_in(path.parent) if path.name == FILE else runs_in(path)


def places_in(directory: Path) -> list[Path]:
    """The files of these names in a directory itself."""
    return [path for path in (directory / name for name in PLACES) if path.is_file()]


def places_below(directory: Path) -> tuple[list[Path], bool]:
    """The same in it and below it, and whether these are all."""
    return files_below(directory, *PLACES)
