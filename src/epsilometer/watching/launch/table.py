"""What the hook is told by whoever starts a command: which modules to wait for, and who takes hold of each.

It is written beside the settings, before the command starts, so that frameworks which installed packages bring work
in scripts whose environment has neither these packages nor Epsilometer.
"""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

from epsilometer.watching.framework import FRAMEWORKS
from epsilometer.watching.settings import Settings

FILE = "hooks.json"


def write_table(directory: Path, settings: Settings) -> None:
    """By module: who attaches, and where the package is in which that is. What cannot be used is left out."""
    table: dict[str, Any] = {}
    for framework in FRAMEWORKS.values():
        if not (settings.canaries or framework.checks_alone):
            continue
        entry = {"attach": framework.attach, **_found(re.split("[.:]", framework.attach)[0])}
        for module in framework.modules:
            table.setdefault(module, []).append(entry)
    (directory / FILE).write_text(json.dumps(table), encoding="utf-8")


def _found(package: str) -> dict[str, Any]:
    """Where this process has it."""
    if package == "epsilometer":  # the hook knows where that is
        return {}
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return {}
    if spec is None or spec.origin is None:
        return {}
    places = spec.submodule_search_locations
    return {"origin": spec.origin, "places": None if places is None else list(places)}
