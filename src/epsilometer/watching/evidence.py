"""What was seen of one training, as evidence about the statements on which its promise rests."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from epsilometer.bounds.step_process import e_value
from epsilometer.rounding import simulated
from epsilometer.statements import About, Basis, Speaks, Statement
from epsilometer.verdict import DOUBTFUL, ENOUGH_POWER
from epsilometer.watching.checks.check import Check, Status
from epsilometer.watching.checks.names import (
    CLIPPING_CHECKS,
    COMPOSITION,
    NOISE_LAW,
    NOISE_SCALE,
    REPLAYED_STATE,
    SETTLED_BY_REPLAY,
)
from epsilometer.watching.enough import what_is_enough
from epsilometer.watching.settings import MODEL

if TYPE_CHECKING:
    from epsilometer.watching.watched import Watched

_ENOUGH = 1000  # values of noise: half of the deviation is refuted by some 30 for sure
CANARIES = "canaries"
MODEL_CANARIES = "--canaries model"
ALL_RANKS = "let one watch start all ranks, and let them come to their end"
TO_ITS_END, REPLAY = "let it come to its end", "--neighbours 2"
_SPEAKS = {Status.PASSED: Speaks.FOR, Status.FAILED: Speaks.AGAINST, Status.IGNORED: Speaks.ACCEPTED}


def evidence_of(one: Watched) -> list[About]:
    """All of it: checks, and bets on the canaries' coins."""
    found = [_of_check(check, one) for check in one.checks if not check.is_limit]
    if any(piece.source == REPLAYED_STATE and piece.speaks is Speaks.FOR for piece in found):
        found = sorted(map(_settled, found), key=lambda piece: piece.source != REPLAYED_STATE)  # says most
    if not one.checks or one.lost:
        found += _unchecked(one)
    return [*found, *_of_noise(one), *(_of_canaries(one) if one.made.canaries else [])]


def _of_check(check: Check, one: Watched) -> About:
    speaks = _SPEAKS.get(check.status, Speaks.NOT)
    # Canaries on a parameter of their own, and none, do not see noise that misses a layer.
    needed = check.needed or (check.name == NOISE_SCALE and one.made.place != MODEL)
    # Where it has passed, it says most; where a loop is by hand, nothing else looks there.
    needed = needed or (check.name == REPLAYED_STATE and (check.status is Status.PASSED or one.by_hand))
    needed = needed and check.status is not Status.IGNORED
    remedy = MODEL_CANARIES if check.name == NOISE_SCALE else _REMEDIES.get(check.statement, "")
    remedy = _MAY_BE_RIGHT.get(check.name, remedy)
    if one.by_hand and check.statement is Statement.SAMPLING:
        remedy = "sample by Poisson, or --assume sampling"
    if remedy == REPLAY and one.facts.replay is not None and one.facts.replay.before:  # that was done
        known = f"--ignore {check.name}, if you know that it knows no record"
        remedy = known if check.statement is Statement.NOTHING_ELSE else f"--assume {check.statement}"
    return About(
        check.statement, check.name, speaks, check.basis, check.reason, check.step, needed=needed, remedy=remedy
    )


def _settled(piece: About) -> About:
    """A hint that something moved which may depend on the data, after neighbours were replayed and it did not."""
    hint = piece.source in SETTLED_BY_REPLAY and piece.speaks is Speaks.AGAINST and piece.basis is Basis.HINT
    return replace(piece, speaks=Speaks.NOT, needed=False) if hint else piece


_MAY_BE_RIGHT = {
    COMPOSITION: "--ignore composition, if the sum is what you promise",
    "reduction": "--ignore reduction, if that is meant",
}
_REMEDIES = {
    Statement.CLIPPING: REPLAY,
    Statement.NOTHING_ELSE: REPLAY,
    Statement.SAMPLING: "train longer, or --assume sampling",
    Statement.ACCOUNTING: "--assume accounting",
}


def _unchecked(one: Watched) -> list[About]:
    """Why no check has said anything, of each statement."""
    if one.told and not one.lost:
        return []
    why = "its process ended before checks were made (a signal)" if one.lost else "no check was made so far"
    if one.told:
        why = "its process never said that it ended (a signal): checks are those of a moment before"
    return [About(each, "checks", Speaks.NOT, Basis.HINT, why, needed=True, remedy=TO_ITS_END) for each in Statement]


