"""A run directory: the store of one plan. The same plan continues there; another is refused, with the difference."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from epsilometer.errors import MALFORMED, EpsilometerError, InvalidInput
from epsilometer.json_values import json_values
from epsilometer.runs.sqlite_store import SqliteStore
from epsilometer.runs.trials import Trials

STORE = "trials.sqlite"
PILOT = "pilot"  # a directory in it for trials that chose an adversary, and have nothing to do with the run's own
RESULTS = ("result.json", "scores.csv")  # written when the audit is finished
SEARCH_SECONDS = 5.0  # for which a directory is looked through for stores
_SHOWN = 4  # differences in one line


@contextmanager
def run_directory(directory: Path | str, plan: Trials) -> Iterator[SqliteStore]:
    """The store of a plan in a directory, as `store_in` has it. A run that was stopped continues."""
    out = Path(directory)
    with store_in(out) as store:
        runs = store.runs()
        if runs and runs[0].fingerprint != plan.fingerprint():
            changes = differences(runs[0].plan, json_values(plan.to_dict()))
            raise InvalidInput(
                "out", str(directory), f"the plan that was begun there ({changes})",
                "name another directory, or undo the change",
            )  # fmt: skip
        owner = plan_of(result := out / RESULTS[0])
        if owner not in (None, plan.fingerprint()) or (owner is None and not runs and os.path.lexists(result)):
            expected = f"a directory whose {result.name} is of this plan"
            raise InvalidInput("out", str(out), expected, f"name another, or move {result} away")
        store.begin(plan)
        yield store


def plan_of(result: Path) -> str | None:
    """The fingerprint of the plan whose result a file has; none if it cannot be told."""
    try:
        if not result.is_file():  # a pipe would keep us waiting
            return None
        found = json.loads(result.read_bytes())["plan_sha256"]
    except (OSError, *MALFORMED):
        return None
    return str(found)


@contextmanager
def store_in(out: Path) -> Iterator[SqliteStore]:
    """The store in a directory, which is made if it does not exist; nothing that the directory has is overwritten.

    If this ends in an error before there is a single result, what was made for it is removed.
    """
    made = _prepare(out)
    try:
        with SqliteStore(out / STORE) as store:
            try:
                yield store
            except BaseException:
                with suppress(EpsilometerError):  # what went wrong matters more
                    empty = not any(run.trials for run in store.runs()) and not os.path.lexists(out / RESULTS[0])
                    if store.is_new and empty:
                        store.discard()
                raise
    except BaseException:
        if made:
            with suppress(OSError):  # not empty: somebody uses it
                out.rmdir()
        raise


@contextmanager
def pilot_directory(directory: Path | str) -> Iterator[SqliteStore]:
    """The store of the pilot in a run directory."""
    out = Path(directory)
    made = _prepare(out)
    try:
        with store_in(out / PILOT) as store:
            yield store
    except BaseException:
        if made:
            with suppress(OSError):  # not empty: the pilot has results
                out.rmdir()
        raise


def begun_in(directory: Path | str) -> str | None:
    """The fingerprint of the plan that a directory holds; none if it holds none."""
    path = Path(directory) / STORE
    if not path.is_file() or path.stat().st_size == 0:
        return None
    with SqliteStore.reading(path) as store:
        runs = store.runs()
    return runs[0].fingerprint if runs else None


def differences(stored: dict[str, Any], given: dict[str, Any]) -> str:
    """What differs between two plans.

    >>> differences({"seed": 0, "recipe": {"steps": 10}}, {"seed": 0, "recipe": {"steps": 20}})
    'recipe.steps: 10 there, 20 now'
    """
    old, new = flat(stored), flat(given)
    changed = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    shown = [f"{key}: {old.get(key, 'nothing')} there, {new.get(key, 'nothing')} now" for key in changed[:_SHOWN]]
    return "; ".join(shown) + (f"; {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else "")


def stores_below(directory: Path) -> tuple[list[Path], bool]:
    """The stores in a directory and below it, and whether these are all."""
    return files_below(directory, STORE)


def files_below(directory: Path, *names: str) -> tuple[list[Path], bool]:
    """The files of these names in a directory and below it, and whether these are all: a whole disk is not looked
    through.

    What is near is found first; links are not followed, and what may not be looked into is skipped.
    """
    end = time.monotonic() + SEARCH_SECONDS
    found: list[Path] = []
    folders = deque([directory])
    while folders:
        with suppress(OSError), os.scandir(folders.popleft()) as entries:
            for entry in entries:
                if time.monotonic() > end:
                    return sorted(found), False
                if entry.is_dir(follow_symlinks=False):
                    folders.append(Path(entry.path))
                elif entry.name in names:
                    found.append(Path(entry.path))
    return sorted(found), True


def _prepare(out: Path) -> bool:
    """Fail before the trials, not after them; whether the directory was made."""
    if str(out) in ("", "."):
        raise InvalidInput("out", str(out), "a directory of its own", "name one, for instance results")
    try:
        is_run = os.path.lexists(out / STORE)
        held = [path.name for path in out.iterdir()] if out.is_dir() else []
        ours = (name.removeprefix(".").startswith(STORE) or name == PILOT for name in held)
        if not is_run and not all(ours):
            raise InvalidInput("out", str(out), "a new or empty directory, or one with a run in it", "name another")
        made = not os.path.lexists(out)
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except FileExistsError:
        raise InvalidInput("out", str(out), "a directory to write to (this is a file)", "name another") from None
    except OSError as error:
        raise InvalidInput("out", str(out), f"a directory to write to ({error.strerror})") from None
    return made


def flat(value: Any, prefix: str = "") -> dict[str, Any]:
    """Nested settings under dotted keys.

    >>> flat({"seed": 0, "recipe": {"steps": 10}})
    {'seed': 0, 'recipe.steps': 10}
    """
    if not isinstance(value, dict):
        return {prefix: value}
    return {k: v for key, item in value.items() for k, v in flat(item, f"{prefix}.{key}" if prefix else key).items()}
