"""The audit of a mechanism: many releases for two neighbours, judged as any other audit."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from epsilometer import validate
from epsilometer.adversaries import Distinguisher
from epsilometer.auditing.plan import Plan
from epsilometer.auditing.runner import AuditResult, run
from epsilometer.bounds import Method
from epsilometer.claims import Claim, PointClaim
from epsilometer.errors import InvalidInput
from epsilometer.mechanisms import MECHANISMS, CallableMechanism, Mechanism, Sensitivity, mechanism_named
from epsilometer.runs.executors import Executor, executor_named
from epsilometer.runs.progress import Progress
from epsilometer.subjects import ByName, Entry, Releases, Values

BLOCK = 2000  # releases in a trial, for many runs
FEWEST_BLOCKS = 20
RUNS = 1_000_000


def mechanism_plan(
    mechanism: Mechanism | Callable[..., Any] | str,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    claim: Claim | None = None,
    sensitivity: Sensitivity | float | None = None,
    neighbours: tuple[Any, Any] | None = None,
    entries: int | None = None,
    runs: int = RUNS,
    learning: int | None = None,
    score: str | None = None,
    confidence: float = 0.95,
    method: Method | None = None,
    seed: int = 0,
    deterministic: bool = True,
) -> Plan:
    """A plan to audit a mechanism: one of `MECHANISMS` by name, an object, or a function (also "mymodule:release").

    The claim is the point (ε, δ), unless a `claim` is given, such as a mechanism's own curve. Without `neighbours` they
    are searched for, with values of so many `entries`. `runs` are the releases of each world that are judged;
    `learning` ones before them choose neighbours and score. The score is "auto", but of people's own functions
    "as-reals": plain floating-point noise leaks by its last bits (Mironov 2012), and hardly anybody asks about those.
    """
    validate.whole("runs", runs, least=100, most=10**9)
    if claim is None:
        claim = _claimed(mechanism, epsilon, delta)
    released, fault, usual = _mechanism(mechanism, claim, epsilon, delta, sensitivity)
    block = max(1, min(BLOCK, runs // FEWEST_BLOCKS))
    values = Values(neighbours, usual if entries is None else entries)
    subject = Releases(released, values, block, deterministic, fault)
    trials = math.ceil(runs / block)
    learning = max(100, min(400_000, runs // 2)) if learning is None else learning
    at = delta if claim.only_delta is None else claim.only_delta
    if score is None:
        score = "as-reals" if subject.safeguards.foreign else "auto"
    return Plan(subject, claim, at, Distinguisher(learning, score), trials, confidence, method, seed)


def audit_mechanism(
    mechanism: Mechanism | Callable[..., Any] | str,
    *,
    executor: Executor | str = "auto",
    progress: Progress | None = None,
    **settings: Any,
) -> AuditResult:
    """Audit a mechanism; `settings` are those of `mechanism_plan`.

    >>> audit_mechanism("laplace-half", epsilon=1.0, runs=20_000).verdict.outcome.value
    'violated'
    >>> plain = lambda value, rng, size: value + rng.laplace(0, 1, size)
    >>> given = {"epsilon": 1.0, "neighbours": (0.0, 1.0), "sensitivity": 1.0, "runs": 20_000}
    >>> audit_mechanism(plain, **given).verdict.outcome.value
    'consistent'
    >>> audit_mechanism(plain, **given, score="auto").verdict.outcome.value  # the last bits of its doubles
    'violated'
    """
    plan = mechanism_plan(mechanism, **settings)
    return run(plan, progress, executor=executor_named(executor) if isinstance(executor, str) else executor)


def _as_mechanism(given: Any) -> Mechanism | None:
    return given if isinstance(given, Mechanism) else None


def _claimed(mechanism: Any, epsilon: float | None, delta: float) -> Claim:
    validate.delta(delta)
    known = _as_mechanism(mechanism)
    if epsilon is None:
        if known is not None:
            return known.claim
        raise InvalidInput("epsilon", None, "the claimed ε", "a mechanism claims (ε, δ)")
    validate.real("epsilon", epsilon, above=0, remedy="a mechanism needs a finite ε > 0")
    if known is not None:
        return PointClaim(epsilon, delta, known.relation, known.unit)
    if isinstance(mechanism, str) and mechanism in MECHANISMS:
        return PointClaim(epsilon, delta, mechanism_named(mechanism, epsilon, delta).relation)
    return PointClaim(epsilon, delta)


def _mechanism(
    given: Any, claim: Claim, epsilon: float | None, delta: float, stated: Sensitivity | float | None
) -> tuple[Mechanism, str, int]:
    """The mechanism, what is wrong with it on purpose, and how many entries its values usually have."""
    if (made := _as_mechanism(given)) is not None:
        known = MECHANISMS.get(made.name)
        return (made, "", 1) if known is None else (made, known.fault, known.entries)
    if isinstance(given, str) and ":" not in given:
        amount: Any = getattr(stated, "amount", stated)
        at = claim.epsilon_at(delta) if epsilon is None else epsilon
        made = mechanism_named(given, at, delta, 1.0 if amount is None else amount)
        return made, MECHANISMS[given].fault, MECHANISMS[given].entries
    function = ByName(Entry.of(given, "mechanism")) if isinstance(given, str) else given
    if stated is not None and not isinstance(stated, Sensitivity):
        stated = Sensitivity(stated, "l1", claim.relation, claim.unit)
    return CallableMechanism(function, claim, stated), "", 1


def neighbours_of(first: str, second: str) -> tuple[Any, Any]:
    """Two values as text: JSON, or files that hold it."""

    def read(text: str) -> Any:
        try:
            content = Path(text).read_bytes() if text.endswith(".json") else text
        except OSError as error:
            raise InvalidInput("neighbours", text, f"a file that can be read ({error.strerror})") from None
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            raise InvalidInput("neighbours", text, "a value in JSON, or a file ending in .json") from None

    return read(first), read(second)
