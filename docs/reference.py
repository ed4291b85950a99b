"""The reference, made from the code: `commands.md` and `results.md`, which are kept in the repository, and a page a
namespace, made by conf.py.

python docs/reference.py     # writes commands.md and results.md again
"""

from __future__ import annotations

import enum
import importlib
import inspect
import json
import re
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType, NoneType, UnionType
from typing import Any

import epsilometer

HERE = Path(__file__).parent
LINE = 100
_WORDS = {int: "integer", float: "number", str: "text", Path: "path"}


def commands() -> str:
    """Every command with its arguments, options and examples, as the program itself has them."""
    import typer

    from epsilometer.cli.app import program

    root: Any = typer.main.get_command(program())
    parts = [
        "# Commands\n\nEvery command and every option. `epsilometer COMMAND --help` says the same on a terminal.\n"
        "Options may come in any order; those of `watch` and `inspect` come before `--`.\n",
        "<!-- made by: python docs/reference.py -->\n",
        "## epsilometer\n",
        f"{_words(root.help)}\n",
        _table(("Option", "What it does"), [row for param in root.params if (row := _option(param, {})) is not None]),
    ]
    for name, command in root.commands.items():
        hints = typing.get_type_hints(command.callback)
        given = [param for param in command.params if not param.opts[0].startswith("-")]
        options = [row for param in command.params if (row := _option(param, hints)) is not None]
        usage = " ".join(
            [name, *(param.metavar or param.name.upper() for param in given), "[OPTIONS]" if options else ""]
        )
        parts += [
            f"## epsilometer {name}\n",
            f"```text\nepsilometer {usage.strip()}\n```\n",
            f"{_words(command.help)}\n",
        ]
        rows = [(_cell(f"`{param.metavar or param.name.upper()}`"), _cell(param.help or "")) for param in given]
        parts += [_table(("Argument", "What it is"), rows), _table(("Option", "What it does"), options)]
    return "\n".join(part for part in parts if part)


def _option(param: Any, hints: Mapping[str, Any]) -> tuple[str, str] | None:
    if not param.opts[0].startswith("-") or getattr(param, "hidden", False):
        return None
    names = ", ".join(f"`{name}`" for name in [*param.opts, *param.secondary_opts])
    value = "" if param.is_flag else f" {param.metavar or _type(hints.get(param.name, str))}"
    many = (
        ", may be given several times"
        if getattr(param, "multiple", False) and "several times" not in param.help
        else ""
    )
    shown = not param.is_flag and param.default not in (None, "", ()) and not callable(param.default)
    default = getattr(param.default, "value", param.default)
    return f"{names}{value}", _cell(f"{param.help or ''}{many}{f' Default: {default}.' if shown else ''}")


def _type(hint: Any) -> str:
    """A word for what an option takes."""
    arms = [arm for arm in typing.get_args(hint) if arm is not NoneType]
    if typing.get_origin(hint) in (UnionType, typing.Union):
        return _type(arms[0])
    if typing.get_origin(hint) in (list, tuple):
        return " ".join(_type(arm) for arm in arms if arm is not ...)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return " or ".join(f"`{member.value}`" for member in hint)
    return _WORDS.get(hint, "text")


def _table(head: tuple[str, str], rows: list[tuple[str, str]]) -> str:
    if not rows:
        return ""
    return (
        "\n".join(["| " + " | ".join(head) + " |", "|---|---|", *(f"| {left} | {right} |" for left, right in rows)])
        + "\n"
    )


def _words(text: str | None) -> str:
    return inspect.cleandoc(text or "").replace("\n\n- ", "\n- ").replace("Examples:\n- ", "Examples:\n\n- ")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


