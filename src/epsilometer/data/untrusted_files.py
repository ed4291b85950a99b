"""Reading files that may be broken or hostile: in memory, without pickles, with errors that name the file."""

from __future__ import annotations

import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.data.unpacking import LARGEST_FILE, BoundedGzip, gunzip, require_size, require_small_members
from epsilometer.errors import InvalidInput

_GZIP = b"\x1f\x8b"

# What numpy, zipfile and tarfile raise on files that somebody broke with care.
FAILURES = (
    OSError, EOFError, ValueError, KeyError, TypeError, IndexError, OverflowError, RuntimeError, MemoryError,
    zlib.error, tarfile.TarError, zipfile.BadZipFile,
)  # fmt: skip


@contextmanager
def reading(path: Path, expected: str) -> Iterator[None]:
    """Whatever goes wrong while a file is read is said in one line: which file, and what it should be."""
    try:
        yield
    except InvalidInput:
        raise
    except FAILURES as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise broken(path, expected, reason) from None


def broken(path: Path, expected: str, reason: str) -> InvalidInput:
    """The error for a file whose contents are not what its name says."""
    return InvalidInput("data file", str(path), f"{expected} ({reason})", "get the file again")


def contents(path: Path) -> bytes:
    """A file's bytes, unpacked if it is gzipped."""
    with reading(path, "a readable file"):
        return gunzip(path) if _is_gzipped(path) else path.read_bytes()


def arrays(path: Path, *fields: str) -> list[NDArray[Any]]:
    """Arrays of an npz file; never unpickled."""
    with (
        reading(path, f"an npz file with {', '.join(fields)}"),
        path.open("rb") as file,  # numpy leaves broken ones open
        np.load(file, allow_pickle=False) as stored,
    ):
        require_small_members(path, [name for field in fields for name in (field, f"{field}.npy")])
        found = {field: stored[field] for field in fields}
        for field, values in found.items():
            if not isinstance(values, np.ndarray):  # numpy gives the bytes of what is no array
                raise ValueError(f"{field} is no array")
        return list(found.values())


def fields_of(path: Path) -> list[str]:
    """The names of the arrays in an npz file."""
    with reading(path, "an npz file"), path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        if not hasattr(stored, "files"):
            raise ValueError("it is a single array")
        return list(stored.files)


@contextmanager
def members(path: Path, *names: str) -> Iterator[Iterator[tuple[str, IO[bytes]]]]:
    """Files of a tar archive as streams, in the archive's order; each may lie in any of its folders.

    Nothing is extracted, so no path in the archive matters.
    """

    def streams(archive: tarfile.TarFile) -> Iterator[tuple[str, IO[bytes]]]:
        missing = set(names)
        for info in archive:
            name = next((name for name in missing if f"/{info.name}".endswith(f"/{name}")), None)
            stream = archive.extractfile(info) if name and info.isfile() else None
            if name and stream:
                require_size(info.size, LARGEST_FILE)
                missing.remove(name)
                yield name, stream
        if missing:
            raise KeyError(f"no {', '.join(sorted(missing))} in it")

    with (
        reading(path, f"an archive with {', '.join(names)}"),
        BoundedGzip(path) if _is_gzipped(path) else path.open("rb") as packed,
        tarfile.open(fileobj=packed, mode="r:") as archive,
    ):
        yield streams(archive)


def _is_gzipped(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == _GZIP
