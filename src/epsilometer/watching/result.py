"""The document of a watched command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from epsilometer.json_values import json_values
from epsilometer.versions import versions
from epsilometer.watching.figures import figures_of
from epsilometer.watching.monitor import Monitor

KIND, SCHEMA = "watch", 2


def document_of(
    monitor: Monitor, *, command: Sequence[str], exit_code: int, begun: str, seconds: float
) -> dict[str, Any]:
    """All of it as plain data."""
    found: dict[str, Any] = json_values(
        {
            "kind": KIND,
            "schema": SCHEMA,
            "command": list(command),
            "exit_code": exit_code,
            "begun": begun,
            "seconds": seconds,
            "libraries": [{"name": one.library, "version": one.version} for one in monitor.libraries],
            "processes": [
                {"pid": one.pid, "argv": one.argv, "python": one.python} for one in monitor.processes.values()
            ],
            "failures": monitor.failures,
            "trainings": [one.to_dict() for one in monitor],
            "figures": {name: figure.to_dict() for name, figure in figures_of(monitor).items()},
            "versions": versions(),
        }
    )
    return found
