"""Ray on this machine, for one audit alone: it listens on loopback only, and wants a token that is kept nowhere.

Whoever reaches a Ray can run code as its user. Ray 2.60 gives its node the address of the network card even if asked
for 127.0.0.1; `RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0` is its way to ask for loopback, on any system. By itself it would
keep one token for all that the user starts, in the home directory, which may be read-only.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


@contextmanager
def private_ray(ray: Any) -> Iterator[None]:
    """What is started meanwhile is for this process and its children only; afterwards everything is as it was."""
    constants = ray._private.ray_constants
    reaches_out = constants.ENABLE_RAY_CLUSTER  # read from the environment when ray was imported
    settings = {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    }
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    constants.ENABLE_RAY_CLUSTER = False
    _read_again()
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = reaches_out
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        _read_again()


def _read_again() -> None:
    """Let Ray forget what it has read of the environment; older versions have no tokens, and read nothing."""
    with suppress(ImportError):
        from ray._raylet import AuthenticationTokenLoader, Config  # type: ignore[attr-defined]

        Config.initialize("")
        AuthenticationTokenLoader.instance().reset_cache()
