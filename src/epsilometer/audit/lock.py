"""One driver at a time: a lock that the system gives back when its process ends, however it ends."""

from __future__ import annotations

import importlib.util
import os
import socket
from pathlib import Path
from typing import Any

from epsilometer.audit.store import StoreError, now
from epsilometer.errors import InvalidInput

fcntl: Any = importlib.import_module("fcntl") if importlib.util.find_spec("fcntl") else None  # none on Windows


class DriverLock:
    """Held from its making to `release`. The file says who holds it."""

    def __init__(self, path: Path) -> None:
        if fcntl is None:
            raise InvalidInput("store", str(path), "a system with file locks (Linux, macOS)", "leave out --out")
        self.path = path
        while True:
            try:
                self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            except OSError as error:
                expected = f"a directory to write to ({error.strerror})"
                raise InvalidInput("store", str(path), expected, "check its permissions") from None
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(self._file)
                raise StoreError(
                    f"{path.with_suffix('')} is being written to by {_holder(path)}: "
                    "wait for it or stop it, or name another directory"
                ) from None
            if self._is_at_its_path():
                break
            os.close(self._file)  # whoever had it has just removed it
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"process {os.getpid()} on {socket.gethostname()} (since {now()})".encode(), 0)

    def release(self, *, remove: bool = False) -> None:
        if remove:
            self.path.unlink(missing_ok=True)
        os.close(self._file)

    def _is_at_its_path(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._file), os.stat(self.path))
        except FileNotFoundError:
            return False


def is_held(path: Path) -> bool:
    """Whether some process holds the lock; looking does not get into anybody's way."""
    if fcntl is None:
        return False
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    return False


def _holder(path: Path) -> str:
    try:
        return path.read_text() or "another process"
    except OSError:
        return "another process"
