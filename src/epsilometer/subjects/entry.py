"""Code of users travels by name, never by pickle: `module:function`, and the folder that the module is in."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epsilometer.errors import InvalidInput, one_line


@dataclass(frozen=True)
class Entry:
    """A function by its name, `mymodule:train` or `path/to/file.py:train`, and the folder to import it from."""

    name: str
    root: str = ""

    @classmethod
    def of(cls, name: str, argument: str = "subject.train", folder: Path | None = None) -> Entry:
        """The entry of that name; relative to the folder of a spec, or to the current one."""
        module, colon, function = name.rpartition(":")
        if not colon or not module or not all(part.isidentifier() for part in function.split(".")):
            raise InvalidInput(
                argument, name, "mymodule:train or path/to/file.py:train", "name the function after a colon"
            )
        folder = Path.cwd() if folder is None else folder
        if module.endswith(".py"):
            path = Path(os.path.realpath(folder / module))  # `resolve` fails where links lead in a circle
            if not path.is_file():
                raise InvalidInput(argument, name, f"an existing file ({module} is none)", "check the path")
            return cls(f"{path.stem}:{function}", str(path.parent))
        if not all(part.isidentifier() for part in module.split(".")):
            raise InvalidInput(argument, name, "mymodule:train or path/to/file.py:train", "end a file's name in .py")
        return cls(name, str(folder.resolve()))

    def load(self, argument: str = "subject.train") -> Callable[..., Any]:
        """The function; whatever importing it raises becomes one line."""
        module, _, function = self.name.rpartition(":")
        if self.root and self.root not in sys.path:
            sys.path.insert(0, self.root)
        try:
            found: Any = importlib.import_module(module)
        except (Exception, SystemExit) as error:
            why = f"{type(error).__name__}: {one_line(str(error))}"
            remedy = f"run it from the folder of {module}, or give its path ending in .py"
            raise InvalidInput(argument, self.name, f"a module that can be imported ({why})", remedy) from None
        for part in function.split("."):
            if not hasattr(found, part):
                defined = [n for n, v in vars(found).items() if callable(v) and not n.startswith("_")][:8]
                expected = f"a function of {module} ({', '.join(defined) or 'which defines none'})"
                raise InvalidInput(argument, self.name, expected)
            found = getattr(found, part)
        if not callable(found):
            raise InvalidInput(argument, self.name, "a function", f"it is a {type(found).__name__}")
        loaded: Callable[..., Any] = found
        return loaded


def by_name(argument: str, given: Any, example: str = "mymodule:function") -> Entry | Callable[..., Any]:
    """A function by its name, where another process could find it so; or else as it is."""
    if _entry(given) is None and not callable(given):
        raise InvalidInput(argument, given, f"a function, or '{example}'")
    return _entry(given) or entry_of(given) or given


def has_name(part: Entry | Callable[..., Any] | None) -> bool:
    """Whether another process finds it: also where there is nothing to find."""
    return part is None or _entry(part) is not None


def name_of(part: Entry | Callable[..., Any], usual: str = "") -> str:
    entry = _entry(part)
    return getattr(part, "__qualname__", usual) if entry is None else entry.name


def function_of(part: Entry | Callable[..., Any], argument: str = "subject.train") -> Callable[..., Any]:
    entry = _entry(part)
    return part if entry is None else entry.load(argument)  # type: ignore[return-value]


def _entry(part: Any) -> Entry | None:
    return part if isinstance(part, Entry) else None


def can_start_processes() -> bool:
    """Whether another process could import the script that this one runs; not so if it came from standard input."""
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    return path is None or os.path.isfile(path)


def _defined_at_top(path: Path) -> set[str]:
    """What a script defines when it is imported: nothing that stands under `if __name__ == "__main__":`."""
    try:
        nodes = ast.parse(path.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return set()
    named = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)}
    assigned = (target for node in nodes if isinstance(node, ast.Assign) for target in node.targets)
    return named | {target.id for target in assigned if isinstance(target, ast.Name)}


def entry_of(function: Callable[..., Any]) -> Entry | None:
    """The entry of a function that another process could find by name; none for one that lives in this process only."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    path = getattr(sys.modules.get(module or ""), "__file__", None)
    found: Any = sys.modules.get(module or "")
    for part in name.split("."):
        found = getattr(found, part, None)
    if module is None or path is None or found is not function or not os.path.isfile(path):
        return None
    if module == "__main__":
        if not can_start_processes() or name.split(".")[0] not in _defined_at_top(Path(path)):
            return None
        return Entry(f"{Path(path).stem}:{name}", str(Path(path).resolve().parent))
    depth = module.count(".") + (Path(path).name == "__init__.py")
    return Entry(f"{module}:{name}", str(Path(path).resolve().parents[depth]))
