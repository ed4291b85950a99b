"""Results that take long, kept in the cache directory under a hash of what they were made from."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from epsilometer.data.files import cache_directory
from epsilometer.data.untrusted_files import arrays
from epsilometer.errors import InvalidInput


def cached(
    name: str, key: str, compute: Callable[[], dict[str, NDArray[np.generic]]]
) -> dict[str, NDArray[np.generic]]:
    """What `compute` gives, from the cache if it is there and whole."""
    path = cache_directory() / name / f"{key[:32]}.npz"
    if path.is_file():
        with suppress(InvalidInput):  # damaged: made anew
            (fields,) = arrays(path, "fields")
            return dict(zip(fields.tolist(), arrays(path, *fields.tolist()), strict=True))
    result = compute()
    with suppress(OSError):  # a cache that cannot be written costs time, nothing else
        _write(path, result)
    return result


def _write(path: Path, result: dict[str, NDArray[np.generic]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as sink:
            np.savez(sink, fields=np.array(list(result)), **result)  # type: ignore[arg-type]
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)
