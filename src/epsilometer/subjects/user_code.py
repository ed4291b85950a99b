"""What of a user's own code decides scores: its files, and the packages that they import.

A file counts with every module that it imports, at any depth, below the same root: the folder that holds the file, or
its top-level package. Installed packages count by their versions; the standard library does not count. Imports are
read from the source, wherever they stand in it, so that it does not matter what else a process has loaded.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.metadata
import inspect
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

NO_FILE = "none: it was defined without a file, so only its own functions are compared"


def code_of(part: Any) -> dict[str, Any]:
    """Hashes of files by their path below the root, and versions by package; `part` is a class or a function."""
    part = inspect.unwrap(getattr(part, "func", part))  # what a partial calls
    if not hasattr(part, "__qualname__"):  # an object that can be called
        part = type(part)
    own = {"name": part.__qualname__, "source": _own_functions(part)}
    path = getattr(sys.modules.get(part.__module__), "__file__", None)
    made_by_python = part.__module__.split(".")[0] in sys.stdlib_module_names  # such as by make_dataclass
    if path is None or made_by_python or not Path(path).is_file():
        return {**own, "files": NO_FILE}
    files, packages = _reached(Path(path).resolve(), _depth(part.__module__))
    return {**own, "files": dict(files), "packages": dict(packages)}


def _own_functions(part: Any) -> str:
    """A hash of what a class defines itself, if it can be had: two of one name in one file are told apart."""
    own = [part]
    if isinstance(part, type):
        own = [x for x in vars(part).values() if inspect.isfunction(x) and x.__module__ == part.__module__]
    try:
        return hashlib.sha256("".join(inspect.getsource(function) for function in own).encode()).hexdigest()
    except (OSError, TypeError):
        return "unknown"


def _depth(module: str) -> int:
    """How many packages a module is in; a script is in none, unless it was started as a module."""
    spec = getattr(sys.modules[module], "__spec__", None)
    name = spec.name if spec is not None else module
    return str(name).count(".")


@functools.lru_cache(maxsize=64)  # what this process has loaded does not change when its file does
def _reached(first: Path, depth: int) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    root = first.parents[depth + (first.name == "__init__.py")]
    own = first.relative_to(root).with_suffix("").parts[0]
    is_installed = not {"site-packages", "dist-packages"}.isdisjoint(root.parts)  # beside everything else
    waiting, files, packages = [first], dict[str, str](), set[str]()
    while waiting:
        path = waiting.pop()
        name = path.relative_to(root).as_posix()
        if name in files:
            continue
        source = path.read_bytes()
        files[name] = hashlib.sha256(source).hexdigest()
        for module in _imports(source, path.relative_to(root).parent.parts):
            below = [] if is_installed and module[0] != own else list(_files(root, module))
            waiting.extend(below)
            if not below:
                packages.add(module[0])
    return tuple(sorted(files.items())), tuple(_versions(packages))


def _imports(source: bytes, package: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The modules that a file of `package` imports, as parts of their names; some may be names in a module."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError):  # compiled, or for another version of Python and never loaded
        return
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield tuple(alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else ()
            module = (*base, *(node.module.split(".") if node.module else ()))
            for alias in node.names:
                yield (*module, alias.name)


def _files(root: Path, module: tuple[str, ...]) -> Iterator[Path]:
    """The files below `root` that importing a module runs: its own, and its packages'."""
    for length in range(1, len(module) + 1):
        place = root.joinpath(*module[:length])
        for path in (place / "__init__.py", place.with_name(f"{place.name}.py")):
            if path.is_file():
                yield path


def _versions(names: set[str]) -> Iterator[tuple[str, str]]:
    """The versions of the installed packages among modules; not ours: a plan has a version of its trials."""
    homes = importlib.metadata.packages_distributions()
    for name in sorted(names - sys.stdlib_module_names - {"epsilometer"}):
        for distribution in sorted(set(homes.get(name, [name]))):
            with suppress(importlib.metadata.PackageNotFoundError):
                yield distribution, importlib.metadata.version(distribution)