RESULTS = """# Results for programs

With `--out DIR` a command writes its result as JSON: `result.json`, of `coverage` `calibration.json`. Its `kind` says
which of the following it is. These fields, with these types and meanings, are what a program may rely on: tests hold
real results of every kind to this page. Within a `schema` fields may be added, but none goes or changes its meaning.
Objects without a type here (`plan`, `figures`, settings) say what a run was made of; their keys are those of the
version that wrote them. Numbers that JSON has not are the texts `"inf"`, `"-inf"` and `"nan"`.

`--json` of `audit`, `mechanism`, `membership`, `instances`, `property` and `reconstruct` prints the same (of `audit`,
`mechanism` and `instances` without `command`; `instances --against` with one field more, `against`).
"""


def results() -> str:
    """Every kind of result with its fields, as their types have them."""
    from epsilometer.report.documents import DOCUMENTS

    parts: dict[str, type] = {}
    sections = [_document(f"## {kind}", one, parts) for kind, one in DOCUMENTS.items()]
    later = []
    while len(later) < len(parts):  # a part may have parts
        name, one = list(parts.items())[len(later)]
        later.append(_document(f"### {name}", one, parts))
    note = "<!-- made by: python docs/reference.py -->\n"
    return "\n".join([RESULTS, note, *sections, "## Parts\n", *later])


def _document(heading: str, one: Any, parts: dict[str, type]) -> str:
    optional, rows = one.__optional_keys__, []
    for name, hint in typing.get_type_hints(one, include_extras=True).items():
        left_out = typing.get_origin(hint) is typing.NotRequired
        kind = typing.get_args(hint)[0] if left_out else hint
        missing = ", may be missing" * (left_out or name in optional)
        rows.append((f"`{name}`", f"{_kind(kind.__origin__, parts)}{missing}", _cell(kind.__metadata__[-1])))
    table = "\n".join(f"| {' | '.join(row)} |" for row in [("field", "type", "meaning"), ("---",) * 3, *rows])
    return f"{heading}\n\n{_first(one)}\n\n{table}\n"


