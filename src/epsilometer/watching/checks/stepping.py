"""What happens around the private step: its divisor, weights that move between two steps, sums that are read."""

from __future__ import annotations

import numpy as np

from epsilometer.watching.checks.check import Finding, failed, not_applicable, passed
from epsilometer.watching.facts import Facts

_SAME = 1e-4
_SIZES = 3  # batches of different sizes, of which no other divisor follows all


def divisor(facts: Facts) -> Finding:
    """The size of a Poisson batch is as secret as its records: a step that is divided by it tells it."""
    assert facts.divisors is not None
    seen = np.array(facts.divisors.steps).reshape(-1, 3)
    records, divisors, rates = seen.T
    if len(np.unique(records)) < _SIZES:
        return not_applicable("fewer than three batches of different sizes")
    exact = np.abs(divisors / records - 1) < _SAME
    followed = [len(np.unique(records[exact])) >= _SIZES, _constant(divisors / records)]
    followed.append(_constant(divisors / rates / records) if (rates > 0).all() else False)
    if any(followed):
        return failed(
            f"noisy sums were divided by the number of records in the batch ({int(records[0])}, {int(records[1])}, …), "
            "or the learning rate was", "one divisor, whatever the batch: with one record more it is another one",
            "divide by the expected size of a batch (optimizer.expected_batch_size)",
        )  # fmt: skip
    return passed(f"the divisor does not follow the size of the batch in {len(records)} steps")


def _constant(values: np.ndarray) -> bool:
    return bool(np.abs(values / values[0] - 1).max() < _SAME)


def between_steps(facts: Facts) -> Finding:
    """Averages of weights and the like may be as private as the weights; what a record moves is not."""
    seen = facts.between
    assert seen is not None
    if seen.moved:
        return failed(
            f"{seen.moved} was moved between private steps {seen.step} and {seen.step + 1}", "weights that rest there",
            "nothing but the private step may move weights, unless that knows no record: replayed neighbours tell",
            step=seen.step + 1,
        )  # fmt: skip
    if not seen.compared:
        return not_applicable("fewer than two private steps")
    return passed(f"weights rested between private steps ({seen.compared} times)")


def inner_optimizer(facts: Facts) -> Finding:
    """It is to see noisy gradients only."""
    assert facts.between is not None
    if facts.between.reads:
        return failed(
            f"the optimizer within knows sums before noise: {facts.between.reads}", "noisy gradients only (p.grad)",
            "take p.grad in its place; replayed neighbours tell whether it matters",
        )  # fmt: skip
    return passed("the optimizer within reads noisy gradients only, as far as its code shows")
