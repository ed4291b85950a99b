"""ε of a watched training: from the noise that its steps were seen to have at most, by the accountant."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from epsilometer.errors import EpsilometerError
from epsilometer.rounding import confidence, down, up

if TYPE_CHECKING:
    from epsilometer.accounting import UpperBound
    from epsilometer.bounds import LowerBound, StrengthLimit

DELTA = 1e-5  # where nothing is said
FAMILY = "if its steps are Gaussian, each with the same share of its stated noise, on Poisson samples as accounted"
# Checks of what the sum over steps rests on: where one fails, it is the sum of another training.
PREMISES = ("sampler", "sample-rate", "empty-batches", "steps")
_MANY = 100  # kinds of steps: adding up more takes too long

History = Sequence[Sequence[float]]  # (noise multiplier, sample rate, steps), as Opacus' accountants keep it


@dataclass(frozen=True)
class EpsilonOfTraining:
    """Of a step, certified: μ is at least `strength`. Of all steps, in the family: ε is at least `lower`. By the
    accountant's history: at most `upper`. What is none is not measured, and `why` says why."""

    strength: StrengthLimit | None = None
    lower: LowerBound | None = None
    upper: UpperBound | None = None
    why: str = ""
    doubts: tuple[str, ...] = ()  # checks that failed, and without which nothing is promised

    def __str__(self) -> str:
        step = "" if self.strength is None else f"certified of a step: μ ≥ {down(self.strength.mu)}"
        doubt = f", which failed checks put in doubt ({', '.join(self.doubts)})" if self.doubts else ""
        promise = "" if self.upper is None else f"promised by what is accounted: ε ≤ {up(self.upper.epsilon)}{doubt}"
        if self.lower is None:
            found = f"ε: not measured, because {self.why}"
        else:
            at = f"at δ = {self.lower.delta:g} ({self.lower.relation}, {confidence(self.lower.confidence)})"
            found = f"ε ≥ {down(self.lower.epsilon)} {at} if all steps are Gaussian with the noise that was seen"
        return "; ".join(filter(None, [found, step, promise]))

    def to_dict(self) -> dict[str, Any]:
        return {
            "step_strength": None
            if self.strength is None
            else {**self.strength.to_dict(), "kind": self.strength.kind.value, "confidence": self.strength.confidence},
            "family_bound": self.lower and self.lower.to_dict(),
            "upper_bound": self.upper and self.upper.to_dict(),
            "assumes": FAMILY,
            "not_measured": self.why or None,
        }


def epsilon_of_training(
    history: History,
    factor: float,
    *,
    noise_multiplier: float,
    steps: int,
    scores: int,
    delta: float,
    sure: float,
    failed: Collection[str] = (),
) -> EpsilonOfTraining:
    """Of a training whose noise is at most `factor` times the stated (`noise_multiplier` at most); so many steps of it
    were seen.

    That limit refutes that *every* step has more noise, so one step at least has less. All of them do in the family.
    """
    from epsilometer.bounds import Kind, LowerBound, StrengthLimit

    try:
        upper = promised(history, delta)
    except EpsilometerError as error:
        return EpsilonOfTraining(why=f"its accountant's history makes no sense ({error})")
    strength = None
    if math.isfinite(factor):
        strength = StrengthLimit(1.0 / (factor * noise_multiplier), sure, "step-bets", Kind.CERTIFIED, scores)
    why = _why_not(history, factor, steps, failed)
    if why or strength is None:
        return EpsilonOfTraining(strength, upper=upper, why=why)
    lower = LowerBound(
        epsilon=_at_least(history, factor, delta),
        delta=delta,
        confidence=sure,
        relation=_relation(),
        method="DP-SGD with the noise of its steps, step-bets",
        kind=Kind.FAMILY,
        proof=strength,
    )
    return EpsilonOfTraining(strength, lower, upper)


def promised(history: History, delta: float) -> UpperBound | None:
    """What an accountant's history amounts to: by PLD where all steps are of one kind, else by RDP."""
    from epsilometer.accounting import Composition, DpSgd, account

    if not 1 <= len(history) <= _MANY:
        return None
    parts = [DpSgd(rate, sigma, int(steps)) for sigma, rate, steps in history]
    if len(parts) == 1:
        return account(parts[0], delta)
    whole = Composition(())
    for part in parts:
        whole = whole.plus(part.event, part.steps)
    return account(whole, delta, accountant="pld" if whole.dp_sgd else "rdp")


def promised_or_none(history: History, delta: float) -> UpperBound | None:
    """None where no accountant makes sense of the history."""
    with suppress(EpsilometerError):
        return promised(history, delta)
    return None


def _at_least(history: History, factor: float, delta: float) -> float:
    """ε of steps with `factor` times the stated noise. Of steps of several kinds, that of the most private ones: with
    the most noise and the smallest rate that any has."""
    from epsilometer.accounting import DpSgd, epsilon_floor

    sigma = factor * max(entry[0] for entry in history)
    rate = min(entry[1] for entry in history)
    total = sum(int(entry[2]) for entry in history)
    return epsilon_floor(DpSgd(rate, sigma, total), delta, _relation())


def _why_not(history: History, factor: float, steps: int, failed: Collection[str]) -> str:
    if not history:
        return "no accountant's history was seen, so sample rate and number of steps are not known"
    if any(entry[0] == 0 for entry in history):
        return "a noise multiplier of 0 is accounted, which promises nothing"
    accounted = sum(int(entry[2]) for entry in history)
    if accounted != steps:
        return f"{accounted} steps are accounted, and {steps} were seen"
    broken = [name for name in PREMISES if name in failed]
    if broken:
        return f"it does not train as is accounted (failed checks: {', '.join(broken)})"
    if not math.isfinite(factor):
        return "too few steps were seen to say anything of their noise"
    return ""


def _relation() -> Any:
    from epsilometer.claims import Relation

    return Relation.ADD_REMOVE  # what Opacus' accountants count
