"""Of which neighbouring data sets a promise speaks: in what they differ (the unit), and how (the relation).

An ε of records says nothing of users who have several, and one of adding and removing nothing of replacing: whatever
speaks of neighbours says both, and statements about different ones never meet silently.
"""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from epsilometer.errors import InvalidInput, NeighboursMismatch, unknown_name

RECORD = "record"
_WORD = re.compile(r"[^\W\d_][\w-]{0,29}")
_LEVEL = "-level "  # between unit and relation, as the field writes: user-level


class Relation(enum.StrEnum):
    """How the two worlds of a claim differ."""

    ADD_REMOVE = "add-remove"  # one world has a unit (a record, say) that the other lacks
    REPLACE = "replace"  # a unit has another value
    ZERO_OUT = "zero-out"  # a unit is replaced by one that contributes nothing

    @classmethod
    def of(cls, value: object) -> Relation:
        """The relation of that name.

        >>> Relation.of("replace")
        <Relation.REPLACE: 'replace'>
        """
        try:
            return cls(str(value))
        except ValueError:
            raise unknown_name("relation", value, [r.value for r in cls]) from None


@dataclass(frozen=True)
class Neighbours:
    """In what two neighbouring data sets differ: one unit, under a relation.

    A unit is a record, a user (with all that is theirs), or a word of the subject's own.

    >>> print(Neighbours())
    add-remove
    >>> print(Neighbours("user", Relation.REPLACE))
    user-level replace
    """

    unit: str = RECORD
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        object.__setattr__(self, "unit", as_unit(self.unit))
        object.__setattr__(self, "relation", Relation.of(self.relation))

    @classmethod
    def of(cls, value: AnyNeighbours, unit: str = RECORD) -> Neighbours:
        """Neighbours as given, or those of a relation, or of a text as `str` writes it; `unit` is of a bare relation.

        >>> Neighbours.of("user-level replace")
        Neighbours(unit='user', relation=<Relation.REPLACE: 'replace'>)
        >>> Neighbours.of(Relation.REPLACE, "user") == Neighbours.of("user-level replace")
        True
        """
        if isinstance(value, str):
            word, level, relation = value.rpartition(_LEVEL)
            if not level:
                return cls(unit, Relation.of(value))
            value = cls(word, Relation.of(relation))
        if not isinstance(value, Neighbours):
            raise unknown_name("relation", value, [r.value for r in Relation])
        if unit not in (RECORD, value.unit):
            raise InvalidInput("unit", unit, f"{value.unit!r}, which is said already", "say the unit once")
        return value

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> Neighbours:
        """As plain data say it; what is older than units speaks of records.

        >>> print(Neighbours.read({"epsilon": 1.0, "relation": "replace"}))
        replace
        """
        return cls(said.get("unit", RECORD), Relation.of(said["relation"]))

    def __str__(self) -> str:
        return self.relation.value if self.unit == RECORD else f"{self.unit}{_LEVEL}{self.relation}"

    def counted(self, size: int) -> str:
        """So many units in words.

        >>> Neighbours().counted(1), Neighbours("user").counted(2), Neighbours("party").counted(3)
        ('1 record', '2 users', '3 parties')
        """
        return f"{size} {self.unit if size == 1 else self.units}"

    def in_groups(self, size: int) -> str:
        """As results say it, of worlds that differ in so many units.

        >>> Neighbours().in_groups(1), Neighbours("user").in_groups(2)
        ('add-remove', 'user-level add-remove, groups of 2')
        """
        return f"{self}, groups of {size}" if size > 1 else str(self)

    @property
    def units(self) -> str:
        """The plural."""
        if re.search("[^aeiou]y$", self.unit):
            return f"{self.unit[:-1]}ies"
        return f"{self.unit}{'es' if re.search('(s|x|z|ch|sh)$', self.unit) else 's'}"

    def to_dict(self) -> dict[str, str]:
        """As plain data."""
        return {"relation": self.relation.value, "unit": self.unit}

    def identity(self) -> dict[str, str]:
        """The same as parts of what a plan is known by: plans that are older than units speak of records."""
        said = self.to_dict()
        if self.unit == RECORD:
            del said["unit"]
        return said


AnyNeighbours = Neighbours | Relation | str  # what `Neighbours.of` understands


class SpeaksOfNeighbours:
    """What is said under a `relation`, of a `unit`; the two together are its `neighbours`."""

    relation: Relation
    unit: str = RECORD

    @functools.cached_property
    def neighbours(self) -> Neighbours:
        return Neighbours(self.unit, self.relation)

    def __post_init__(self) -> None:
        self._settle_neighbours()

    def _settle_neighbours(self) -> None:
        """For `__post_init__`: where a relation is expected, names of relations and `Neighbours` do as well."""
        if type(self.relation) is Relation and self.unit == RECORD:
            said = _OF_RECORDS[self.relation]  # as nearly always, and thousands of times where audits are simulated
        else:
            said = Neighbours.of(self.relation, self.unit)
            object.__setattr__(self, "relation", said.relation)
            object.__setattr__(self, "unit", said.unit)
        object.__setattr__(self, "neighbours", said)


def as_unit(value: object, argument: str = "unit") -> str:
    """The word for what is protected as a whole, if it is one."""
    if isinstance(value, str) and _WORD.fullmatch(value) and value == value.lower():
        return value
    expected = "one word in lower case, of at most 30 letters, digits and hyphens"
    raise InvalidInput(argument, value, expected, "such as record, user, author")


_OF_RECORDS = {relation: Neighbours(RECORD, relation) for relation in Relation}


def require_same_neighbours(first: str, a: AnyNeighbours, second: str, b: AnyNeighbours) -> None:
    """Refuse to let statements about different neighbours meet: other units, or other relations."""
    one, other = Neighbours.of(a), Neighbours.of(b)
    if one.unit != other.unit:
        raise NeighboursMismatch(first, one.unit, second, other.unit, "unit")
    if one.relation is not other.relation:
        raise NeighboursMismatch(first, one.relation.value, second, other.relation.value)


def sensitivity(relation: Relation) -> float:
    """How far one unit can move a sum in which each is clipped, in clip norms."""
    return 2.0 if relation is Relation.REPLACE else 1.0
