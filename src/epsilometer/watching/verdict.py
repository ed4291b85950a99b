"""The verdict on a watched training: is a statement broken on which its promise rests, or were all of them tested?"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from epsilometer.rounding import confidence
from epsilometer.statements import Basis, Standing, Stands, Statement
from epsilometer.verdict import Outcome, Verdict
from epsilometer.watching.checks.names import NOISE_LAW, REPLAYED_STATE
from epsilometer.watching.left import what_is_left

if TYPE_CHECKING:
    from epsilometer.watching.watched import Watched

STATED_MECHANISM, POINT = "the stated mechanism", "the stated mechanism and the (ε, δ)"
_FIRM = (Standing.HELD, Standing.ASSUMED)


Rows = tuple[Stands, ...]


def verdict_of(one: Watched, statements: Rows) -> Verdict:
    """By its statements: one that is broken is enough; all but "nothing else" must be held to pass."""
    broken = _broken(statements)
    power = one.power_now()
    if broken:
        return _violated(one, broken)
    rows = open_of(statements)
    nothing = one.vacuous or one.idle
    then = f"; next: {next_command(rows)}" if rows and not nothing else ""
    outcome = Outcome.INCONCLUSIVE if nothing or rows else Outcome.CONSISTENT
    return Verdict(outcome, f"{reason_of(one, statements)}{then}", power)


def open_of(statements: Rows) -> list[Stands]:
    """Statements that a training rests on, and of which nothing is known; "nothing else" if something was found."""
    return [
        row
        for row in statements
        if row.standing not in (*_FIRM, Standing.BROKEN) and (row.statement is not Statement.NOTHING_ELSE or row.by)
    ]


def reason_of(one: Watched, statements: Rows) -> str:
    """Why the verdict is what it is, without what would tell more."""
    broken = _broken(statements)
    if broken:
        return _violated(one, broken).reason
    if one.vacuous or one.idle:
        return one.says_nothing()
    open_ = open_of(statements)
    return _untested(open_) if open_ else _held(one, statements)


def _broken(statements: Rows) -> list[Stands]:
    return [row for row in statements if row.standing is Standing.BROKEN]


def _untested(rows: Iterable[Stands]) -> str:
    """Statements that are open for the same reason are named together."""
    by_reason: dict[str, list[str]] = {}
    for row in rows:
        by_reason.setdefault(row.reason, []).append(str(row.statement))
    said = []
    for reason, (*others, last) in by_reason.items():
        names = f"{', '.join(others)} and {last} are" if others else f"{last} is"
        said.append(f"{names} untested ({reason})")
    return "; ".join(said)


def next_command(untested: Iterable[Stands]) -> str:
    """What would test these: options of `epsilometer watch`, or advice."""
    return "; ".join(dict.fromkeys(row.next or f"--assume {row.statement}" for row in untested))


def _violated(one: Watched, broken: list[Stands]) -> Verdict:
    first = min(broken, key=lambda row: row.basis is not Basis.COUNTEREXAMPLE)
    others = [str(row.statement) for row in broken if row is not first]
    also = f"; broken as well: {', '.join(others)}" if others else ""
    step = f" at step {first.step}" if first.step is not None else ""
    sure = "" if first.basis is Basis.COUNTEREXAMPLE else f", {confidence(one.confidence)}"
    left = what_is_left(one, {row.statement: row for row in broken})
    words = (f"; {left.words}" if left.words else "") + _ignored(one)
    reason = f"{first.statement} is broken{step} (by {', '.join(first.by)}{sure}): {first.reason}{also}{words}"
    refuted = POINT if left.exceeds else STATED_MECHANISM
    return Verdict(Outcome.VIOLATED, reason, refuted=f"{refuted}: {', '.join(str(row.statement) for row in broken)}")


def _held(one: Watched, rows: Rows) -> str:
    """What was tested, in one line."""
    held = [str(row.statement) for row in rows[:-1] if row.standing is Standing.HELD]
    assumed = [str(row.statement) for row in rows[:-1] if row.standing is Standing.ASSUMED]
    parts = [f"held: {', '.join(held)}"] if held else []
    parts += [f"assumed by whoever runs the audit: {', '.join(assumed)}"] if assumed else []
    parts += [f"nothing else: {_nothing_else(one, rows)}"]
    noise = next(row for row in rows if row.statement is Statement.NOISE)
    return f"{'; '.join(parts)}{_ignored(one)}; {noise.reason}"


def _ignored(one: Watched) -> str:
    """Checks that failed, and that whoever runs the audit wants to be ignored."""
    found = [check.name for check in one.checks if check.status == "ignored"]
    found += [NOISE_LAW] if NOISE_LAW in one.judging.ignore and one.noise_law.refuted_at is not None else []
    return f"; failed checks that are ignored: {', '.join(dict.fromkeys(found))}" if found else ""


def _nothing_else(one: Watched, statements: Rows) -> str:
    """How far it is known that nothing else depends on the data."""
    last = statements[-1]
    if is_replayed(one, statements):
        return "replayed"
    if one.facts.replay is not None:
        from epsilometer.watching.checks.replayed import not_compared

        how = "replayed in part" if REPLAYED_STATE in last.by else "without replay"
        return f"{last.standing}, {how} (not compared: {'; '.join(not_compared(one.facts.replay))})"
    why = one.facts.troubles.get("replay", "")
    return f"{last.standing}, without replay{f' ({why})' if why else ''}"


def is_replayed(one: Watched, statements: Rows) -> bool:
    """Is it known by a replay that has seen all of it?"""
    from epsilometer.watching.checks.replayed import held

    return statements[-1].standing is Standing.HELD and held(one.facts)


def quote_of(one: Watched, statements: Rows) -> str:
    """What may be said of this training, with all that it needs to be true."""
    verdict, sure = verdict_of(one, statements), confidence(one.confidence)
    if verdict.outcome is Outcome.VIOLATED:
        broken = _broken(statements)
        said = "; ".join(f"{row.statement}{f' at step {row.step}' if row.step else ''}" for row in broken)
        exact = all(row.basis is Basis.COUNTEREXAMPLE for row in broken)
        return f"broken: {said}{'' if exact else f', {sure}'}"
    if verdict.outcome is Outcome.INCONCLUSIVE:
        return "nothing: the audit is inconclusive"
    upper = one.epsilon().upper
    promise = "" if upper is None else f"; what is accounted promises {upper}"
    assumed = [str(row.statement) for row in statements if row.standing is Standing.ASSUMED]
    promise += f", assuming, and not testing, {', '.join(assumed)}" if assumed and promise else ""
    if not one.process.steps or math.isinf(one.noise_factor()):  # no canaries, or too few: the noise itself was seen
        noise = next(row for row in statements if row.statement is Statement.NOISE)
        return f"no statement is broken; noise: {noise.reason}{promise}"
    return (
        f"{one.process.steps} steps do not refute the stated noise multiplier {one.stated_noise}: the noise is at "
        f"most {one.noise_factor():.3g} × the stated, {sure}{promise}"
    )
