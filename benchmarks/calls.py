"""Calls between our own files on the way of one command: how often whoever follows a run has to open another file.

`python benchmarks/calls.py audit` plays a short audit, `watch` a short watched Opacus training. It prints

- files: ours that are on one end of such a call;
- calls: distinct pairs of a function and one of another file of ours that it calls (a loop counts once);
- both without leaves, the small modules beside the rooms that everybody may use (errors, validate, rounding, …);
- back and forth: pairs of files of which each calls the other, with these calls.

A comprehension or lambda counts as the function around it. What runs while a module is imported, generated code
(`__init__` of dataclasses) and what a library calls are left out. `--list` prints every call, `--tree SRC` measures
other sources.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

REPOSITORY = Path(__file__).resolve().parents[1]
SCRIPT = REPOSITORY / "tests" / "watching" / "scripts" / "digits.py"
COMMANDS = {
    "audit": ("audit", "--trials", "20", "--executor", "inline"),
    "watch": ("watch", "--seed", "0", "--", sys.executable, "-W", "ignore", str(SCRIPT), "--steps", "20"),
}
LEAVES = {
    *("arrays", "attacks", "bounded_records", "carefully", "checks", "deprecated", "errors", "escape", "isolation"),
    *("json_values", "metrics", "neighbours", "noise_sample", "registry", "rounding", "seeds", "several", "validate"),
    *("visible", "whole_files", "wrapping"),
}
WHERE = "EPSILOMETER_CALLS"  # the directory into which every process writes its calls, and the sources that are counted
FUNCTION = 1  # CO_OPTIMIZED: bodies of modules and classes lack it


class Call(NamedTuple):
    """One function calls another of another file."""

    caller_file: str
    caller: str
    file: str
    function: str


def count() -> None:
    """Count in this process from now on, and write at its end; what a sitecustomize calls."""
    import atexit
    import threading

    where, root = os.environ[WHERE].split(os.pathsep)
    between = functools.cached_property.__get__.__code__  # it calls for whoever asks for the property
    begins = os.path.join(root, "__main__.py")
    files: dict[Any, str] = {}  # of a code object: its file in the package, empty where it does not count
    calls: set[tuple[Any, Any]] = set()

    def file(code: Any) -> str:
        if (known := files.get(code)) is None:
            ours = code.co_filename.startswith(root) and code.co_flags & FUNCTION
            known = files[code] = code.co_filename[len(root) + 1 :] if ours else ""
        return known

    def importing(frame: Any) -> bool:
        """Whether a module of ours is being made: nobody follows that."""
        while frame is not None:
            code = frame.f_code
            if code.co_name == "<module>" and code.co_filename.startswith(root) and code.co_filename != begins:
                return True
            frame = frame.f_back
        return False

    def note(frame: Any, event: str, _: Any) -> None:
        before = frame.f_back
        if before is not None and before.f_code is between:
            before = before.f_back
        if event == "call" and before is not None:
            called, caller = frame.f_code, before.f_code
            if not ((there := file(called)) and (here := file(caller)) and here != there):
                return
            if (caller, called) not in calls and not importing(before):
                calls.add((caller, called))

    def write() -> None:
        sys.setprofile(None)
        named = [Call(files[a], a.co_qualname, files[b], b.co_qualname) for a, b in calls]
        Path(where, f"{os.getpid()}.json").write_text(json.dumps(named))

    leave = os._exit

    def leave_counted(status: int) -> None:
        write()
        leave(status)

    os._exit = leave_counted  # type: ignore[assignment]
    atexit.register(write)
    threading.setprofile(note)
    sys.setprofile(note)


def measured(command: str, sources: Path) -> set[Call]:
    """The calls of all processes of that command."""
    with tempfile.TemporaryDirectory() as where:
        start = f"import sys\nsys.path.append({str(Path(__file__).parent)!r})\nimport calls\ncalls.count()\n"
        Path(where, "sitecustomize.py").write_text(start)
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join((where, str(sources))),
            "OMP_NUM_THREADS": "1",
            WHERE: os.pathsep.join((where, str(sources / "epsilometer"))),
        }
        line = [sys.executable, "-m", "epsilometer", *COMMANDS[command]]
        ended = subprocess.run(line, env=environment, stdout=sys.stderr, check=False)
        if ended.returncode not in (0, 4):
            sys.exit(f"{command} ended with {ended.returncode}")
        found = {Call(*call) for file in Path(where).glob("*.json") for call in json.loads(file.read_text())}
    return {call._replace(caller=outer(call.caller), function=outer(call.function)) for call in found}


def outer(name: str) -> str:
    """The function around comprehensions and lambdas."""
    return re.sub(r"(\.<locals>)?\.?<[a-z]+>.*$", "", name)


def told(calls: set[Call], leaves: bool) -> str:
    kept = {call for call in calls if leaves or not {leaf(call.caller_file), leaf(call.file)} & LEAVES}
    files = {call.caller_file for call in kept} | {call.file for call in kept}
    ways = {(call.caller_file, call.file) for call in kept}
    both = sum((b, a) in ways for a, b in ways) // 2
    return f"{len(files)} files, {len(kept)} calls, {both} pairs back and forth"


def leaf(file: str) -> str:
    """A module beside the rooms, by name; nothing for others."""
    return "" if os.sep in file else file.removesuffix(".py")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--tree", type=Path, default=REPOSITORY / "src", metavar="SRC")
    options = parser.parse_args()
    calls = measured(options.command, options.tree.resolve())
    if options.list:
        print(*(f"{a} {f} -> {b} {g}" for a, f, b, g in sorted(calls)), sep="\n")
    ways = {(call.caller_file, call.file) for call in calls}
    print(f"{options.command}: {told(calls, leaves=True)}; without leaves {told(calls, leaves=False)}")
    for call in sorted(calls):
        if (call.file, call.caller_file) in ways:
            print("  back and forth:", call.caller_file, call.caller, "->", call.file, call.function)


if __name__ == "__main__":
    main()
