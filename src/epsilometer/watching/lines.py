"""What is said of one watched training: two lines, or all that is known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from epsilometer.rounding import up
from epsilometer.statements import Standing, Stands, Statement
from epsilometer.verdict import Outcome
from epsilometer.watching.checks.names import REPLAYED_STATE
from epsilometer.watching.verdict import next_command, open_of, reason_of

if TYPE_CHECKING:
    from epsilometer.watching.judged import JudgedTraining

REPLAY_IT = "--neighbours 2 replays it with a record changed"


def in_brief(one: JudgedTraining) -> list[str]:
    """The verdict; then every statement in a word or two, what is promised, and what to do next."""
    verdict = f"{one.verdict().outcome}: {reason_of(one, one.statements)}"
    return [verdict] if one.idle else [verdict, "; ".join(_statements(one))]


def in_full(one: JudgedTraining) -> list[str]:
    """The verdict, a line for each statement, what may be quoted, ε, and each check that failed."""
    return [str(one.verdict()), *one.table(), f"quote: {one.quote()}", str(one.epsilon()), *one.failed_checks()]


def _statements(one: JudgedTraining) -> Iterator[str]:
    for standing in Standing:
        found = [row for row in one.statements if row.standing is standing]
        if found:
            yield f"{standing}: {', '.join(f'{row.statement}{_besides(one, row)}' for row in found)}"
    upper = one.epsilon().upper
    if upper is not None:
        yield f"accounted: ε ≤ {up(upper.epsilon)} at δ = {upper.delta:g}"
    if one.unseen and one.process.steps:
        yield f"accounted, and not seen: {one.unseen} steps (of a loaded checkpoint, or taken around the optimizer)"
    then = _next(one)
    if then:
        yield f"next: {then}"


def _besides(one: JudgedTraining, row: Stands) -> str:
    if row.step is not None:
        return f" (step {row.step})"
    if row.statement is Statement.NOTHING_ELSE and row.standing is Standing.HELD:
        in_part = one.facts.replay is not None and REPLAYED_STATE in row.by
        return " (replayed)" if one.replayed else " (replayed in part)" if in_part else " (without replay)"
    return ""


def _next(one: JudgedTraining) -> str:
    rows = open_of(one.statements)
    if rows:
        return next_command(rows)
    consistent = one.verdict().outcome is Outcome.CONSISTENT
    last = next(row for row in one.statements if row.statement is Statement.NOTHING_ELSE)
    unreplayed = one.facts.replay is None and one.ranks == 1
    return REPLAY_IT if consistent and last.standing is Standing.HELD and unreplayed else ""
