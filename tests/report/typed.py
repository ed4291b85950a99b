"""Holds plain data to a type: every field there, no other, and each of its type."""

from __future__ import annotations

import types
from typing import Annotated, Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict


def mistakes(value: Any, hint: Any, where: str = "document") -> list[str]:
    """In which places a value is not what its type says.

    >>> mistakes({"a": [1, "x"]}, dict[str, list[int]])
    ["document.a[1]: 'x' is no int"]
    """
    if hint is Any:
        return []
    if is_typeddict(hint):
        return _fields(value, hint, where)
    return _BY_ORIGIN.get(get_origin(hint), _plain)(value, hint, where)


def _plain(value: Any, hint: Any, where: str) -> list[str]:
    kinds = (int, float) if hint is float else hint
    right = isinstance(value, kinds) and (hint is bool or not isinstance(value, bool))
    return [] if right else [f"{where}: {value!r} is no {hint.__name__}"]


def _inner(value: Any, hint: Any, where: str) -> list[str]:
    return mistakes(value, get_args(hint)[0], where)


def _one_of_types(value: Any, hint: Any, where: str) -> list[str]:
    if value is None and types.NoneType in get_args(hint):
        return []
    arms = [arm for arm in get_args(hint) if arm is not types.NoneType]
    found = [mistakes(value, arm, where) for arm in arms]
    return [] if [] in found else found[0]


def _one_of_values(value: Any, hint: Any, where: str) -> list[str]:
    return [] if value in get_args(hint) else [f"{where}: {value!r} is none of {get_args(hint)}"]


def _each(value: Any, hint: Any, where: str) -> list[str]:
    if not isinstance(value, list):
        return [f"{where}: {value!r} is no list"]
    (kind,) = get_args(hint)
    return [line for place, one in enumerate(value) for line in mistakes(one, kind, f"{where}[{place}]")]


def _each_value(value: Any, hint: Any, where: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{where}: {value!r} is no object"]
    return [line for key, one in value.items() for line in mistakes(one, get_args(hint)[1], f"{where}.{key}")]


def _fields(value: Any, hint: Any, where: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{where}: {value!r} is no object"]
    hints = get_type_hints(hint, include_extras=True)
    needed = {key for key, one in hints.items() if get_origin(one) is not NotRequired} - hint.__optional_keys__
    found = [f"{where}.{key}: is missing" for key in sorted(needed - value.keys())]
    found += [f"{where}.{key}: is no field of {hint.__name__}" for key in value.keys() - hints]
    return found + [
        line for key in value if key in hints for line in mistakes(value[key], hints[key], f"{where}.{key}")
    ]


_BY_ORIGIN = {
    Annotated: _inner,
    NotRequired: _inner,
    Union: _one_of_types,
    types.UnionType: _one_of_types,
    Literal: _one_of_values,
    list: _each,
    dict: _each_value,
}
