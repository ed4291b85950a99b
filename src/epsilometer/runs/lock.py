"""One driver at a time: a lock that the system gives back when its process ends, however it ends."""

from __future__ import annotations

import errno
import importlib.util
import os
import re
import socket
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from epsilometer.errors import InvalidInput
from epsilometer.runs.store import StoreError, now

fcntl: Any = importlib.import_module("fcntl") if importlib.util.find_spec("fcntl") else None  # none on Windows

_OURS = re.compile(rb"\0*\Z|process \d+ on ")  # zeros are what a power cut may leave
_PATIENCE, _PAUSE = 5.0, 0.02  # seconds: those who look with `is_held` do not keep a driver from starting


class DriverLock:
    """Held from its making to `release`. The file says who holds it."""

    def __init__(self, path: Path) -> None:
        if fcntl is None:
            raise InvalidInput("store", str(path), "a system with file locks (Linux, macOS)", "leave out --out")
        self.path = path
        while True:
            self._file = _opened(path)
            try:
                self._take()
                if self._is_at_its_path():
                    break
            except BaseException:
                os.close(self._file)
                raise
            os.close(self._file)  # whoever had it has just removed it
        with suppress(OSError):  # a full disk: the lock holds, though nobody can read by whom
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, f"process {os.getpid()} on {socket.gethostname()} (since {now()})".encode(), 0)

    def release(self, *, remove: bool = False) -> None:
        if remove:
            self.path.unlink(missing_ok=True)
        os.close(self._file)

    def _take(self) -> None:
        end = time.monotonic() + _PATIENCE
        try:
            while not _locked(self._file, fcntl.LOCK_EX):
                if not _locked(self._file, fcntl.LOCK_SH) or time.monotonic() > end:
                    raise self._held()
                fcntl.flock(self._file, fcntl.LOCK_UN)  # only looked at
                time.sleep(_PAUSE)
        except OSError as error:  # who is named in the file says nothing then: nobody can hold it
            expected = f"a file system with locks ({error.strerror})"
            raise InvalidInput("store", str(self.path), expected, "name a directory on a local disk") from None

    def _held(self) -> StoreError:
        holder = os.pread(self._file, 200, 0).decode(errors="replace").strip("\0") or "another process"
        return StoreError(
            f"{self.path.with_suffix('')} is being written to by {holder}: "
            "wait for it or stop it, or name another directory"
        )

    def _is_at_its_path(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._file), os.lstat(self.path))
        except FileNotFoundError:
            return False


def _locked(file: int, how: int) -> bool:
    """Whether the lock could be had at once."""
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_held(path: Path) -> bool:
    """Whether some process holds the lock, as far as can be told; looking does not get into anybody's way."""
    if fcntl is None:
        return False
    try:
        file = os.open(path, os.O_RDONLY | _CAREFULLY)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # no locks here
        return False
    finally:
        os.close(file)
    return False


# Never what a link points to, and without waiting for whoever may write into a pipe.
_CAREFULLY = 0 if fcntl is None else os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def _opened(path: Path) -> int:
    """The lock file, made if it does not exist; what is not ours is refused, since we would write into it."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | _CAREFULLY, 0o644)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise _not_ours(path) from None
        expected = f"a directory to write to ({error.strerror})"
        raise InvalidInput("store", str(path), expected, "check its permissions, and the room on the disk") from None
    if stat.S_ISREG(os.fstat(file).st_mode) and _OURS.match(os.pread(file, 200, 0)):
        return file
    os.close(file)
    raise _not_ours(path)


def _not_ours(path: Path) -> InvalidInput:
    expected = "a lock of Epsilometer's, not a link, or a file of another content"
    return InvalidInput("store", str(path), expected, "move it away, or name another directory")
