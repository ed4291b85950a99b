"""Scores of releases: each of its own release only, whatever else is in the block."""

import numpy as np

from epsilometer.adversaries import game
from epsilometer.auditing import Outcome, audit_mechanism, mechanism_plan
from epsilometer.subjects import Observer


def observer() -> Observer:
    plan = mechanism_plan("randomized-response", epsilon=1.0, runs=400)
    made = plan.adversary.craft(plan.subject, plan.relation, plan.prepare().arrays)
    assert isinstance(made, game.Game)
    return made.observe()


def scores(block: list[float]) -> list[float]:
    seen = observer()
    seen.finish(np.array(block)[:, None])
    return np.asarray(seen.score()).tolist()


def test_a_release_is_scored_by_itself() -> None:
    """A tie was once broken by a hash of the whole block: a score then told of its neighbours' releases."""
    alone = {answer: scores([answer])[0] for answer in (0.0, 1.0)}
    assert alone[0.0] != alone[1.0]
    for block in ([0.0] * 5, [0.0, 0.0, 1.0, 0.0, 1.0], [1.0, 0.0]):
        assert scores(block) == [alone[answer] for answer in block]


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
