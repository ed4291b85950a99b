"""How much may come out of an archive: a few kilobytes can unpack to more than any memory holds."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Iterable
from pathlib import Path

LARGEST_FILE = 1 << 30  # bytes; the largest file of a data set here, Texas-100's features, has 0.8 of it
LARGEST_ARCHIVE = 4 << 30  # bytes of all that has to be unpacked to find the files wanted
_CHUNK = 1 << 20


class TooLarge(ValueError):
    """An archive unpacks to more than any data set has."""

    def __init__(self, most: int) -> None:
        super().__init__(f"it unpacks to more than {most:,} bytes")


class BoundedGzip(gzip.GzipFile):
    """A gzipped file of which no more than `LARGEST_ARCHIVE` is unpacked, nor a large part of it at once."""

    def read(self, size: int | None = -1) -> bytes:
        require_size(size or 0, LARGEST_FILE)
        data = super().read(size)
        require_size(self.tell(), LARGEST_ARCHIVE)
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        require_size(offset, LARGEST_ARCHIVE)  # what is skipped has to be unpacked as well
        return super().seek(offset, whence)


def require_size(size: int, most: int) -> None:
    if size > most:
        raise TooLarge(most)


def gunzip(path: Path) -> bytes:
    """All of a gzipped file."""
    chunks, size = [], 0
    with gzip.open(path) as source:
        while chunk := source.read(_CHUNK):
            size += len(chunk)
            require_size(size, LARGEST_FILE)
            chunks.append(chunk)
    return b"".join(chunks)


def require_small_members(path: Path, names: Iterable[str]) -> None:
    """Of a zip archive, by what it says of them: its reader never gives more."""
    wanted = set(names)
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if info.filename in wanted:
                require_size(info.file_size, LARGEST_FILE)
