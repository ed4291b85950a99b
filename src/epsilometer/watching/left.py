"""What ε is left where a statement is broken, as far as it can be said; and whether that exceeds what was promised."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from epsilometer.errors import EpsilometerError
from epsilometer.rounding import down, up
from epsilometer.statements import Stands, Statement
from epsilometer.watching.checks.names import NOISE_LAW, NOISE_SCALE, TARGET
from epsilometer.watching.epsilon import History, promised
from epsilometer.watching.facts import Effective

if TYPE_CHECKING:
    from epsilometer.watching.watched import Watched

NOBODY_KNOWS = "what ε is left is not known"
_SCALE = (NOISE_LAW, NOISE_SCALE, "canaries")  # what tells how much noise there is
_EPOCH = 0.9  # of all records, without one that came twice


@dataclass(frozen=True)
class Left:
    """In words; does what ran have a larger ε than was promised?"""

    words: str = ""
    exceeds: bool = False


def what_is_left(one: Watched, broken: Mapping[Statement, Stands]) -> Left:
    """Of one broken statement; where several are, their harms do not simply add up."""
    if not one.ended:
        return Left()
    if len(broken) > 1:
        return Left(NOBODY_KNOWS)
    (statement,) = broken
    try:
        return _of_one(one, statement, broken[statement])
    except EpsilometerError:  # a history of which no accountant makes sense
        return Left(NOBODY_KNOWS)


def _of_one(one: Watched, statement: Statement, row: Stands) -> Left:
    if one.facts.effective is not None:
        return _of_loop(one, one.facts.effective)
    if statement is Statement.NOISE:
        return _of_noise(one) if set(row.by) & set(_SCALE) else Left(NOBODY_KNOWS)  # noise that repeats hides nothing
    if statement is Statement.ACCOUNTING:
        return _of_accounting(one, row)
    return _without_sampling(one) if statement is Statement.SAMPLING else Left(NOBODY_KNOWS)


def _of_noise(one: Watched) -> Left:
    found = one.epsilon()
    if found.lower is None:
        return Left(NOBODY_KNOWS)
    exceeds = found.upper is not None and found.lower.epsilon > found.upper.epsilon
    more = ", more than is promised" if exceeds else ", not more than is promised"
    return Left(f"ε is at least {down(found.lower.epsilon)} if all steps have that noise{more}", exceeds)


def _of_loop(one: Watched, seen: Effective) -> Left:
    """If all steps had the multiplier that one has at most."""
    from epsilometer.accounting import DpSgd, account, epsilon_floor
    from epsilometer.claims import Relation

    least = min(seen.kinds.values(), default=math.inf)
    if seen.rate is None or seen.silent or seen.repeated or not 0 < least < seen.stated:
        return Left(NOBODY_KNOWS)
    lower = epsilon_floor(DpSgd(seen.rate, least, seen.steps), one.delta, Relation.ADD_REMOVE)
    upper = account(DpSgd(seen.rate, seen.stated, seen.steps), one.delta).epsilon
    words = (
        f"ε is at least {down(lower)} at δ = {one.delta:g} if all {seen.steps} steps have that, {up(upper)} is stated"
    )
    return Left(words, lower > upper)


def _of_accounting(one: Watched, row: Stands) -> Left:
    """All steps that were taken, with the noise and the rate that most of them were accounted with."""
    facts, history = one.facts, one.history
    target = facts.target
    if target is not None and TARGET in row.by:
        words = f"ε = {up(target.spent)} at δ = {target.delta:g} is spent where {target.epsilon:g} was asked for"
        return Left(words, exceeds=True)
    taken = 0 if facts.steps is None else facts.steps.taken
    accounted = sum(int(steps) for *_, steps in history)
    if not history or taken <= accounted:
        return Left(NOBODY_KNOWS)
    sigma, rate, _ = max(history, key=lambda entry: entry[2])
    whole: History = [*history, [sigma, rate, taken - accounted]]
    return _compared(one, whole, f"with all {taken} steps")


def _without_sampling(one: Watched) -> Left:
    """Records that come once an epoch: epochs of one step each, without what Poisson sampling adds."""
    facts, history = one.facts, one.history
    sampling, batches = facts.sampling, facts.batches
    if not history or sampling is None or not sampling.records or not sampling.sizes:
        return Left(NOBODY_KNOWS)
    if batches is not None and (
        batches.same or (batches.known and sum(sampling.sizes[: batches.apart]) < _EPOCH * sampling.records)
    ):
        return Left(NOBODY_KNOWS)  # batches, or records, came again before all had come
    epochs = -(-sum(sampling.sizes) // sampling.records)
    sigma = min(entry[0] for entry in history)
    left = _compared(one, [[sigma, 1.0, epochs]], f"at most if each record came once in each of {epochs} epochs")
    return Left(left.words)


def _compared(one: Watched, whole: History, how: str) -> Left:
    now, before = promised(whole, one.delta), promised(one.history, one.delta)
    if now is None or before is None:
        return Left(NOBODY_KNOWS)
    exceeds = now.epsilon > before.epsilon
    return Left(f"ε = {up(now.epsilon)} at δ = {one.delta:g} {how}, {up(before.epsilon)} accounted", exceeds)
