"""`assert_private`: a test that fails where an audit refutes what a training claims.

What is audited decides who audits it (`audited`); all of them end in an `Ending`, and a test knows nothing else.
"""

from __future__ import annotations

import random
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from epsilometer.accounting import DpSgd
from epsilometer.adversaries import Adversary
from epsilometer.auditing import AuditResult, OutOfBudget, audit
from epsilometer.auditing.simple import DELTA
from epsilometer.bounds import Method
from epsilometer.claims import Claim
from epsilometer.errors import EpsilometerError, InconclusiveAudit, InvalidInput
from epsilometer.report import finding_of, summary
from epsilometer.runs import Executor
from epsilometer.subjects import Entry, Subject
from epsilometer.testing.ending import Ending, Property
from epsilometer.testing.scripts import Script, is_script, watched

Claimed = Claim | DpSgd | tuple[float, float]


class NotPrivate(AssertionError):
    """A test that failed: the claim is refuted, or the audit too weak where it had to be `strict`."""


@dataclass(repr=False)
class AssertPrivate:
    """What the fixture `assert_private` is: call it with a training and what that claims.

    `folders` are where files and modules are looked for that a test names; `test` is the test's own name; `record` is
    told what a report should keep; `trials`, if they are given, are those of the command line, and win.
    """

    folders: Sequence[Path] = ()
    test: str = ""
    record: Callable[[str, object], None] | None = None
    trials: int | None = None
    strict: bool = False
    _calls: int = field(default=0, init=False)

    def __repr__(self) -> str:
        return "assert_private"  # pytest shows it above every failure

    def __call__(
        self,
        train_or_script: Subject | Callable[..., Any] | str | Path,
        *,
        data: Any = None,
        epsilon: float | None = None,
        delta: float | None = None,
        claim: Claimed | None = None,
        budget_seconds: float | None = None,
        trials: int | None = None,
        adversary: Adversary | str = "clipbkd",
        confidence: float = 0.95,
        strict: bool = False,
        seed: int = 0,
        score: Callable[..., float] | str | None = None,
        arguments: Mapping[str, Any] | None = None,
        method: Method | None = None,
        isolation: str = "here",
        time_limit: float | None = None,
        deterministic: bool = True,
        executor: Executor | str = "auto",
        command: Sequence[str] = (),
        unit: str | None = None,
    ) -> AuditResult | None:
        """Audit a training; raise `NotPrivate` if its claim is refuted, warn if the audit was too weak.

        `train_or_script` is `train(data, seed)`, its name ("mymodule:train", "file.py:train"), or a subject. It claims
        (ε, δ) or, as `claim`, a whole curve: `DpSgd(sample_rate, noise_multiplier, steps)`. Trials are as many as
        `budget_seconds` allow, `trials` at most, or `trials` if there is no budget. `unit` is what a row of the data
        is and the claim protects: a record, unless you say user or another word. Everything else is as
        `epsilometer.audit` has it, but that trainings play in this process (`isolation`) unless told otherwise. What
        the audit found is returned; nothing, if time was too short for any.

        A script ("train.py", with the words of `command` after it) is run once and watched (`epsilometer watch`). It
        states its noise itself; an `epsilon` is compared with what follows from its accountant's history by PLD.
        """
        __tracebackhide__ = True
        if self.trials is not None:
            trials, budget_seconds = self.trials, None
        settings: dict[str, Any] = {
            "data": self._found(data),
            "delta": delta,
            "adversary": adversary,
            "score": score,
            "arguments": arguments,
            "trials": trials,
            "budget_seconds": budget_seconds,
            "confidence": confidence,
            "method": method,
            "seed": seed,
            "isolation": isolation,
            "time_limit": time_limit,
            "deterministic": deterministic,
            "executor": executor,
            "unit": unit,
        }
        try:
            if is_script(train_or_script):
                ending = self._watched(str(train_or_script), command, epsilon, claim, settings)
                self._calls += 1
                self._tell(ending)
                return _passed(ending, strict or self.strict)
            settings["claim"] = _claimed(epsilon, delta, claim)
            ending = self._audited(train_or_script, settings)
        except EpsilometerError as error:
            raise error.with_traceback(None) from None  # the line of the test says more than ours
        self._calls += 1
        self._tell(ending)
        return _passed(ending, strict or self.strict)

    def _audited(self, what: Subject | Callable[..., Any] | str | Path, settings: dict[str, Any]) -> Ending:
        """A function, or its name, is trained many times."""
        if isinstance(what, str | Path):
            return trained(self._entry(str(what)), repr(str(what)), settings, self.test)
        return trained(what, _name(what), settings, self.test)

    def _watched(
        self, script: str, command: Sequence[str], epsilon: float | None, claim: object, settings: dict[str, Any]
    ) -> Ending:
        """A script is run once."""
        for name, value in (("claim", claim), ("data", settings["data"]), ("unit", settings["unit"])):
            if value is not None:
                expected = "nothing beside a script, which states its noise and has its data itself"
                raise InvalidInput(name, value, expected, f"did you mean {script}:train?")
        path = next((folder / script for folder in self.folders if (folder / script).exists()), Path(script))
        if not path.exists():
            raise InvalidInput("train_or_script", script, "a script that exists", f"did you mean {script}:train?")
        delta = DELTA if settings["delta"] is None else settings["delta"]
        return watched(
            Script(path.resolve(), tuple(command)), epsilon=epsilon, delta=delta, confidence=settings["confidence"],
            seed=settings["seed"], seconds=settings["budget_seconds"],
        )  # fmt: skip

    def _entry(self, name: str) -> Entry:
        module = name.rpartition(":")[0]
        place = module if module.endswith(".py") else module.split(".")[0]
        for folder in self.folders:
            if any((folder / one).exists() for one in ({place} if place.endswith(".py") else {place, f"{place}.py"})):
                return Entry.of(name, "train_or_script", folder)
        return Entry.of(name, "train_or_script")

    def _found(self, data: Any) -> Any:
        """A file where it is, or beside the test."""
        if not isinstance(data, str | Path) or Path(data).exists():
            return data
        return next((folder / data for folder in self.folders if (folder / data).exists()), data)

    def _tell(self, ending: Ending) -> None:
        """The first audit of a test has plain names, later ones a number."""
        if self.record is not None:
            prefix = "epsilometer." if self._calls == 1 else f"epsilometer.{self._calls}."
            for name, value in ending.properties.items():
                self.record(name.replace("epsilometer.", prefix, 1), value)


