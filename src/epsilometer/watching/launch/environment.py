"""The environment of a watched command: the same, and a directory first on PYTHONPATH whose sitecustomize is ours."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from epsilometer.watching.settings import SECRET

HOOK = Path(__file__).parent / "hook"
WATCH = "EPSILOMETER_WATCH"  # where records go


def with_hook(environment: Mapping[str, str], directory: Path) -> dict[str, str]:
    """`environment` with the hook, which is for all processes that the command starts; it takes itself off `sys.path`.

    >>> with_hook({"PYTHONPATH": "lib"}, Path("records"))["PYTHONPATH"].endswith("hook:lib")
    True
    """
    secret = os.environ.setdefault(SECRET, secrets.token_hex(16))  # this process is to understand what is sealed
    path = environment.get("PYTHONPATH")
    first = f"{HOOK}{os.pathsep}{path}" if path else str(HOOK)
    return {**environment, "PYTHONPATH": first, WATCH: str(directory.resolve()), SECRET: secret}
