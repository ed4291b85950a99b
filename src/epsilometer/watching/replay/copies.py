"""A private place for each run: its own copy of the working directory, caches, temporary files; no trackers."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from epsilometer.errors import InvalidInput

MOST = 2 << 30  # bytes of a working directory
_LINKS = 20_000  # files of a cache
_SHARED = (".git", ".hg", "node_modules")  # nothing that a training writes to
_OFFLINE = {
    "WANDB_MODE": "disabled", "COMET_MODE": "disabled", "COMET_AUTO_LOG_DISABLE": "1", "NEPTUNE_MODE": "debug",
    "CLEARML_OFFLINE_MODE": "1", "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1", "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
}  # fmt: skip


def private_place(root: Path, number: int, but: Path | None) -> Path:
    """For one run: what is in the working directory, but for one directory, and the runs' own places."""
    place = root / f"run-{number}"
    place.mkdir(mode=0o700)
    source = Path.cwd()
    apart = {one.resolve() for one in (root, but) if one is not None}
    if number == 0:
        _refuse_if_large(source, apart)
    _copy(source, place / "work", apart)
    (place / "tmp").mkdir()
    _link(_cache(), place / "cache", ("torch", "huggingface"))
    _link(Path.home() / "scikit_learn_data", place / "scikit_learn_data")
    return place


def environment(place: Path, hash_seed: int) -> dict[str, str]:
    """What differs from the user's."""
    cache = place / "cache"
    return {
        **_OFFLINE,
        "TMPDIR": str(place / "tmp"),
        "XDG_CACHE_HOME": str(cache),
        "TORCH_HOME": str(cache / "torch"),
        "HF_HOME": str(cache / "huggingface"),
        "SCIKIT_LEARN_DATA": str(place / "scikit_learn_data"),
        "WANDB_DIR": str(place / "tmp"),
        "MLFLOW_TRACKING_URI": (place / "tmp" / "mlruns").as_uri(),
        "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", str(hash_seed)),
        "PWD": str(place / "work"),
    }


def command_in(command: Sequence[str], place: Path, neighbour: int) -> list[str]:
    """The same command there; `{neighbour}` in a word is the number of the run's neighbour, 0 without one."""
    source = str(Path.cwd())
    found = []
    for word in command:
        inside = word == source or word.startswith(source + os.sep)
        moved = str(place / "work") + word[len(source) :] if inside else word
        found.append(moved.replace("{neighbour}", str(neighbour)))
    return found


def _refuse_if_large(source: Path, apart: Collection[Path]) -> None:
    total = 0
    for directory, folders, files in os.walk(source):
        own = Path(directory)
        folders[:] = [one for one in folders if not _shared(own / one) and (own / one).resolve() not in apart]
        for name in files:
            with suppress(FileNotFoundError):  # somebody else's, taken away meanwhile
                total += (own / name).lstat().st_size
        if total > MOST:
            expected = f"a working directory of {MOST >> 30} GB at most, of which each run gets a copy"
            raise InvalidInput("neighbours", str(source), expected, "start the command in a directory of its own")


def _copy(source: Path, target: Path, apart: Collection[Path]) -> None:
    target.mkdir(mode=0o700)
    for entry in sorted(source.iterdir()):
        if entry.resolve() in apart:
            continue
        if entry.is_symlink() or (entry.is_dir() and _shared(entry)):
            (target / entry.name).symlink_to(entry.resolve())
        elif entry.is_dir():
            _copy(entry, target / entry.name, apart)
        elif entry.is_file():
            with suppress(FileNotFoundError):
                shutil.copy2(entry, target / entry.name)


def _shared(entry: Path) -> bool:
    return entry.name in _SHARED or (entry / "pyvenv.cfg").exists()


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _link(source: Path, target: Path, only: Sequence[str] = ()) -> None:
    """Directories of our own, with links to files of another's: what is written there is written here."""
    target.mkdir(mode=0o700)
    number = 0
    for root in [source / name for name in only] if only else [source]:
        for directory, _, files in os.walk(root):
            place = target / Path(directory).relative_to(source)
            place.mkdir(parents=True, exist_ok=True)
            for name in files:
                number += 1
                if number > _LINKS:
                    return
                (place / name).symlink_to(Path(directory) / name)


def variables(given: Mapping[str, str], place: Path, hash_seed: int, runs: int) -> dict[str, str]:
    """The whole environment of one of so many runs, which share the processors: threads that wait for each other's
    threads would take several times as long."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {"OMP_NUM_THREADS": str(max(processors // runs, 1)), **given, **environment(place, hash_seed)}
