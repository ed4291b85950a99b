"""Scripts under test: run once, unchanged, by `epsilometer watch`."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epsilometer.errors import InvalidInput
from epsilometer.testing.ending import Ending, Property
from epsilometer.watching.epsilon import promised

_PATIENCE = 30.0  # seconds that a script has to end after it was asked to


@dataclass(frozen=True)
class Script:
    """A file, and the words of its command line."""

    path: Path
    words: tuple[str, ...] = ()

    def command(self) -> list[str]:
        return [sys.executable, str(self.path), *self.words]


def is_script(what: object) -> bool:
    """A file of Python, without the name of a function in it."""
    return isinstance(what, str | Path) and str(what).endswith(".py") and ":" not in Path(what).name


def watched(
    script: Script, *, epsilon: float | None, delta: float, confidence: float, seed: int, seconds: float | None
) -> Ending:
    """Run it; of all trainings that it made private, each judged with this confidence, the worst verdict decides."""
    with tempfile.TemporaryDirectory() as place:
        options = ["--out", str(Path(place) / "watch"), "--seed", str(seed), "--confidence", repr(confidence)]
        words = [sys.executable, "-m", "epsilometer", "watch", *options, "--", *script.command()]
        code, said = _run(words, script.path.parent, seconds)
        result = Path(place) / "watch" / "result.json"
        found = json.loads(result.read_text(encoding="utf-8")) if result.exists() else {"trainings": []}
    again = f"epsilometer watch --seed {seed} -- python {shlex.join([script.path.name, *script.words])}"
    if code not in (0, None):
        tail = "\n".join(said.splitlines()[-8:])
        remedy = f"it ended with {code}:\n{tail}"
        raise InvalidInput("train_or_script", script.path.name, "a script that ends with 0", remedy)
    text = "\n".join(line for line in said.splitlines() if line.startswith("epsilometer: "))
    outcome, reason = _together(found["trainings"])
    if outcome != "violated" and epsilon is not None:
        outcome, reason = _beside(found["trainings"], epsilon, delta, outcome, reason)
    told: dict[str, Property] = {
        "epsilometer.verdict": outcome,
        "epsilometer.confidence": confidence,
        "epsilometer.steps": sum(one["steps"] for one in found["trainings"]),
        "epsilometer.seed": seed,
    }
    return Ending(outcome, reason, text, [again], told)


def _together(trainings: list[Mapping[str, Any]]) -> tuple[str, str]:
    if not trainings:
        return "inconclusive", "the script made nothing private that is watched"
    order = ("violated", "inconclusive", "consistent")
    worst = min(trainings, key=lambda one: order.index(one["verdict"]))
    return worst["verdict"], worst["reason"]


def _beside(
    trainings: list[Mapping[str, Any]], epsilon: float, delta: float, outcome: str, reason: str
) -> tuple[str, str]:
    """The ε that is claimed beside the one that the accountant's history amounts to."""
    for one in trainings:
        spent = promised(one["accounted"], delta)
        if spent is None:
            kinds = f"{len(one['accounted'])} kinds of steps"
            return "inconclusive", f"{reason}; what ε {kinds} amount to is not compared with {epsilon:g}"
        if spent.epsilon > epsilon * (1 + 1e-3):
            stated = f"its own statement ({_stated(one['accounted'])})"
            return "violated", f"{stated} amounts to ε = {spent.epsilon:.4g} at δ = {delta:g}, more than {epsilon:g}"
    return outcome, reason


def _stated(history: list[list[float]]) -> str:
    if len(history) > 1:
        return f"{len(history)} kinds of steps"
    sigma, rate, steps = history[0]
    return f"σ = {sigma:g}, q = {rate:g}, {int(steps)} steps"


def _run(words: list[str], place: Path, seconds: float | None) -> tuple[int | None, str]:
    """Exit code (none if it was asked to end) and what was said on stderr."""
    with subprocess.Popen(words, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            _, said = process.communicate(timeout=seconds)
            return process.returncode, said
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            try:
                _, said = process.communicate(timeout=_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                _, said = process.communicate()
            return None, said