def _kind(hint: Any, parts: dict[str, type]) -> str:
    """A type in words, with a link to the part that it names."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if typing.is_typeddict(hint):
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", hint.__name__.removesuffix("Part")).lower()
        parts.setdefault(name, hint)
        return f"[{name}](#{name.replace(' ', '-')})"
    if origin is typing.Literal:
        return " or ".join(f"`{json.dumps(value)}`" for value in inner)
    if origin in (UnionType, typing.Union):
        return " or ".join(dict.fromkeys(_kind(arm, parts) for arm in inner))
    if origin is list:
        return f"list of {_kind(inner[0], parts)}"
    if origin is dict:
        return "object" if inner[1] is Any else f"object of {_kind(inner[1], parts)}"
    return {NoneType: "null", bool: "true or false"}.get(hint) or _WORDS[hint]


def namespaces() -> dict[str, ModuleType]:
    """`epsilometer` itself and every namespace that it names."""
    rooms = [name for name in epsilometer.__all__ if inspect.ismodule(getattr(epsilometer, name))]
    return {"epsilometer": epsilometer} | {
        f"epsilometer.{name}": importlib.import_module(f"epsilometer.{name}") for name in sorted(rooms)
    }


def public_names(module: ModuleType) -> list[str]:
    """`__all__`, or where there is none, whatever is defined in the module without an underscore; no modules."""
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]
    return sorted((name for name in names if not inspect.ismodule(getattr(module, name))), key=lambda n: (n.lower(), n))


def api_pages() -> dict[str, str]:
    """File name → Markdown: one page for each namespace, and the list of them."""
    found = namespaces()
    pages = {f"{name}.md": _page(name, module) for name, module in found.items()}
    listed = "\n".join(f"| [`{name}`]({name}.md) | {_first(module)} |" for name, module in found.items())
    tree = "\n".join(found)
    pages["index.md"] = (
        "# Python reference\n\nEvery public name. What a first script needs is in `epsilometer` itself; the rest is in "
        "namespaces.\n\n| namespace | what it has |\n|---|---|\n"
        f"{listed}\n\n```{{toctree}}\n:hidden:\n\n{tree}\n```\n"
    )
    return pages


def _page(name: str, module: ModuleType) -> str:
    return "\n".join(
        [f"# {name}\n", _doc(module), "", *(_entry(one, getattr(module, one)) for one in public_names(module))]
    )


def _entry(name: str, value: Any) -> str:
    parts = [f"## {name}\n"]
    if inspect.isclass(value) or callable(value):
        head = "class " if inspect.isclass(value) else ""
        parts += [f"```text\n{head}{name}{_signature(value)}\n```\n", _doc(value), ""]
    else:
        shown = ", ".join(f"`{key}`" for key in value) if isinstance(value, dict) else f"`{value!r}`"
        parts.append(f"{'Names in it: ' if isinstance(value, dict) else ''}{shown}\n")
    if inspect.isclass(value):
        parts += [*_members(value), ""]
    return "\n".join(parts)


def _members(owner: type) -> Iterator[str]:
    """Methods and properties that say what they do."""
    for name, member in vars(owner).items():
        inner = getattr(member, "__func__", member)
        if (
            name.startswith("_")
            or not (inspect.isfunction(inner) or isinstance(member, property))
            or not member.__doc__
        ):
            continue
        call = "" if isinstance(member, property) else _signature(inner, method=not isinstance(member, staticmethod))
        yield f"- `{name}{call}`: {_first(member)}"


def _signature(value: Any, method: bool = False) -> str:
    """As it is called; of a method, without `self` and in one line."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    parameters = [
        one.replace(annotation=_written(one.annotation), default=_default(one.default))
        for one in found.parameters.values()
    ]
    gives = found.empty if inspect.isclass(value) else _written(found.return_annotation)
    short = found.replace(parameters=parameters[1:] if method else parameters, return_annotation=gives)
    if method or len(str(short)) <= LINE:
        return str(short)
    ending = "" if gives is found.empty else f" -> {gives!r}"
    lines = [f"    {one}," for one in parameters]
    first = next((i for i, one in enumerate(parameters) if one.kind is one.KEYWORD_ONLY), None)
    if first is not None and all(one.kind is not one.VAR_POSITIONAL for one in parameters):
        lines.insert(first, "    *,")
    return "(\n" + "\n".join(lines) + f"\n){ending}"


class _Text:
    """What `inspect` writes as it is."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _written(annotation: Any) -> Any:
    """Annotations are kept as text (`from __future__ import annotations`): without quotes."""
    return _Text(annotation) if isinstance(annotation, str) else annotation


def _default(value: Any) -> Any:
    """No addresses, nothing long."""
    if value is inspect.Parameter.empty:
        return value
    if isinstance(value, enum.Enum):
        return _Text(str(type(value).__name__) + "." + value.name)
    text = value.__name__ if inspect.isfunction(value) or inspect.isclass(value) else repr(value)
    return _Text("…" if " at 0x" in text or len(text) > 60 else text)


def _doc(value: Any) -> str:
    """The docstring as Markdown: its examples become blocks. A dataclass without one has nothing to say."""
    text = inspect.getdoc(value) or ""
    if inspect.isclass(value) and text.startswith(f"{value.__name__}("):
        return ""
    return re.sub(
        r"((?:^>>>.*\n?)(?:^(?=\S).*\n?)*(?:\n?^>>>.*\n?(?:^(?=\S).*\n?)*)*)", _fenced, text, flags=re.MULTILINE
    )


def _fenced(found: re.Match[str]) -> str:
    return f"\n```pycon\n{found.group(1).strip()}\n```\n"


def _first(value: Any) -> str:
    """The first sentence or line of a docstring."""
    return " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())


if __name__ == "__main__":
    (HERE / "commands.md").write_text(commands())
    (HERE / "results.md").write_text(results())
