"""A loop by hand: what one record moves in it, in units of its noise."""

from __future__ import annotations

import numpy as np
from scipy import special

from epsilometer.statements import Basis
from epsilometer.watching.checks.check import CHANCE, Finding, failed, not_applicable, passed
from epsilometer.watching.checks.sampling import chance_of_repeats, most_frequent
from epsilometer.watching.facts import Effective, Facts

_LITTLE = 2.0 / 0.9  # times the stated multiplier: no record moved .9·C
_STEPS = 3
_NORMAL = 0.9  # of the noise: the rest may be dropout, or noise of another kind
_RECORDS = "by the records tried"


def effective_noise(facts: Facts) -> Finding:
    """Where a record reaches, there is noise, and as much as is stated."""
    seen = _of(facts)
    if seen.silent:
        where = "any tensor" if seen.whole else _names(seen.silent)
        return failed(
            f"a changed record reaches {where} in {seen.silent_steps} steps, and no random number does",
            f"noise multiplier {seen.stated:g} in every step and tensor that a record reaches",
            "add noise to all of them", step=seen.silent_step,
        )  # fmt: skip
    if seen.repeated >= _STEPS:
        return failed(
            f"the noise of {seen.repeated} steps is that of the step before, or its negative",
            "fresh noise in every step: what is the same twice can be taken off",
            "draw it anew in every step, by a generator that is seeded once at most",
        )
    least = _least(seen)
    if least is not None and least < seen.stated and not seen.clipping:
        return failed(
            f"effective noise multiplier at most {least:.3g} {_RECORDS} ({_kinds(seen)})",
            f"{seen.stated:g}, as stated",
            "noise of σ·C on the sum, or σ·C/L on its mean over L records, in all tensors",
            step=seen.step,
        )  # fmt: skip
    if why := _too_little(seen, least):
        return not_applicable(why)
    if seen.normal < _NORMAL:
        return not_applicable(
            f"effective noise multiplier at most {least:.3g} {_RECORDS}, but only {seen.normal:.0%} of what is random "
            "in a step are normal numbers that are drawn after its batch: the rest may be dropout, or other noise"
        )
    return passed(f"effective noise multiplier at most {least:.3g} {_RECORDS} ({_kinds(seen)}), {seen.stated:g} stated")


def effective_clipping(facts: Facts) -> Finding:
    """Records of every kind move a step by what noise is made for."""
    seen = _of(facts)
    least = _least(seen)
    if least is not None and least < seen.stated and seen.clipping:
        return failed(
            f"{seen.clipping} (effective noise multiplier at most {least:.3g} {_RECORDS}: {_kinds(seen)})",
            f"twice the clip norm at most, so {seen.stated:g} or more",
            "clip the gradient of every record by itself, over all tensors together", step=seen.step,
        )  # fmt: skip
    if least is not None and least < seen.stated:
        return not_applicable("noise is too small for what a record moves: the norm that is clipped to is not known")
    if why := _too_little(seen, least):
        return not_applicable(why)
    return passed(
        f"records of {len(seen.kinds)} kinds in {seen.compared} steps: {_kinds(seen)}, {seen.stated:g} stated"
    )


def effective_sampling(facts: Facts) -> Finding:
    """Batches are no larger than is accounted, and vary as Poisson samples do."""
    seen = _of(facts)
    if seen.rate is None:
        return not_applicable("no sample rate is stated (--sample-rate)")
    if not seen.sizes or seen.records is None:
        return not_applicable("which records a step takes was not seen")
    # The usual batch counts: now and then a look at the model takes records, too.
    total, expected = int(np.median(seen.sizes)) * len(seen.sizes), seen.records * seen.rate * len(seen.sizes)
    chance = float(special.bdtrc(total - 1.0, seen.records * len(seen.sizes), seen.rate))
    found = f"{total / len(seen.sizes):.4g} of {seen.records} records a batch over {len(seen.sizes)} steps"
    if chance < CHANCE and total > expected + len(seen.sizes):  # whole batches are rounded up
        expects, basis = (
            f"{seen.records * seen.rate:.4g}, at the rate {seen.rate:g}",
            None if seen.loaded else Basis.HINT,
        )
        return failed(found, expects, "account with the true rate", basis=basis)
    size, times = most_frequent(seen.sizes)
    if seen.rate < 1 and chance_of_repeats(seen.records, seen.rate, len(seen.sizes), times) < CHANCE:
        return failed(
            f"{times} of {len(seen.sizes)} batches have {size} records", "sizes that vary as of Poisson samples",
            "sample by Poisson, which accountants assume, or --assume sampling if yours does not", basis=Basis.HINT,
        )  # fmt: skip
    if times == len(seen.sizes) and seen.rate < 1:
        return not_applicable(f"{times} batches of {size} records are too few to tell Poisson samples from equal ones")
    return passed(f"{found}, of {min(seen.sizes)} to {max(seen.sizes)}; rate {seen.rate:g}")


def _too_little(seen: Effective, least: float | None) -> str:
    """Why records that were tried test nothing; empty if they do."""
    rest = f"; not compared: {'; '.join(seen.untested)}" if seen.untested else ""
    if least is None or seen.compared < _STEPS:
        return f"a changed record was in {seen.compared} steps of {seen.steps}{rest}"
    if least > _LITTLE * seen.stated:
        return f"no changed record moved a step by .9 times the norm that noise is made for ({_kinds(seen)}){rest}"
    return f"effective noise multiplier at most {least:.3g} {_RECORDS}{rest}" if seen.untested else ""


def _least(seen: Effective) -> float | None:
    return min(seen.kinds.values(), default=None)


def _kinds(seen: Effective) -> str:
    return "; ".join(f"{kind}: {value:.3g}" for kind, value in seen.kinds.items())


def _names(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more}"


def _of(facts: Facts) -> Effective:
    assert facts.effective is not None
    return facts.effective
