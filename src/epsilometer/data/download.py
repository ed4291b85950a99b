"""Files from their official addresses: kept only if their checksum is the published one."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from epsilometer.errors import InvalidInput

Progress = Callable[[str, int, int | None], None]
"""Called with the file's name, the bytes that have come, and the bytes to come in all (None: not known)."""

_CHUNK = 1 << 20
LARGEST_DOWNLOAD = 1 << 30  # bytes; no file here has half of it


@dataclass(frozen=True)
class Remote:
    """A file, where it is published, and its checksum: "md5:…", "sha256:…", or "git:…" for its id as a git blob.

    A file without a checksum is never downloaded; its address is for people.
    """

    file: str
    address: str
    checksum: str = ""


def fetch(remote: Remote, folder: Path, progress: Progress | None = None, timeout: float = 30.0) -> Path:
    """Download a file into `folder`; what is broken or false leaves no trace."""
    remedy = f"put it in {folder}, from {remote.address}, or say where it lies: --data-dir or EPSILOMETER_DATA"
    target = folder / remote.file
    temporary: Path | None = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # a name of its own: two processes may want the same file at once
        handle, path = tempfile.mkstemp(prefix=f"{remote.file}.", suffix=".part", dir=folder)
        temporary = Path(path)
        with os.fdopen(handle, "wb") as sink:
            _receive(remote, sink, progress, timeout)
        found = checksum(temporary, remote.checksum.partition(":")[0])
        if found != remote.checksum:
            raise InvalidInput("download", remote.file, f"{remote.checksum}, got {found}", remedy)
        temporary.replace(target)
    except OSError as error:
        cause = getattr(error, "reason", None)  # urllib wraps errors of the network
        reason = " ".join(str(cause if isinstance(cause, OSError) else error).split())
        raise InvalidInput("download", remote.file, f"a complete file ({reason})", remedy) from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
    return target


def checksum(path: Path, kind: str) -> str:
    """The file's checksum of that kind, with the kind in front."""
    digest = hashlib.new("sha1" if kind == "git" else kind, usedforsecurity=False)
    if kind == "git":
        digest.update(b"blob %d\0" % path.stat().st_size)
    with path.open("rb") as source:
        while chunk := source.read(_CHUNK):
            digest.update(chunk)
    return f"{kind}:{digest.hexdigest()}"


def _receive(remote: Remote, sink: IO[bytes], progress: Progress | None, timeout: float) -> None:
    import http.client
    import urllib.error
    import urllib.request  # takes longer to import than all of this room

    try:
        with urllib.request.urlopen(remote.address, timeout=timeout) as answer:
            length = answer.headers.get("Content-Length", "")
            total, done = int(length) if length.isdigit() else None, 0
            while chunk := answer.read(_CHUNK):
                sink.write(chunk)
                done += len(chunk)
                if done > LARGEST_DOWNLOAD:
                    raise OSError(f"more than {LARGEST_DOWNLOAD:,} bytes")
                if progress is not None:
                    progress(remote.file, done, total)
    except urllib.error.HTTPError as error:
        error.close()  # it holds the connection
        raise
    except http.client.HTTPException as error:
        raise OSError(f"{type(error).__name__}: {error}") from None
    if total is not None and done != total:
        raise OSError(f"broke off after {done:,} of {total:,} bytes")
