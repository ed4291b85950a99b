"""An audit in one call, from Python."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from epsilometer.accounting import DpSgd, curve
from epsilometer.adversaries import ADVERSARIES, Adversary
from epsilometer.auditing.budget import Deadline, within
from epsilometer.auditing.plan import Plan
from epsilometer.auditing.runner import AuditResult, run
from epsilometer.bounds import Method
from epsilometer.claims import Claim, PointClaim
from epsilometer.data import own_data
from epsilometer.errors import InvalidInput
from epsilometer.neighbours import RECORD, Neighbours
from epsilometer.runs.directory import run_directory
from epsilometer.runs.executors import Executor, executor_named
from epsilometer.runs.progress import Progress
from epsilometer.runs.store import MemoryStore
from epsilometer.subjects import CallableTraining, Entry, Subject

DELTA = 1e-5  # where nothing is said


def audit(
    train: Subject | Entry | Callable[..., Any] | str,
    *,
    data: Any = None,
    claim: Claim | DpSgd | float | tuple[float, float],
    delta: float | None = None,
    adversary: Adversary | str = "clipbkd",
    score: Callable[..., float] | str | None = None,
    arguments: Mapping[str, Any] | None = None,
    trials: int | None = None,
    budget_seconds: float | None = None,
    confidence: float = 0.95,
    method: Method | None = None,
    seed: int = 0,
    isolation: str = "none",
    time_limit: float | None = None,
    deterministic: bool = True,
    out: Path | str | None = None,
    executor: Executor | str = "auto",
    progress: Progress | None = None,
    noise_limit: bool = True,
    unit: str | None = None,
) -> AuditResult:
    """Audit a training: `train(data, seed) -> model`, as a function or by name ("mymodule:train").

    `data` is (x, y), a torch data set, or a file (.npz, .csv, .parquet). `claim` is an ε or (ε, δ); or a curve, for
    which far fewer trials are needed: a `DpSgd(sample_rate, noise_multiplier, steps)` says what the training does.
    `unit` is what one row of the data is, and what the claim speaks of: a record, unless you say user or another word.
    With `budget_seconds`, as many trials as a timing of the first trainings says that fit (`trials` of a world at most,
    or 2000); it is over by then, or raises `OutOfBudget`. How much noise the scores allow (`noise_limit`) takes some
    seconds, and is not worked out under a budget.
    With `out`, a directory, an audit that was stopped goes on. Functions of a module play in processes of their own,
    which import your script: call this under `if __name__ == "__main__":`. What a notebook defines plays in this
    process, and is not stored.

    >>> import numpy as np
    >>> def train(data, seed):  # the noisy sum of all records: a Gaussian mechanism
    ...     weights = data.x.sum(axis=0) + np.random.default_rng(seed).normal(size=(2, 4))
    ...     return lambda x: x @ weights.T
    >>> result = audit(train, data=(np.eye(8, 4), np.arange(8) % 2), claim=DpSgd(1.0, 1.0, 1), trials=20)
    >>> result.verdict.outcome.value
    'inconclusive'
    """
    started = time.perf_counter()
    stated = claim if isinstance(claim, DpSgd) else None
    if isinstance(train, Subject):
        subject: Subject = train
    else:
        if data is None:
            raise InvalidInput("data", None, "the records to train on", "pass (x, y), a data set or a file")
        subject = CallableTraining(
            Entry.of(train, "train") if isinstance(train, str) else train,
            own_data(data),
            Entry.of(score, "score") if isinstance(score, str) else score,
            dict(arguments or {}),
            isolation,
            time_limit,
            deterministic,
            stated,
            RECORD if unit is None else unit,
        )
    said = subject.unit if unit is None else unit
    chosen = _claimed(claim, delta, said) if stated is None else curve(stated, Neighbours(said))
    usual = DELTA if delta is None else delta
    plan = Plan(
        subject, chosen, usual if chosen.only_delta is None else chosen.only_delta,
        _named(adversary, subject), trials, confidence, method, seed,
    )  # fmt: skip
    if out is not None and not subject.safeguards.travels:
        remedy = "define it in a module, or leave `out` away"
        raise InvalidInput("out", str(out), "a training that another process can find again by name", remedy)
    who = executor_named(executor) if isinstance(executor, str) else executor
    if budget_seconds is not None:
        if out is not None:
            expected = "nothing beside `out`: the next call would choose another number of trials, and could not go on"
            raise InvalidInput("budget_seconds", budget_seconds, expected, "say `trials`")
        kept, deadline = MemoryStore(), Deadline(budget_seconds, started)
        plan, told = within(plan, deadline, kept, who), deadline.watching(progress)
        return run(plan, told, store=kept, executor=who, noise_limit=False)
    with nullcontext() if out is None else run_directory(out, plan) as store:
        return run(plan, progress, store=store, executor=who, noise_limit=noise_limit)


def _claimed(claim: Any, delta: float | None, unit: str) -> Claim:
    if isinstance(claim, Claim):
        return claim
    if isinstance(claim, tuple):
        said = dict(zip(("epsilon", "delta", "relation"), claim, strict=False))
        return PointClaim(**said, unit=unit)
    return PointClaim(claim, DELTA if delta is None else delta, unit=unit)


def _named(adversary: Adversary | str, subject: Subject) -> Adversary:
    return for_subject(ADVERSARIES[adversary], subject) if isinstance(adversary, str) else adversary


def for_subject(kind: type[Adversary], subject: Subject) -> Adversary:
    """With the settings that suit the subject: of a foreign training only the model is seen."""
    if kind.least_settings and subject.safeguards.foreign:
        return kind.least_privileged().fitted(len(subject.data))
    return kind()
