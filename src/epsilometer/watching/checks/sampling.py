"""Batches as the accountant believes them to be: Poisson sampling at the rate that it counts, empty batches too."""

from __future__ import annotations

import numpy as np
from scipy import stats

from epsilometer.watching.checks.check import CHANCE, Finding, failed, not_applicable, passed
from epsilometer.watching.checks.seen import SeenTraining

_UNKNOWN = "batch sizes could not be seen"
_SEVERAL = "several processes: each has a part of the batch only"


def sampler(seen: SeenTraining) -> Finding:
    """Poisson sampling is what accountants assume; equal batches are what shuffling gives."""
    if not seen.poisson:
        return failed(
            "poisson_sampling=False", "Poisson sampling, which the accountant assumes",
            "leave it at True; shuffled batches can leak several times more than is accounted (arXiv 2411.10614)",
        )  # fmt: skip
    records, sizes = seen.records, seen.batch_sizes
    if seen.several_processes:
        return not_applicable(_SEVERAL)
    if records is None or not sizes:
        return not_applicable(_no_steps(seen))
    rate = _rate(seen)
    size, times = _most_frequent(sizes)
    chance = _chance_of_repeats(records, rate, len(sizes), times)
    if chance < CHANCE:
        return failed(
            f"{times} of {len(sizes)} batches have exactly {size} records",
            f"sizes that vary, as Poisson sampling at rate {rate:.4g} gives (chance {chance:.0e})",
            "iterate over the loader that make_private returned, not over the original one",
        )
    if times == len(sizes) and rate < 1:
        return not_applicable(f"{len(sizes)} batches of {size} records are too few to tell Poisson sampling from equal")
    return passed(f"Poisson sampling; {len(sizes)} batches of {min(sizes)} to {max(sizes)} records")


def sample_rate(seen: SeenTraining) -> Finding:
    """A record must not be in batches more often than is accounted; less often is no harm."""
    records, sizes = seen.records, seen.batch_sizes
    if seen.several_processes:
        return not_applicable(_SEVERAL)
    if records is None or not sizes:
        return not_applicable(_no_steps(seen))
    rate, own = _rate(seen), getattr(seen.loader, "sample_rate", None)
    remedy = "account with the rate of the loader that is iterated over: give that loader to make_private"
    if own is not None and float(own) > rate * (1 + 1e-9):
        return failed(f"loader samples at rate {float(own):.4g}", f"the accounted rate {rate:.4g}", remedy)
    total, expected = sum(sizes), records * rate * len(sizes)
    chance = float(stats.binom.sf(total - 1, records * len(sizes), min(rate, 1.0)))
    found = f"{total / len(sizes):.4g} records a batch over {len(sizes)} steps"
    if chance < CHANCE and total > expected + len(sizes):  # whole batches of shuffled data are rounded up
        return failed(found, f"{records * rate:.4g}, the accounted rate {rate:.4g} of {records} records", remedy)
    divisor = seen.optimizer.expected_batch_size
    remark = ""
    if seen.optimizer.loss_reduction == "mean" and divisor is not None and abs(divisor - records * rate) > 1:
        remark = f"; sums are divided by {divisor:g}, which changes the step, not the privacy"
    return passed(f"{found}, accounted {records * rate:.4g} (rate {rate:.4g}){remark}")


def empty_batches(seen: SeenTraining) -> Finding:
    """A step without records is a step: skipped, it tells that no record was there."""
    records, sizes = seen.records, seen.batch_sizes
    if not seen.poisson:
        return not_applicable("no Poisson sampling")
    if seen.several_processes:
        return not_applicable(_SEVERAL)
    if records is None or not sizes:
        return not_applicable(_no_steps(seen))
    chance = (1 - min(_rate(seen), 1.0)) ** records
    none = sizes.count(0)
    if none:
        return passed(f"{none} of {len(sizes)} batches were empty and took their step")
    if (1 - chance) ** len(sizes) < CHANCE:
        return failed(
            f"no empty batch in {len(sizes)} steps", f"about {chance * len(sizes):.3g}",
            "take a step on an empty batch too: noise alone, accounted; or use a larger sample rate",
        )  # fmt: skip
    return not_applicable(f"empty batches are rare here: {chance * len(sizes):.2g} expected in {len(sizes)} steps")


def _rate(seen: SeenTraining) -> float:
    """As accounted, on average over steps; the loader's where nothing was accounted."""
    if seen.accounted:
        return float(np.mean([rate for _, rate in seen.accounted]))
    return 1 / len(seen.loader)


def _most_frequent(sizes: list[int]) -> tuple[int, int]:
    values, counts = np.unique(sizes, return_counts=True)
    best = int(np.argmax(counts))
    return int(values[best]), int(counts[best])


def _chance_of_repeats(records: int, rate: float, steps: int, times: int) -> float:
    """At most the probability that some size comes up `times` times or more under Poisson sampling."""
    spread = 12 * np.sqrt(records * rate) + 12
    sizes = np.arange(max(0, int(records * rate - spread)), min(records, int(records * rate + spread)) + 1)
    each = stats.binom.pmf(sizes, records, min(rate, 1.0))
    return min(1.0, float(stats.binom.sf(times - 1, steps, each).sum()))


def _no_steps(seen: SeenTraining) -> str:
    return _UNKNOWN if seen.steps else "no private step was taken"
