"""Scores of releases: each of its own release only, whatever else is in the block."""

import numpy as np
from scipy import stats

from epsilometer.auditing import Outcome, audit_mechanism, mechanism_plan


def scores(block: list[float], seed: int = 0) -> list[float]:
    """Of these releases, in a trial with this seed."""
    plan = mechanism_plan("randomized-response", epsilon=1.0, runs=400)
    made = plan.adversary.craft(plan.subject, plan.relation, plan.prepare().arrays)
    ((_, seen),) = made.parties([0], [np.random.SeedSequence(0)], [np.random.SeedSequence(seed)])
    seen.finish(np.array(block)[:, None])
    return np.asarray(seen.score()).tolist()


def test_a_release_is_scored_by_itself() -> None:
    """A tie was once broken by a hash of the whole block: a score then told of its neighbours' releases."""
    zeros, ones = scores([0.0] * 5), scores([1.0] * 5)
    assert not set(zeros) & set(ones)
    assert (min(ones) > max(zeros)) != (min(zeros) > max(ones))  # what is drawn only tells equal ones apart
    for block in ([0.0, 0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 0.0, 1.0, 1.0]):
        assert scores(block) == [(zeros, ones)[int(answer)][place] for place, answer in enumerate(block)]


def test_equal_scores_are_told_apart_by_what_is_drawn_for_each() -> None:
    here, there = scores([0.0] * 50), scores([0.0] * 50, seed=1)
    assert len({*here, *there}) == 100
    assert stats.kstest(np.argsort(np.argsort([*here, *there]))[:50] / 100, "uniform").pvalue > 0.01


def rarely_ashamed(value: float, rng: np.random.Generator, size: int) -> np.ndarray:
    """(0, 0.001)-DP: nearly always 0."""
    return (rng.random(size) < 1e-3 * value).astype(float)


def test_blocks_that_repeat_accuse_nobody() -> None:
    """With the hash this was `violated`: blocks of zeros were all alike, those with a one were not."""
    found = audit_mechanism(
        rarely_ashamed, epsilon=0.1, delta=1e-3, neighbours=(0.0, 1.0), sensitivity=1.0, runs=100_000, learning=20_000,
        executor="inline",
    )  # fmt: skip
    assert found.verdict.outcome is not Outcome.VIOLATED
