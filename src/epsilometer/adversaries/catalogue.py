"""Every adversary by name: ours, and those of installed packages (entry points `epsilometer.adversaries`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import metadata

from epsilometer.adversaries.game import Adversary
from epsilometer.errors import InvalidInput

GROUP = "epsilometer.adversaries"


class Catalogue(Mapping[str, type[Adversary]]):
    """Ours first; names of other packages are looked up when somebody asks for one that we do not have."""

    def __init__(self, own: Mapping[str, type[Adversary]]) -> None:
        self._own = dict(own)

    @property
    def own(self) -> Mapping[str, type[Adversary]]:
        return self._own

    def __getitem__(self, name: str) -> type[Adversary]:
        if name in self._own:
            return self._own[name]
        for entry in metadata.entry_points(group=GROUP, name=name):
            return _loaded(entry)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from (entry.name for entry in metadata.entry_points(group=GROUP) if entry.name not in self._own)

    def __len__(self) -> int:
        return len(list(iter(self)))


def _loaded(entry: metadata.EntryPoint) -> type[Adversary]:
    """The class; it must have the name that it was registered under."""
    try:
        found = entry.load()
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise InvalidInput("adversary", entry.name, f"a package that can be imported ({entry.value}: {why})") from None
    if not (isinstance(found, type) and issubclass(found, Adversary) and found.name == entry.name):
        expected = f"{entry.value} to be an Adversary whose name is {entry.name!r}"
        raise InvalidInput("adversary", entry.name, expected, "correct the package's entry point")
    return found