def _of_noise(one: Watched) -> list[About]:
    """The noise itself, of every parameter and step in which it was seen, against the law that is stated."""
    law = one.noise_law
    if not law.seen:
        return []
    if law.refuted_at is None:
        found = f"{law.coordinates} values of noise have the stated law"
        level, enough = one.levels.noise, _law_holds(one)
        return [About(Statement.NOISE, NOISE_LAW, Speaks.FOR, Basis.TEST, found, level=level, needed=enough)]
    doubt = one.law_may_differ
    basis = Basis.HINT if doubt else Basis.TEST
    told = f"noise multiplier {one.stated_noise}; e-value {e_value(law.log_e_value)} by now"
    reason = f"{law.leading} ({told})" + (f"; {doubt}" if doubt else "")
    speaks = Speaks.ACCEPTED if NOISE_LAW in one.judging.ignore else Speaks.AGAINST
    return [About(Statement.NOISE, NOISE_LAW, speaks, basis, reason, law.refuted_at, one.levels.noise)]


def _law_holds(one: Watched) -> bool:
    """Was enough noise seen that half of it would have been refuted, and has all of it the stated law?"""
    law = one.noise_law
    return law.coordinates >= _ENOUGH and law.refuted_at is None and not one.law_may_differ


def _of_canaries(one: Watched) -> list[About]:
    """Coins are guessed from sums that went through clipping and noise: too well, if one of these is broken."""
    process = one.process

    def about(
        speaks: Speaks,
        reason: str,
        *,
        basis: Basis = Basis.TEST,
        step: int | None = None,
        remedy: str = "",
        needed: bool = True,
    ) -> list[About]:
        broken = speaks is Speaks.AGAINST and basis is Basis.TEST
        statement = Statement.CLIPPING if broken and _unclipped(one) else Statement.NOISE
        level = one.levels.coins
        return [About(statement, CANARIES, speaks, basis, reason, step, level, needed, remedy)]

    if one.refuted_at is not None:
        factor = one.noise_factor()
        limit = f"; the noise is at most {factor:.3g} × the stated" if factor < 1.0 else ""
        found = f"what it states of its steps is refuted (noise multiplier {one.stated_noise}; e-value "
        return about(Speaks.AGAINST, f"{found}{e_value(process.log_e_value)} by now){limit}", step=one.refuted_at)
    why = one.says_nothing()
    if why:  # the noise itself, seen in every parameter and step, tells as much
        seen = bool(one.not_audited) and _law_holds(one)
        remedy = ALL_RANKS if one.facts.several_processes else MODEL_CANARIES
        return about(Speaks.NOT, why, remedy=remedy, needed=not seen)
    factor, power = one.noise_factor(), one.power()
    limit = f"the noise is at most {factor:.3g} × the stated" if math.isfinite(factor) else "nothing is known of it"
    steps = "1 step does" if process.steps == 1 else f"{process.steps} steps do"
    found = f"{steps} not refute the stated noise (noise multiplier {one.stated_noise}); {limit}"
    if process.log_e_value >= -math.log(DOUBTFUL):
        doubt = f"{found}, but the evidence points that way (e-value {e_value(process.log_e_value)})"
        return about(Speaks.AGAINST, doubt, basis=Basis.HINT, remedy=_enough(one))
    half = f"{found}; of simulated trainings with half of the noise, {simulated(power)} are refuted"
    if power < ENOUGH_POWER:
        # Where the noise itself is seen, half of it would have been refuted by few of its values.
        return about(Speaks.NOT, half, remedy=_enough(one), needed=not _law_holds(one))
    return about(Speaks.FOR, half)


def _enough(one: Watched) -> str:
    return what_is_enough(one.made.noise_multiplier, one.made.canaries, one.process.steps)


def _unclipped(one: Watched) -> bool:
    """Do canaries add more than C, or has a check found such clipping, where the noise itself is right?"""
    failed = {check.name for check in one.checks if check.status is Status.FAILED}
    return one.unclipped.since is not None or (bool(failed & set(CLIPPING_CHECKS)) and NOISE_SCALE not in failed)
