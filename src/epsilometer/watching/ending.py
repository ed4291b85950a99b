"""What is to be done before a watched process ends; its exit code stays the script's."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable
from contextlib import suppress


def at_end(act: Callable[[], None]) -> None:
    """Also of a child of multiprocessing, which leaves without `atexit`; `act` may be called twice."""
    atexit.register(_quietly, act)
    if "multiprocessing.util" in sys.modules:
        from multiprocessing.util import Finalize

        Finalize(None, _quietly, args=(act,), exitpriority=0)


def _quietly(act: Callable[[], None]) -> None:
    with suppress(Exception):
        act()
