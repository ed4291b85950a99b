"""Options that several commands share: fields of a frozen object, written down once, and handed over as that object."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from epsilometer.errors import InvalidInput

Result = TypeVar("Result")


class Only(tuple[str, ...]):
    """Beside a group in `Annotated`: the options of it that a command has. Others keep their defaults."""

    __slots__ = ()

    def __new__(cls, *names: str) -> Only:
        return super().__new__(cls, names)


@dataclasses.dataclass(frozen=True)
class Key:
    """Beside an option in `Annotated`: the key of a spec that it sets, and its name if that is not the field's."""

    section: str
    name: str
    option: str = ""


@dataclasses.dataclass(frozen=True)
class Said:
    """What an option says of a key; none if it was left out."""

    section: str
    name: str
    option: str
    value: Any

    @property
    def key(self) -> str:
        """As errors of a spec call it."""
        return f"{self.section}.{self.name}"


def grouped(command: Callable[..., Result]) -> Callable[..., Result]:
    """The command with one option for every field of its groups: parameters whose type is a dataclass.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Pace:
    ...     steps: int = 1
    ...     rest: float = 0.5
    >>> @grouped
    ... def walk(name: str, *, pace: Annotated[Pace, Only("steps")]) -> str:
    ...     return f"{name}: {pace}"
    >>> str(inspect.signature(walk))
    '(name: str, *, steps: int = 1) -> str'
    >>> walk(name="Ada", steps=3)
    'Ada: Pace(steps=3, rest=0.5)'
    """
    hints = get_type_hints(command, include_extras=True)
    result = hints.pop("return", None)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[type, list[str]]] = {}
    for parameter in inspect.signature(command).parameters.values():
        hint = hints[parameter.name]
        group = get_args(hint)[0] if get_origin(hint) is Annotated else hint
        if not dataclasses.is_dataclass(group):
            parameters.append(parameter.replace(annotation=hint))
            continue
        assert isinstance(group, type)
        options = _options(group, hint)
        groups[parameter.name] = group, [option.name for option in options]
        parameters += options

    @functools.wraps(command)
    def called(**given: Any) -> Result:
        made = {name: group(**{key: given.pop(key) for key in keys}) for name, (group, keys) in groups.items()}
        return command(**given, **made)

    called.__signature__ = inspect.Signature(parameters, return_annotation=result)  # type: ignore[attr-defined]
    called.__annotations__ = {one.name: one.annotation for one in parameters} | {"return": result}
    return called


def _options(group: type, hint: Any) -> list[inspect.Parameter]:
    """A group's fields as parameters: all of them, or those that a command has."""
    only = next((extra for extra in get_args(hint) if isinstance(extra, Only)), None)
    hints = get_type_hints(group, include_extras=True)
    fields = {field.name: field for field in dataclasses.fields(group)}
    return [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=fields[name].default, annotation=hints[name]
        )
        for name in (fields if only is None else only)
    ]  # fmt: skip


def said(group: Any) -> list[Said]:
    """What a group's options say of the keys of a spec, one for each option that has a key."""
    found = []
    for name, hint in get_type_hints(type(group), include_extras=True).items():
        key = next((extra for extra in get_args(hint) if isinstance(extra, Key)), None)
        if key is not None:
            option = key.option or f"--{name.replace('_', '-')}"
            value = getattr(group, name)
            unsaid = value is None or value == []  # how typer has an option that may be given several times
            found.append(Said(key.section, key.name, option, None if unsaid else value))
    return found


def put(values: dict[str, Any], options: list[Said]) -> dict[str, str]:
    """Let options win over what a spec says (`values` is changed); gives the options' names by key."""
    names = {}
    for one in options:
        if one.value is not None:
            plain = str(one.value) if isinstance(one.value, Path) else one.value
            values.setdefault(one.section, {})[one.name] = plain
            names[one.key] = one.option
    return names


def as_user_wrote(error: InvalidInput, names: dict[str, str]) -> InvalidInput:
    """The error, with the option in place of the key or argument that it set."""
    return error.renamed(names[error.argument]) if error.argument in names else error
