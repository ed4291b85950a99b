"""Watched trainings among the runs of a folder: what `epsilometer watch --out` has kept of each."""

from __future__ import annotations

import hashlib
import json
import shlex
from pathlib import Path
from typing import Any

from epsilometer.errors import MALFORMED, InvalidInput
from epsilometer.overview.listing import FINISHED, KnownRun, small_file
from epsilometer.runs import RESULTS
from epsilometer.watching.checks.names import UNMENDED
from epsilometer.watching.epsilon import DELTA
from epsilometer.watching.settings import FILE

UNFINISHED = "running or killed"  # nobody holds a lock: only its result tells
_NOBODY = {"adversary": {"name": "watch"}, "claim": {"relation": "add-remove"}}


def watched_in(directory: Path) -> list[KnownRun]:
    """The trainings that a watched command made private, or one line if there is none of them yet.

    Whatever is wrong with its result is one `InvalidInput`: it must not hide other runs.
    """
    path = directory / RESULTS[0]
    content = small_file(path)
    if content is None and not path.exists():
        plan = {**_NOBODY, "delta": DELTA, "watch": _asked(directory)}
        return [KnownRun(directory, _name(directory, 0), plan, UNFINISHED, 0, 0, None, 0.0, "", counted="steps")]
    try:
        document = json.loads(content or b"")
        trainings = document["trainings"]
        found = [_known(directory, document, number, one) for number, one in enumerate(trainings, start=1)]
        return found or [_nothing(directory, document)]
    except MALFORMED as error:
        expected = f"the result of a watch as this version writes it ({type(error).__name__}: {error})"
        raise InvalidInput("result", str(path), expected, "watch the command again, in another directory") from None


def _known(directory: Path, document: dict[str, Any], number: int, one: dict[str, Any]) -> KnownRun:
    epsilon = one.get("epsilon") or {}
    lower, upper = epsilon.get("family_bound"), epsilon.get("upper_bound")
    bounds = [bound for bound in (lower, upper) if bound is not None]
    plan = {
        **_NOBODY,
        "delta": float(bounds[0]["delta"]) if bounds else DELTA,
        "command": shlex.join(document["command"]),
        "training": {
            "number": number,
            **{key: one[key] for key in ("optimizer", "noise_multiplier", "clip_norm", "settings")},
        },
        "watch": {**_asked(directory), "confidence": one["confidence"], "place": one["place"]},
    }
    promised = None if upper is None else float(upper["epsilon"])
    found = [check for check in one["checks"] if check["status"] == "failed"]
    failed = [check["name"] for check in found if check["name"] not in UNMENDED or check.get("basis", "hint") != "hint"]
    return KnownRun(
        where=directory,
        fingerprint=_name(directory, number),
        plan=plan,
        state=FINISHED,
        done=int(one["steps"]),
        total=int(one["steps"]),
        claimed=promised,
        seconds=float(document.get("seconds", 0.0)),
        begun=str(document.get("begun", "")),
        lower=lower,
        verdict={"outcome": str(one["verdict"]), "reason": str(one["reason"])},
        upper=promised,
        family=None if lower is None else float(lower["epsilon"]),
        remarks=(f"failed checks: {', '.join(failed)}",) if failed else (),
        counted="steps",
    ).complete()


def _nothing(directory: Path, document: dict[str, Any]) -> KnownRun:
    """A command that ended without any private training."""
    plan = {**_NOBODY, "delta": DELTA, "command": shlex.join(document["command"]), "watch": _asked(directory)}
    why = "; ".join(document["failures"]) or "no private training was seen"
    verdict = {"outcome": "inconclusive", "reason": f"nothing was audited: {why}"}
    seconds, begun = float(document.get("seconds", 0.0)), str(document.get("begun", ""))
    return KnownRun(
        directory, _name(directory, 0), plan, FINISHED, 0, 0, None, seconds, begun, verdict=verdict, counted="steps"
    )


def _asked(directory: Path) -> dict[str, Any]:
    """How it was watched, if that can be read."""
    try:
        found = json.loads(small_file(directory / FILE) or b"{}")
    except MALFORMED:
        return {}
    return {key: found[key] for key in ("canaries", "seed") if key in found} if isinstance(found, dict) else {}


def _name(directory: Path, number: int) -> str:
    return hashlib.sha256(f"{directory.name}\0{number}".encode()).hexdigest()
