"""Batches as the accountant believes them to be: Poisson sampling at the rate that it counts, empty batches too."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import special

from epsilometer.arrays import Floats
from epsilometer.statements import Basis
from epsilometer.watching.checks.check import CHANCE, Finding, failed, not_applicable, passed
from epsilometer.watching.facts import Facts, Sampling

_UNKNOWN = "batch sizes could not be seen"
_SEVERAL = "several processes: each has a part of the batch only"


def sampler(facts: Facts) -> Finding:
    """Poisson sampling is what accountants assume; equal batches are what shuffling gives."""
    seen = _of(facts)
    if not seen.poisson and not seen.own:
        found, first = "poisson_sampling=False", "leave it at True"
        if seen.by_hand:
            found, first = "a loader that draws no Poisson samples", "iterate over a DPDataLoader"
        return failed(
            found, "Poisson sampling, which the accountant assumes",
            f"{first}; shuffled batches can leak several times more than is accounted (arXiv 2411.10614)",
            basis=Basis.COUNTEREXAMPLE,
        )  # fmt: skip
    records, sizes = seen.records, seen.sizes
    if why := _unseen(facts):
        return not_applicable(why)
    assert records is not None
    rate = sample_rate_of(facts)
    size, times = most_frequent(sizes)
    chance = chance_of_repeats(records, rate, len(sizes), times)
    if chance < CHANCE:
        return failed(
            f"{times} of {len(sizes)} batches have exactly {size} records",
            f"sizes that vary, as Poisson sampling at rate {rate:.4g} gives (chance {chance:.0e})",
            "iterate over the loader that make_private returned, not over the original one",
        )
    if times == len(sizes) and rate < 1:
        return not_applicable(f"{len(sizes)} batches of {size} records are too few to tell Poisson sampling from equal")
    if not seen.poisson:
        return failed(
            f"{seen.own}, a sampler of the script's own, whose {len(sizes)} batches could be Poisson samples",
            "a sampler that is known", "--assume sampling, if it draws as is accounted",
            basis=Basis.HINT,
        )  # fmt: skip
    return passed(f"Poisson sampling; {len(sizes)} batches of {min(sizes)} to {max(sizes)} records")


def sample_rate(facts: Facts) -> Finding:
    """A record must not be in batches more often than is accounted; less often is no harm."""
    seen = _of(facts)
    if why := _unseen(facts):
        return not_applicable(why)
    records, sizes, rate, own = seen.records, seen.sizes, sample_rate_of(facts), seen.loader_rate
    assert records is not None
    remedy = "account with the rate of the loader that is iterated over: give that loader to make_private"
    if own is not None and own > rate * (1 + 1e-9):
        return failed(
            f"loader samples at rate {own:.4g}", f"the accounted rate {rate:.4g}", remedy, basis=Basis.COUNTEREXAMPLE
        )
    total, expected = sum(sizes), records * rate * len(sizes)
    chance = float(special.bdtrc(total - 1.0, records * len(sizes), min(rate, 1.0)))
    found = f"{total / len(sizes):.4g} records a batch over {len(sizes)} steps"
    if chance < CHANCE and total > expected + len(sizes):  # whole batches of shuffled data are rounded up
        return failed(found, f"{records * rate:.4g}, the accounted rate {rate:.4g} of {records} records", remedy)
    remark = ""
    if seen.divisor is not None and abs(seen.divisor - records * rate) > 1:
        remark = f"; sums are divided by {seen.divisor:g}, which changes the step, not the privacy"
    return passed(f"{found}, accounted {records * rate:.4g} (rate {rate:.4g}){remark}")


def empty_batches(facts: Facts) -> Finding:
    """A step without records is a step: skipped, it tells that no record was there."""
    seen = _of(facts)
    if not seen.poisson:
        return not_applicable("no Poisson sampling")
    if why := _unseen(facts):
        return not_applicable(why)
    records, sizes = seen.records, seen.sizes
    assert records is not None
    chance = (1 - min(sample_rate_of(facts), 1.0)) ** records
    none = sizes.count(0)
    if none:
        return passed(f"{none} of {len(sizes)} batches were empty and took their step")
    if (1 - chance) ** len(sizes) < CHANCE:
        return failed(
            f"no empty batch in {len(sizes)} steps", f"about {chance * len(sizes):.3g}",
            "take a step on an empty batch too: noise alone, accounted; or use a larger sample rate",
        )  # fmt: skip
    return not_applicable(f"empty batches are rare here: {chance * len(sizes):.2g} expected in {len(sizes)} steps")


def _of(facts: Facts) -> Sampling:
    assert facts.sampling is not None
    return facts.sampling


def _unseen(facts: Facts) -> str:
    """Why nothing can be said of sizes; empty if it can."""
    seen = _of(facts)
    if facts.several_processes:
        return _SEVERAL
    if seen.records is None or not seen.sizes:
        return _UNKNOWN if facts.steps and facts.steps.taken else "no private step was taken"
    return "" if sample_rate_of(facts) else "no sample rate is known"


def sample_rate_of(facts: Facts) -> float:
    """As accounted, on average over steps; the loader's where nothing was accounted."""
    if facts.accounted and facts.accounted.steps:
        history = np.array(facts.accounted.history)
        return float(np.average(history[:, 1], weights=history[:, 2]))
    batches = _of(facts).loader_batches
    return 1 / batches if batches else 0.0


def most_frequent(sizes: list[int]) -> tuple[int, int]:
    values, counts = np.unique(sizes, return_counts=True)
    best = int(np.argmax(counts))
    return int(values[best]), int(counts[best])


def chance_of_repeats(records: int, rate: float, steps: int, times: int) -> float:
    """At most the probability that some size comes up `times` times or more under Poisson sampling."""
    spread = 12 * np.sqrt(records * rate) + 12
    sizes = np.arange(max(0, int(records * rate - spread)), min(records, int(records * rate + spread)) + 1)
    each = _binomial(sizes, records, min(rate, 1.0))
    return min(1.0, float(special.bdtrc(times - 1.0, steps, each).sum()))


def _binomial(sizes: NDArray[np.int64], records: int, rate: float) -> Floats:
    """The probability of each size; scipy.stats has it too, and takes half a second to import."""
    ways = special.gammaln(records + 1) - special.gammaln(sizes + 1) - special.gammaln(records - sizes + 1)
    found: Floats = np.exp(ways + special.xlogy(sizes, rate) + special.xlog1py(records - sizes, -rate))
    return found
