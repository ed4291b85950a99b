"""The mean rule against an enumeration of all batches, and the truth of a step by integration."""

import itertools

import numpy as np
import pytest
from scipy import stats

from epsilometer.arrays import Floats
from epsilometer.instances import Batches, StepMoments, mean_rule, paired, sensitivity_distribution

GRADIENTS = np.array([1.0, 0.9, 0.8, -0.2, -1.0, 0.7])  # clipped to 1; of one parameter, so that truth is an integral
RATE, NOISE = 0.4, 1.5


def _law(rows: list[int], gradients: Floats, rate: float = RATE) -> tuple[Floats, Floats]:
    """All batches of these rows: the mean of each, and its probability."""
    means, chances = [], []
    for coins in itertools.product([0, 1], repeat=len(rows)):
        chosen = [row for row, coin in zip(rows, coins, strict=True) if coin]
        means.append(np.mean(gradients[chosen], axis=0) if chosen else np.zeros(gradients.shape[1:]))
        chances.append(rate ** len(chosen) * (1 - rate) ** (len(rows) - len(chosen)))
    return np.array(means), np.array(chances)


def _truth(record: int, order: float) -> float:
    """(α−1)·D_α of one step, the larger of both directions."""
    y = np.linspace(-40, 40, 20_001)
    rows = list(range(len(GRADIENTS)))
    laws = [_law(rows, GRADIENTS), _law([row for row in rows if row != record], GRADIENTS)]
    p, q = (np.logaddexp.reduce(np.log(c)[:, None] + stats.norm.logpdf(y, m[:, None], NOISE)) for m, c in laws)
    both = (order * p + (1 - order) * q, order * q + (1 - order) * p)
    return float(max(np.logaddexp.reduce(logs) for logs in both) + np.log(y[1] - y[0]))


def drawn(
    gradients: Floats, draws: int, tuples: int, order: int, seed: int, rate: float = RATE
) -> tuple[Batches, np.ndarray]:
    """Batches by the coin, and who is in them."""
    members = np.random.default_rng(seed).random((draws + tuples * order, len(gradients))) < rate
    sums = members @ gradients
    inner = sums[draws:].reshape(tuples, order, -1)
    batches = Batches(
        sizes=members.sum(axis=1),
        members=members,
        products=sums @ gradients.T,
        squares=np.square(sums).sum(axis=1),
        record_squares=np.square(gradients).sum(axis=1),
        tuple_products=inner @ inner.swapaxes(1, 2),
        cross_products=np.einsum("jp,kip->jki", sums[:draws], inner),
    )
    return batches, members


@pytest.mark.parametrize("order", [2, 3, 5])
def test_the_algebra_is_that_of_the_theorem(order: int) -> None:
    """Every record, draw and tuple by itself, in more than one dimension."""
    rng = np.random.default_rng(5)
    gradients = rng.standard_normal((7, 3))
    gradients /= np.maximum(1.0, np.linalg.norm(gradients, axis=1, keepdims=True))
    batches, members = drawn(gradients, 3, 4, 5, seed=6)
    found = sensitivity_distribution(batches, NOISE, order, 0.95)
    shifts = batches.shifts()

    def update(batch: np.ndarray, without: int | None) -> Floats:
        rows = [row for row in np.flatnonzero(batch) if row != without]
        return gradients[rows].mean(axis=0) if rows else np.zeros(3)

    for record in range(7):
        both = []
        for in_tuple, in_draw in ((None, record), (record, None)):
            logs = []
            for draw in members[:3]:
                v, values = update(draw, in_draw), []
                for group in members[3:].reshape(4, 5, -1):
                    u = [update(batch, in_tuple) for batch in group[:order]]
                    delta = sum(a @ a for a in u) - (order - 1) * v @ v
                    delta -= np.sum((sum(u) - (order - 1) * v) ** 2)
                    values.append(np.exp(-delta / (2 * NOISE**2)))
                logs.append(np.log(np.mean(values)))
            both.append(max(np.mean(logs), 0.0))
        assert found.estimate[record] == pytest.approx(max(both), rel=1e-9)
        for batch, shift in zip(members, shifts[:, record], strict=True):
            others = update(batch, record)
            joined = batch.copy()
            joined[record] = True
            assert shift == pytest.approx(np.linalg.norm(update(joined, None) - others), abs=1e-7)


def test_no_record_has_a_bound_below_its_truth() -> None:
    """Limits, and the exact expectations that the estimates tend to; and what the bounds are worth."""
    batches, _ = drawn(GRADIENTS[:, None], 8, 1000, 8, seed=1)
    step = StepMoments(RATE, NOISE)
    for order in (2, 4, 8):
        truth = np.array([_truth(record, order) for record in range(len(GRADIENTS))])
        first = paired(batches, step, order, 0.99)
        assert (first.limit >= first.estimate).all()
        assert (first.limit >= truth).all()
        assert (first.estimate >= truth * 0.97).all()  # 32,020 batches: the expectation itself, nearly
        assert (first.estimate < step.log_moments(1.0, order)).all()
        both = mean_rule(batches, step, order, 0.99)
        assert (both.limit >= truth).all()
        assert (both.limit <= step.of_levels(order)[-1]).all()
        second = sensitivity_distribution(batches, NOISE, order, 0.99)
        assert (second.limit >= truth).all()
        assert (second.estimate >= truth).all()


def test_few_draws_are_paid_for() -> None:
    """An estimate from few draws is often below the truth; the limit is not."""
    step, order = StepMoments(RATE, NOISE), 8
    exact = _paired_exactly(0, step, order)
    below, above = 0, 0
    for seed in range(200):
        few = paired(drawn(GRADIENTS[:, None], 2, 1, 8, seed)[0], step, order, 0.9)
        below += bool(few.estimate[0] < exact)
        above += bool(few.limit[0] >= exact)
    assert below > 60
    assert above >= 180


def _paired_exactly(record: int, step: StepMoments, order: float) -> float:
    rows = [row for row in range(len(GRADIENTS)) if row != record]
    means, chances = _law(rows, GRADIENTS)
    sizes = np.array([sum(coins) for coins in itertools.product([0, 1], repeat=len(rows))])
    shifts = np.abs(GRADIENTS[record] - means) / (sizes + 1)
    return float(np.log(chances @ np.exp(step.log_moments(shifts, order))))


def test_a_record_of_zeros_is_another_matter() -> None:
    """All gradients alike: who leaves moves no mean (but that of a batch of one), who is zeroed moves them all. So the
    bound is none for zero-out, and plans refuse it."""
    alike, rate, order = np.ones(6), 0.8, 4
    batches, _ = drawn(alike[:, None], 8, 1000, 8, seed=1, rate=rate)
    bound = paired(batches, StepMoments(rate, NOISE), order, 0.99).estimate[0]
    rows, y = list(range(6)), np.linspace(-40, 40, 20_001)
    laws = [_law(rows, alike, rate), _law(rows, np.array([0.0, *alike[1:]]), rate)]
    p, q = (np.logaddexp.reduce(np.log(c)[:, None] + stats.norm.logpdf(y, m[:, None], NOISE)) for m, c in laws)
    truth = float(np.logaddexp.reduce(order * q + (1 - order) * p) + np.log(y[1] - y[0]))
    assert bound < 0.1 * truth
