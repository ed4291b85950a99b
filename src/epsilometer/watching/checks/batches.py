"""Batches that know of each other: Poisson sampling draws each anew, whoever was in those before."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from epsilometer.statements import Basis
from epsilometer.watching.checks.check import CHANCE, Finding, failed, not_applicable, passed
from epsilometer.watching.checks.sampling import sample_rate_of
from epsilometer.watching.facts import Batches, Facts

_EXPECTED = "batches in which every record is with the same probability, whatever came before"
_REMEDY = "iterate over the loader that make_private returned"
_COMPARED = 4096  # sizes, each with all others
_LONGEST = 20  # times the usual number of batches until all records were drawn once


def batches(facts: Facts) -> Finding:
    """By the records of which batches were made where loaders drew them, else by their sizes."""
    seen, steps, sampling = facts.batches, facts.steps, facts.sampling
    assert seen is not None
    assert steps is not None
    why = ""
    if facts.several_processes:
        why = "several processes: each has a part of the batch only"
    elif not steps.taken:
        why = "no private step was taken"
    elif sampling is not None and not (sampling.poisson or sampling.own):
        why = "no Poisson sampling"
    if why:
        return not_applicable(why)
    if seen.apart > 1 and seen.log_chance < math.log(CHANCE):
        return failed(
            f"no record came twice in the first {seen.apart} batches (chance "
            f"10^{seen.log_chance / math.log(10):.0f}), as in epochs of shuffled data",
            _EXPECTED, _REMEDY, step=seen.apart,
        )  # fmt: skip
    if seen.same and seen.same[2] < math.log(CHANCE) - 2 * math.log(max(seen.known, 1)):
        first, second, _ = seen.same
        remedy = "never seed again the generator from which batches are drawn"
        return failed(f"steps {first:g} and {second:g} have the same batch", _EXPECTED, remedy, step=int(second))
    again = _sizes_again(facts)
    if again:
        remedy = "draw each batch when its step is taken: keep none, cycle none, take one step on each"
        return failed(again, _EXPECTED, remedy)
    epochs = _whole_epochs(facts)
    if epochs:
        return failed(f"the sizes of batches add up to the number of records, {epochs} times", _EXPECTED, _REMEDY)
    return _drawn_by(seen, steps.taken, sample_rate_of(facts))


def copies(facts: Facts) -> Finding:
    """A record that is in the data set several times is drawn as often, and every copy adds C."""
    seen = facts.copies
    assert seen is not None
    if seen.several:
        return failed(
            f"{seen.several} of {seen.records} records are in the data set up to {seen.most} times, so that each is "
            f"sampled up to {seen.most} times as often, and may be in one batch as often",
            "each once", "weigh records in a way that is fixed beforehand, or promise for as many records at once",
        )  # fmt: skip
    return passed(f"{seen.records} records, each once")


def _drawn_by(seen: Batches, steps: int, rate: float) -> Finding:
    never = f"the loader that make_private returned was never iterated over: in {steps} steps"
    if not seen.poisson and 0 < seen.plain == seen.other and 0 < rate < 1:
        return failed(
            f"{never} all batches were drawn by a plain loader of torch, shuffled or in order", "Poisson sampling",
            _REMEDY, basis=Basis.COUNTEREXAMPLE, step=1,
        )  # fmt: skip
    if seen.poisson:
        return passed(f"{seen.known} batches of a Poisson sampler, which repeat records as chance has it")
    whose = f"{seen.other} batches came from another loader" if seen.other else "batches came from no loader of torch"
    return failed(
        f"{never} {whose}", "Poisson sampling",
        f"{_REMEDY}, or show in another way that records are drawn as accounted", basis=Basis.HINT,
    )  # fmt: skip


def _whole_epochs(facts: Facts) -> int:
    """How often sizes add up to the number of records, if they do so every time and that is no chance."""
    sampling = facts.sampling
    if sampling is None or sampling.records is None or not sampling.sizes:
        return 0
    records, rate = sampling.records, sample_rate_of(facts)
    if not 0 < rate < 1:
        return 0
    sums = set(np.cumsum(sampling.sizes).tolist())
    hits = 0
    while (hits + 1) * records in sums:
        hits += 1
    # Sums of sizes begin anew wherever they have come to; the chance that they come by exactly this number.
    many = np.arange(1, int(_LONGEST / rate) + 2)
    once = float(stats.binom.pmf(records, many * records, rate).sum())
    return hits if hits * math.log(max(once, 1e-300)) < math.log(CHANCE) else 0


def _sizes_again(facts: Facts) -> str:
    """Which batches have the sizes of earlier ones, if Poisson sampling does not give that by chance.

    Given all sizes before, a new one equals a certain one of them with the probability of the likeliest at most. So the
    number of those that do, at one distance, is binomial at most, and a run of them has that power as a limit; in any
    order, there are as many such runs as orders."""
    sampling = facts.sampling
    if sampling is None or sampling.records is None or not 0 < sample_rate_of(facts) < 1:
        return ""
    sizes, rate = np.array(sampling.sizes[:_COMPARED]), sample_rate_of(facts)
    steps, level = len(sizes), CHANCE / 3
    likeliest = float(stats.binom.pmf(int((sampling.records + 1) * rate), sampling.records, rate))
    if steps < 2 or not 0 < likeliest < 1:
        return ""
    run = math.log(level / steps**2) / math.log(likeliest)
    rare = level / steps
    for lag in range(1, steps):
        same = sizes[lag:] == sizes[:-lag]
        ends = np.flatnonzero(np.concatenate([[True], ~same, [True]]))
        # A test in the tail takes its time: most distances are far from it.
        many = same.sum() > 1.5 * likeliest * len(same) and stats.binom.sf(same.sum() - 1, len(same), likeliest) < rare
        if many or (np.diff(ends) - 1).max() > run:
            return f"{same.sum()} of {steps - lag} batches have the size of that {lag} before"
    for length in range(2, steps // 2 + 1):
        parts = np.sort(sizes[: steps // length * length].reshape(-1, length), axis=1)
        chance = (len(parts) - 1) * (math.lgamma(length + 1) + length * math.log(likeliest))
        if chance < math.log(rare) and (parts == parts[0]).all():
            return f"each {length} batches have the sizes of the {length} before, in another order"
    return ""


def record_rows(facts: Facts) -> Finding:
    """Clipping limits a row of gradients: it should be that of one record."""
    seen = facts.batches
    assert seen is not None
    if not (seen.known or seen.more or seen.fewer):
        return not_applicable("batches came from no loader of torch")
    if seen.more:
        return failed(
            f"in {seen.more} batches there were {seen.times or 'more'} gradients to clip for "
            f"{'every record' if seen.times else 'fewer records'}: one that has several adds C with each of them",
            "one row of gradients a record", "average the rows of a record before clipping",
        )  # fmt: skip
    if seen.fewer:
        return failed(
            f"in {seen.fewer} batches there were fewer gradients to clip than records: one of several in a row moves "
            "it by 2·C at most, not C", "one row of gradients a record", "clip the gradient of every record by itself",
        )  # fmt: skip
    return passed(f"one row of gradients a record in {seen.known} batches")
