"""Specs of every kind as text: TOML, checked key by key; a mistake is one line that names the key."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, TypeVar

import pydantic

from epsilometer import validate
from epsilometer.auditing.spec_sections import Section
from epsilometer.errors import EpsilometerError, InvalidInput, unknown_name

AnySpec = TypeVar("AnySpec", bound=Section)


def parse_toml(text: str | bytes, source: str) -> dict[str, Any]:
    """The keys of a spec of any kind."""
    try:
        decoded = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        return tomllib.loads(decoded, parse_float=lambda number: validate.written(source, number))
    except UnicodeDecodeError:
        raise InvalidInput("SPEC", source, "a TOML file in UTF-8", "save it as UTF-8") from None
    except InvalidInput:
        raise
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits
        raise InvalidInput("SPEC", source, f"a TOML file ({error})", "docs/spec.md shows one") from None


def read_toml(path: Path) -> dict[str, Any]:
    """The keys of a spec of any kind, from a file."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInput("SPEC", str(path), f"a readable file ({error.strerror})") from None
    return parse_toml(content, path.name)


def validated(kind: type[AnySpec], values: dict[str, Any]) -> AnySpec:
    """The same for a spec of any kind."""
    try:
        return kind.model_validate(values)
    except pydantic.ValidationError as error:
        raise _explain(kind, error.errors()[0], values) from None


def _explain(kind: type[Section], error: Any, values: dict[str, Any]) -> EpsilometerError:
    """pydantic's first complaint as one of our lines."""
    if error["type"] == "value_error":  # of a validator of ours, whose words are better
        told: EpsilometerError = error["ctx"]["error"]
        return told
    path = [str(part) for part in error["loc"]]
    key = ".".join(path)
    if error["type"] == "extra_forbidden":
        unknown = unknown_name(
            key, path[-1], kind.keys_of(path[0], values.get(path[0])) if len(path) > 1 else kind.model_fields
        )
        # A key before all sections may have the name of an option, which would be blamed for it.
        name = key if len(path) > 1 or isinstance(error["input"], dict) else f"{key} (before all sections)"
        return InvalidInput(name, error["input"], unknown.expected, _elsewhere(kind, path[-1]) or unknown.remedy)
    if error["type"] == "missing":
        return InvalidInput(key, None, "a value", "add it")
    if error["type"] == "literal_error":
        valid = [name.strip("'\" ") for name in error["ctx"]["expected"].replace(" or ", ",").split(",")]
        return unknown_name(key, error["input"], valid)
    kinds = {
        "float_type": "a number",
        "int_type": "a whole number",
        "string_type": "a text in quotes",
        "list_type": "a list in brackets",
        "model_type": "a section of keys",
        "model_attributes_type": "a section of keys",
    }
    return InvalidInput(key, error["input"], kinds.get(error["type"], error["msg"]))


def _elsewhere(kind: type[Section], key: str) -> str:
    """Where a key belongs that stands in a section without it."""
    if key in kind.model_fields:
        return f"[{key}] is a section of its own"
    found = [f"[{name}]" for name in kind.model_fields if key in kind.keys_of(name)]
    return f"it belongs to {' or '.join(found)}" if found else ""
