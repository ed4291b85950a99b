"""Within a watched script: take hold of a module that was waited for, as the table says."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from epsilometer.watching.ending import at_end
from epsilometer.watching.recording import Imported, Writer
from epsilometer.watching.settings import Settings
from epsilometer.watching.training import Trainings

_TRAININGS: dict[str, tuple[Writer, Trainings]] = {}  # of this process: by the file that records go to


def take_hold(module: Any, entry: dict[str, Any], path: str) -> None:
    """Records go to the file at `path`, settings lie beside it."""
    if path not in _TRAININGS:
        sink = Writer(path)
        _TRAININGS[path] = sink, Trainings(sink, Settings.read(Path(path).parent))
    sink, trainings = _TRAININGS[path]
    at_end(trainings.finish)  # before what this library does at the end; the first call counts
    name, _, function = entry["attach"].partition(":")
    _make_findable(name.partition(".")[0], entry)
    getattr(importlib.import_module(name), function)(module, trainings)
    if entry.get("silent"):
        return
    library = module.__name__.partition(".")[0]
    sink.take(Imported(library, _version(library)))


def _make_findable(package: str, entry: dict[str, Any]) -> None:
    """The script's own, if it has one: another version in its place could change the script. Else that of whoever
    watches."""
    if package in sys.modules or "origin" not in entry or importlib.util.find_spec(package) is not None:
        return
    spec = importlib.util.spec_from_file_location(package, entry["origin"], submodule_search_locations=entry["places"])
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules[package] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[package]
        raise


def _version(library: str) -> str:
    """As far as it is known: packages are half imported when their modules are waited for."""
    known = getattr(sys.modules.get(library), "__version__", None)
    if known is None:
        with suppress(Exception):
            from importlib import metadata

            known = metadata.version(library)
    return str(known or "")
