"""Where the files of data sets lie, and how they get there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from epsilometer.data.download import Progress, Remote, fetch
from epsilometer.errors import InvalidInput

VARIABLE = "EPSILOMETER_DATA"


def cache_directory() -> Path:
    """Where downloads and results that take long are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "epsilometer"


@dataclass(frozen=True)
class Files:
    """Folders to search, and whether what is not there may be downloaded."""

    directory: Path | None = None
    download: bool = True
    progress: Progress | None = None

    def folders(self, name: str, *places: str) -> Iterator[Path]:
        """The folders that may hold a data set's files, first choice first; `places` are where packages put them.

        In every directory its own folder comes first: MNIST and Fashion-MNIST call their files the same.
        """
        given = [("data.directory", self.directory), (VARIABLE, os.environ.get(VARIABLE) or None)]
        for argument, value in given:
            if value is not None and not Path(value).is_dir():
                raise InvalidInput(argument, str(value), "an existing directory")
        bases = [Path(value) for _, value in given if value is not None]
        for base in [*bases, cache_directory()]:
            yield from (folder for folder in (base / name, base) if folder.is_dir())
        yield from (Path(place) for place in places if Path(place).is_dir())

    def first(self, name: str, *names: str) -> Path | None:
        """The first file that has one of these names."""
        found = (all_in_one_folder(folder, names) for folder in self.folders(name))
        return next((paths[0] for paths in found if paths), None)

    def get(self, name: str, remotes: Sequence[Remote]) -> list[Path]:
        """Files that were not found: downloaded into the cache."""
        folder = cache_directory() / name
        unsure = [remote for remote in remotes if not remote.checksum]
        if unsure or not self.download:
            wanted = " and ".join(remote.file for remote in remotes)
            why = "no checksum is published, so it is not downloaded: " if unsure else ""
            raise InvalidInput(
                "data.name", name, f"{wanted} in {folder} or in the directory that {VARIABLE} names",
                f"{why}get it from {' and '.join(remote.address for remote in remotes)}",
            )  # fmt: skip
        kept = (folder / remote.file for remote in remotes)
        return [
            path if path.is_file() else fetch(remote, folder, self.progress)
            for remote, path in zip(remotes, kept, strict=True)
        ]


def all_in_one_folder(folder: Path, *wanted: Sequence[str]) -> list[Path]:
    """Paths in one folder, one for each file wanted (each under any of its names); empty unless all are there."""
    paths = [next((folder / name for name in names if (folder / name).is_file()), None) for names in wanted]
    return [path for path in paths if path is not None] if None not in paths else []
