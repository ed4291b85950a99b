"""Functions that numba compiles, kept between processes only where nobody else can write.

What numba keeps is pickle: whoever can put a file there can run code here. So a directory is used only if it belongs to
this user and to nobody else; without one (a container that is read-only, say) functions are compiled in every process.
What was kept and cannot be read, because a disk was full or a process killed, is compiled anew as well.
"""

from __future__ import annotations

import functools
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba

NAME = "epsilometer"
_CONFIG: Any = numba.config
inline = numba.njit(forceinline=True, error_model="numpy")  # for parts of kernels: else loops would not vectorise


def kernel(function: Callable[..., Any]) -> Any:
    """The function, compiled when it is first called, or taken from what an earlier process has kept."""
    compiled = functools.partial(numba.njit, error_model="numpy", nogil=True)
    directory = cache_directory()
    if directory is None:
        return compiled()(function)
    before = _CONFIG.CACHE_DIR
    _CONFIG.CACHE_DIR = str(directory)  # of this function only: numba looks there when it decorates
    try:
        dispatcher: Any = compiled(cache=True)(function)
    except (OSError, RuntimeError):  # it could not write there after all
        return compiled()(function)
    finally:
        _CONFIG.CACHE_DIR = before
    _watch_all_sources(dispatcher._cache)
    _forgive(dispatcher._cache)
    return dispatcher


@functools.cache
def _sources() -> tuple[tuple[str, int, int], ...]:
    found = ((path.name, path.stat()) for path in sorted(Path(__file__).parent.glob("*.py")))
    return tuple((name, status.st_mtime_ns, status.st_size) for name, status in found)


def _watch_all_sources(cache: Any) -> None:
    """Numba looks at the file of a kernel only; what is inlined into it may be in another one of this package."""
    file = cache._cache_file
    file._source_stamp = file._source_stamp, _sources()


@functools.cache
def cache_directory() -> Path | None:
    """The first place for compiled code that is this user's alone; none if there is no such place."""
    return next((path for path in _candidates() if _is_ours_alone(path)), None)


def _candidates() -> Iterator[Path]:
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):  # whoever chooses a place wants no other
        yield Path(chosen)
        return
    yield Path(__file__).parent / "__pycache__"
    base = os.environ.get("XDG_CACHE_HOME")
    with suppress(RuntimeError):  # no home
        yield (Path(base) if base else Path.home() / ".cache") / NAME


def _is_ours_alone(directory: Path) -> bool:
    """Whether it is a directory of this user's, made if need be, into which only this user can write."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = directory.lstat()
    except OSError:
        return False
    if not (stat.S_ISDIR(found.st_mode) and os.access(directory, os.W_OK | os.X_OK)):
        return False
    return not hasattr(os, "geteuid") or (found.st_uid == os.geteuid() and not found.st_mode & 0o022)


def _forgive(cache: Any) -> None:
    """Damaged or unwritable files are no reason to fail: what they hold can be compiled again."""
    load, save = cache.load_overload, cache.save_overload

    def load_if_sound(*arguments: Any) -> Any:
        try:
            return load(*arguments)
        except Exception:  # whatever broken pickle may raise
            with suppress(Exception):
                cache.flush()  # else its index would be read again when results are saved
            return None

    def save_if_possible(*arguments: Any) -> None:
        with suppress(Exception):
            save(*arguments)

    cache.load_overload, cache.save_overload = load_if_sound, save_if_possible
