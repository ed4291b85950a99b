"""Kinds of subjects that a spec can name, one file each: its keys, how it is built, what it claims, who attacks it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import pydantic
from pydantic import PlainValidator, SerializeAsAny
from pydantic_core import PydanticCustomError

from epsilometer.auditing.kinds.callable import CALLABLE
from epsilometer.auditing.kinds.dp_sgd import DP_SGD, DpSgdSection
from epsilometer.auditing.kinds.kind import Loading, SubjectKind
from epsilometer.auditing.kinds.private_ridge import PRIVATE_RIDGE
from epsilometer.auditing.spec_sections import SubjectSection
from epsilometer.errors import InvalidInput
from epsilometer.registry import Registry, instance_of

SUBJECTS: Registry[SubjectKind] = Registry(
    "subjects",
    {kind.name: kind for kind in (DP_SGD, CALLABLE, PRIVATE_RIDGE)},
    argument="subject.name",
    expected="a SubjectKind whose name is {name!r}",
    accept=instance_of(SubjectKind),
)


def kind_of(given: Mapping[str, Any]) -> SubjectKind:
    """The kind that keys of [subject] are about: the one that is named, or known by one of them, or our own DP-SGD."""
    if given.get("name") is not None:
        return SUBJECTS.named(given["name"])
    return next((kind for kind in SUBJECTS.own.values() if given.get(kind.key) is not None), DP_SGD)


def keys_of_subjects(given: Any = None) -> dict[str, pydantic.fields.FieldInfo]:
    """The keys of [subject]: of the kind that is named there, or else of all kinds of our own."""
    if isinstance(given, Mapping) and given.get("name") is not None:
        return kind_of(given).section.model_fields
    return {key: field for kind in SUBJECTS.own.values() for key, field in kind.section.model_fields.items()}


def _section(given: Any) -> SubjectSection:
    """The section of its kind. Keys of another kind count for nothing where they say what is usual there: a template
    has the keys of all of them."""
    if not isinstance(given, Mapping):
        return _as_it_is(given)
    kind, others = kind_of(given), keys_of_subjects()
    foreign = {key: value for key, value in given.items() if key in others and key not in kind.section.model_fields}
    for key, value in foreign.items():
        if value != others[key].get_default(call_default_factory=True):
            raise _misplaced(kind, key, value)
    return kind.section.model_validate({key: value for key, value in given.items() if key not in foreign})


def _as_it_is(given: Any) -> SubjectSection:
    if not issubclass(type(given), SubjectSection):
        raise PydanticCustomError("model_type", "a section of keys")
    section: SubjectSection = given
    return section


def _misplaced(kind: SubjectKind, key: str, value: Any) -> InvalidInput:
    """A key that belongs to another kind: which of the two is meant?"""
    if kind.key == "name" and kind.has_keys:
        return InvalidInput(f"subject.{key}", value, "nothing beside subject.name", "remove one of the two")
    other = next(one for one in SUBJECTS.own.values() if key in one.section.model_fields)
    return InvalidInput(f"subject.{other.key}", None, *other.needed_for(key))


AnySubject = Annotated[SerializeAsAny[SubjectSection], PlainValidator(_section)]

__all__ = [
    "SUBJECTS",
    "AnySubject",
    "DpSgdSection",
    "SubjectSection",
    "Loading",
    "SubjectKind",
    "keys_of_subjects",
    "kind_of",
]