def trained(train: Any, name: str, settings: dict[str, Any], test: str) -> Ending:
    """A training played again and again, by `epsilometer.audit`."""
    try:
        with _undisturbed():
            result = audit(train, noise_limit=False, **settings)
    except OutOfBudget as error:
        told: dict[str, Property] = {"epsilometer.verdict": "inconclusive", "epsilometer.trials": 0}
        return Ending("inconclusive", str(error), f"claim          {settings['claim']}", [], told)
    again = [_call(name, settings, result)]
    if test:
        trials = f"--epsilometer-trials {result.plan.planned_trials}"
        again.insert(0, f"pytest {shlex.quote(test)} {trials}")
    verdict, properties = result.verdict, finding_of(result).properties()
    return Ending(verdict.outcome.value, verdict.reason, summary(result), again, properties, result)


def _passed(ending: Ending, strict: bool) -> AuditResult | None:
    __tracebackhide__ = True
    if ending.outcome == "violated":
        raise NotPrivate(str(ending))
    if ending.outcome == "inconclusive":
        if strict:
            raise NotPrivate(f"{ending}\n(strict: an audit that is inconclusive fails)")
        warnings.warn(str(ending), InconclusiveAudit, stacklevel=3)
    return ending.result


def _claimed(epsilon: float | None, delta: float | None, claim: Claimed | None) -> Claimed:
    if (epsilon is None) == (claim is None):
        remedy = "claim = DpSgd(sample_rate, noise_multiplier, steps) is refuted with far fewer trials"
        raise InvalidInput("epsilon", epsilon, "an ε, or a claim in its place", remedy)
    if claim is not None:
        return claim
    assert epsilon is not None
    return (epsilon, DELTA if delta is None else delta)


def _call(name: str, settings: dict[str, Any], result: AuditResult) -> str:
    """The same in Python; data that has no name is what the test has."""
    data = settings["data"]
    usual = {"score": None, "arguments": None, "method": None, "time_limit": None, "deterministic": True, "unit": None}
    shown = {
        "claim": settings["claim"],
        "delta": None if isinstance(settings["claim"], tuple) else settings["delta"],
        "adversary": settings["adversary"],
        **{key: settings[key] for key, default in usual.items() if settings[key] != default},
        "trials": result.plan.planned_trials,
        "confidence": settings["confidence"],
        "seed": settings["seed"],
        "isolation": settings["isolation"],
    }
    words = [f"{key}={_name(value)}" for key, value in shown.items() if value is not None]
    if data is not None:
        words.insert(0, f"data={str(data)!r}" if isinstance(data, str | Path) else "data=…")
    return f"epsilometer.audit({name}, {', '.join(words)})"


def _name(part: Any) -> str:
    """A function as one would write it."""
    if not hasattr(part, "__qualname__"):
        return repr(part)
    return f"{part.__module__}.{part.__qualname__}".replace(".<locals>", "")


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Trainings seed the global generators, and warn hundreds of times: neither is to be felt by other tests."""
    torch = sys.modules.get("torch")
    before = (random.getstate(), np.random.get_state(), torch and torch.get_rng_state())  # noqa: NPY002
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])  # noqa: NPY002
        if torch is not None:
            torch.set_rng_state(before[2])
