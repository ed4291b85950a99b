"""Everything that can be asked for by name, one table a socket: our own entries, and those of installed packages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from epsilometer.errors import EpsilometerError, InvalidInput, one_line, unknown_name

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")
D = TypeVar("D")
LONGEST = 300  # characters of what another package's code says of itself


class NotRegistered(InvalidInput, KeyError):
    """Nothing of that name can be used. A `KeyError` too, as tables raise."""

    __str__ = Exception.__str__  # a KeyError shows its argument as code

    def renamed(self, argument: str) -> NotRegistered:
        return NotRegistered(argument, self.value, self.expected, self.remedy)


class Registry(Mapping[str, T]):
    """The entries of one socket by name: `own` ones, given in code, and those that installed packages bring.

    A package brings an entry by an entry point of the group `epsilometer.<socket>`. These are looked for when somebody
    asks for a name that is not our own, or for all names, and never when a module is imported: so what a package does
    on import costs only those who ask for it. `accept(name, found)` makes an entry of what an entry point leads to, or
    gives None where that is not `expected`. An entry point that cannot be used (it cannot be imported, is something
    else, or shares its name) is left out of lists, stands in `problems`, and says why when it is asked for by name.
    Own entries win.

    >>> colours = Registry("colours", {"red": 1, "green": 2}, argument="colour", expected="a number")
    >>> colours["red"], list(colours), "blue" in colours
    (1, ['red', 'green'], False)
    >>> colours["gren"]
    Traceback (most recent call last):
    ...
    epsilometer.registry.NotRegistered: colour = 'gren': expected one of green, red; did you mean 'green'?
    """

    def __init__(
        self,
        socket: str,
        own: Mapping[str, T],
        *,
        argument: str,
        expected: str,
        accept: Callable[[str, Any], T | None] = lambda _, found: found,
    ) -> None:
        self.socket, self.argument, self.expected = socket, argument, expected
        self._own, self._accept = dict(own), accept
        self.own: Mapping[str, T] = MappingProxyType(self._own)  # given in code, and the same on every machine

    @property
    def group(self) -> str:
        """The group of entry points in which other packages' entries are."""
        return f"epsilometer.{self.socket}"

    @property
    def problems(self) -> tuple[str, ...]:
        """A line for each entry point that cannot be used, with the package that brings it."""
        _, lines = _entry_points(self.group)
        for name, points in self._brought().items():
            if name in self._own:
                expected = f"a name that is not taken: Epsilometer's own is used, not that of {_packages(points)}"
                lines.append(str(NotRegistered(self.argument, name, expected, "rename it there")))
                continue
            try:
                self._loaded(name, points)
            except NotRegistered as error:
                lines.append(str(error))
        return tuple(lines)

    def register(self, name: str, entry: T) -> None:
        """One more entry of our own, by code that may not be imported where the others are."""
        if self._own.setdefault(name, entry) is not entry:
            raise EpsilometerError(f"{self.argument} {name!r} is registered already")

    def named(
        self,
        name: object,
        argument: str | None = None,
        *,
        where: Callable[[T], bool] = lambda _: True,
        also: Sequence[str] = (),
    ) -> T:
        """The entry of that name, if it is one of those `where` this holds; otherwise an error that tells these.

        `argument` is what the user calls the name, if not what the registry does; `also` are words that the user may
        say beside names, such as "all".
        """
        try:
            entry = self._found(name)
            if where(entry):
                return entry
        except NotRegistered as error:
            raise error.renamed(argument or self.argument) from None
        except KeyError:
            pass
        able = [one for one, entry in self.items() if where(entry)]
        told = unknown_name(argument or self.argument, name, [*able, *also])
        raise NotRegistered(told.argument, told.value, told.expected, told.remedy)

    def origin(self, name: str) -> str:
        """The package that brings the entry, with its version; "" for our own."""
        return "" if name in self._own else _packages(self._brought().get(name, []))

    def __getitem__(self, name: str) -> T:
        return self.named(name)

    def __contains__(self, name: object) -> bool:
        try:
            self._found(name)
        except KeyError:
            return False
        return True

    @overload
    def get(self, name: str, /) -> T | None: ...
    @overload
    def get(self, name: str, /, default: T | D) -> T | D: ...
    def get(self, name: str, /, default: Any = None) -> Any:
        try:
            return self._found(name)
        except KeyError:
            return default

    def __iter__(self) -> Iterator[str]:
        yield from tuple(self._own)
        yield from (name for name in self._brought() if name not in self._own and name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"Registry({self.socket}: {', '.join(self._own)}, and those of {self.group})"

    def _found(self, name: object) -> T:
        """The entry; a bare `KeyError` where nobody has the name, a `NotRegistered` where it cannot be used."""
        if not isinstance(name, str):
            raise KeyError(name)
        return self._own[name] if name in self._own else self._loaded(name, self._brought()[name])

    def _brought(self) -> dict[str, list[EntryPoint]]:
        """Entry points of the group by name. Looking for them imports nothing of these packages."""
        found: dict[str, list[EntryPoint]] = {}
        for point in _entry_points(self.group)[0]:
            same = found.setdefault(point.name, [])
            if all(point.value != other.value for other in same):  # a package may be found in two places
                same.append(point)
        return found

    def _loaded(self, name: str, points: list[EntryPoint]) -> T:
        point, *others = points
        if others:
            expected = f"one package that brings it, not {_packages(points)}"
            raise NotRegistered(self.argument, name, expected, "uninstall all but one")
        try:
            entry = self._accept(name, point.load())
        except (Exception, SystemExit) as error:
            expected = f"a package that can be imported ({point.value} of {_packages(points)}: {_why(error)})"
            raise NotRegistered(self.argument, name, expected) from None
        if entry is None:
            expected = f"{point.value} of {_packages(points)} to be {self.expected.format(name=name)}"
            raise NotRegistered(self.argument, name, expected, "correct the package's entry point")
        return entry


def instance_of(kind: type[T]) -> Callable[[str, Any], T | None]:
    """Accepts objects of a class; where these have a name, it is that of the entry point.

    >>> instance_of(int)("seven", 7), instance_of(int)("seven", "7")
    (7, None)
    """
    return lambda name, found: found if isinstance(found, kind) and getattr(found, "name", name) == name else None


def _entry_points(group: str) -> tuple[list[EntryPoint], list[str]]:
    """Those of a group, and a line for each package whose entry points cannot be read at all."""
    from importlib import metadata

    with suppress(Exception):
        return list(metadata.entry_points(group=group)), []
    found: list[EntryPoint] = []  # one package's file is damaged, which must not hide the others
    damaged = []
    for one in metadata.distributions():
        try:
            found += one.entry_points.select(group=group)
        except Exception as error:
            damaged.append(f"the entry points of {_package(one)} cannot be read ({_why(error)})")
    return found, damaged


def _why(error: BaseException) -> str:
    return one_line(f"{type(error).__name__}: {error}", LONGEST)


def _packages(points: list[EntryPoint]) -> str:
    return " and ".join(_package(point.dist) for point in points)


def _package(distribution: Any) -> str:
    """Name and version, as far as they can be read."""
    try:
        return one_line(f"{distribution.name} {distribution.version}")
    except Exception:
        return "a package without a name"
