"""Files that are there whole or not at all."""

from __future__ import annotations

import itertools
import os
import tempfile
from contextlib import suppress
from pathlib import Path

_UNFINISHED = "being-written-"


def write_whole(path: Path, content: bytes, *, anew: bool = False) -> None:
    """Write a file so that whoever looks sees nothing (or what was there) or all of it, also after a power cut.

    One that exists stays, and is an OSError, unless it is to be written `anew`.
    """
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=_prefix(path))
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644 & ~_umask())
        if anew:
            os.replace(name, path)
        else:
            os.link(name, path)
    finally:
        with suppress(FileNotFoundError):  # it has been moved
            os.unlink(name)
    _sync_directory(path.parent)


def remove_unfinished(path: Path, content: bytes) -> None:
    """Remove what processes left that were killed while they wrote this content to `path`.

    A name is not enough to call a file ours: only what begins as the content does goes.
    """
    for found in path.parent.iterdir():
        if found.name.startswith(_prefix(path)) and found.is_file() and not found.is_symlink():
            with found.open("rb") as file:
                begun = file.read(len(content) + 1)
            if content.startswith(begun):
                found.unlink()


def put_aside(path: Path) -> Path:
    """Another name for what `path` has, one that nothing has yet; a link to elsewhere is kept as such."""
    for number in itertools.count(1):
        aside = path.with_name(f"{path.stem}.edited-{number}{path.suffix}")
        try:
            os.link(path, aside, follow_symlinks=False)
        except FileExistsError:
            continue
        return aside
    raise AssertionError("there are more numbers")


def _prefix(path: Path) -> str:
    return f".{path.name}.{_UNFINISHED}"


def _sync_directory(directory: Path) -> None:
    """Have the name on the disk as well; not every file system can be asked to."""
    with suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
