"""An audit that is given seconds: trials are chosen before scores are seen, and time that is out accuses nobody."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import epsilometer
from epsilometer.accounting import DpSgd
from epsilometer.auditing import OutOfBudget, Plan, budget, run
from epsilometer.auditing.budget import MOST, Deadline, coarse, trials_that_fit, within
from epsilometer.errors import InvalidInput
from epsilometer.evidence import IN, OUT, Trial
from epsilometer.runs import MemoryStore
from epsilometer.runs.executors import Inline
from epsilometer.runs.executors.executor import Job
from epsilometer.runs.groups import Played
from epsilometer.runs.progress import Snapshot
from epsilometer.seeds import seed_of

DATA = (np.random.default_rng(0).normal(size=(40, 5)), np.arange(40) % 2)
PROMISE = DpSgd(sample_rate=1.0, noise_multiplier=1.0, steps=1)


def train(data: Any, seed: int) -> Any:
    clipped = data.x / np.maximum(1.0, np.linalg.norm(data.x, axis=1, keepdims=True))
    sums = np.stack([clipped[data.y == label].sum(axis=0) for label in (0, 1)])
    sums += np.random.default_rng(seed).normal(size=sums.shape)
    return lambda points: points @ sums.T


def audit(function: Any = train, **settings: Any) -> Any:
    return epsilometer.audit(function, data=DATA, claim=PROMISE, isolation="here", **settings)


@pytest.fixture(scope="module")
def plan() -> Plan:
    found: Plan = audit(trials=20, noise_limit=False).plan
    return found


def test_the_trials_that_fit_are_those_of_an_audit_with_as_many() -> None:
    found = audit(budget_seconds=600.0, trials=50)
    again = audit(trials=50, noise_limit=False)
    assert found.plan.fingerprint() == again.plan.fingerprint()
    for side in ("out_scores", "in_scores"):  # the timing has left nothing behind
        np.testing.assert_array_equal(getattr(found.evidence, side), getattr(again.evidence, side))
    assert found.verdict == again.verdict
    assert found.noise_limit is None


@pytest.mark.parametrize(
    ("most", "seconds", "before", "each", "expected"),
    [
        (None, 1000.0, 1.0, 0.001, MOST),  # however many would fit
        (5000, 1000.0, 1.0, 0.001, 5000),
        (None, 100.0, 0.0, 1.0, 70),  # seven tenths of the time are planned
        (None, 100.0, 10.0, 1.0, 50),  # 60 would fit: a round number
        (None, 100.0, 49.9, 1.0, 20),
        (10, 100.0, 59.9, 1.0, 10),  # who says fewer wants fewer
    ],
)
def test_as_many_trials_as_fit(
    plan: Plan, most: int | None, seconds: float, before: float, each: float, expected: int
) -> None:
    assert trials_that_fit(replace(plan, trials=most), seconds, before, 0.5, each) == expected


def test_too_few_that_fit_are_none(plan: Plan) -> None:
    with pytest.raises(OutOfBudget, match=r"takes about 0.5 s, and the fewest that say anything 101 s"):
        trials_that_fit(replace(plan, trials=None), 100.0, 50.1, 0.5, 1.0)


def test_a_training_that_takes_too_long_is_hardly_played() -> None:
    calls = []

    def slow(data: Any, seed: int) -> Any:
        calls.append(seed)
        time.sleep(0.3)
        return train(data, seed)

    with pytest.raises(OutOfBudget, match=r"budget_seconds = 0\.5: one training takes about"):
        audit(slow, budget_seconds=0.5)
    assert len(calls) <= 2


def test_trials_that_take_longer_than_there_is_time_end_without_a_verdict(plan: Plan) -> None:
    late = Deadline(1.0, time.perf_counter() - 2)
    with pytest.raises(OutOfBudget, match="trainings took longer than the first ones"):
        run(plan, late.watching(None))


def test_time_that_is_out_is_noticed() -> None:
    now = Snapshot(3, 10, None, None)
    told: list[Snapshot] = []
    Deadline(1000.0).watching(told.append)(now)
    assert told == [now]
    with pytest.raises(OutOfBudget, match="only 3 of 10 were finished"):
        Deadline(1.0, time.perf_counter() - 2).watching(None)(now)


def test_canaries_are_as_many_trainings_as_their_attack_says() -> None:
    assert audit(budget_seconds=600.0, adversary="canaries").plan.planned_trials == 1


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf"), "soon"])
def test_seconds_are_a_number(seconds: Any) -> None:
    with pytest.raises(InvalidInput, match="budget_seconds"):
        audit(budget_seconds=seconds)


def test_a_budget_cannot_be_continued(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="nothing beside `out`"):
        epsilometer.audit(train, data=DATA, claim=PROMISE, budget_seconds=9.0, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_round_numbers_are_no_larger_and_lose_little() -> None:
    assert all(0.6 * count <= coarse(count) <= count for count in range(20, 20_000))


class Telling:
    """Trials of a training that leaks nothing, whose run time tells the scores: it is long where they look like a leak.
    Then few trials fit, and all of those were timed."""

    most, pairs = 1000, 32  # trials of a world; and those that are timed last
    seconds = 100.0

    @classmethod
    def excess(cls, seed: int, pairs: int) -> float:
        """How many standard deviations the in-world lies above the other."""
        outs, ins = (np.random.default_rng(seed_of(seed, world)).normal(size=cls.most) for world in (OUT, IN))
        return float((ins - outs)[:pairs].sum() / math.sqrt(2 * pairs))

    @classmethod
    def play_group(cls, job: Job, trials: Sequence[Trial]) -> Played:
        long = len(trials) == 2 * cls.pairs and cls.excess(job.work.seed, cls.pairs) > 1.6449
        return Played(trials, {}, len(trials) * (0.008 * cls.seconds if long else 1e-4))


def test_a_run_time_that_tells_the_score_chooses_no_trials(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials were timed that were judged later, and their number followed their scores: 7.7 % false alarms at 5 %."""
    monkeypatch.setattr(budget, "play_group", Telling.play_group)
    monkeypatch.setattr(budget, "time", SimpleNamespace(perf_counter=lambda: 0.0))
    numbers, refuted, audits = set(), 0, 1500
    for seed in range(audits):
        asked = replace(plan, seed=seed, trials=Telling.most)
        count = within(asked, Deadline(Telling.seconds, 0.0), MemoryStore(), Inline()).planned_trials
        numbers.add(count)
        refuted += Telling.excess(seed, count) > 1.6449  # a test at 5 %, for any number that is fixed beforehand
    assert numbers == {30, Telling.most}
    assert refuted / audits < 0.067  # three standard deviations over 5 %


def test_trials_that_are_timed_are_not_judged() -> None:
    seeds: list[int] = []

    def noted(data: Any, seed: int) -> Any:
        seeds.append(seed)
        return train(data, seed)

    found = audit(noted, budget_seconds=600.0, trials=20)
    with_timing = Counter(seeds)
    seeds.clear()
    audit(noted, trials=20, noise_limit=False)
    timed = with_timing - Counter(seeds)
    assert found.plan.planned_trials == 20
    assert timed
    assert not set(timed) & set(seeds)
