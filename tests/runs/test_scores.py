"""A trial gives one finite number, or one for each canary: anything else is neither stored nor judged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from epsilometer.adversaries import Canaries, Gradient
from epsilometer.auditing import Plan, run, spec_from_dict
from epsilometer.errors import InvalidInput
from epsilometer.report import write_scores
from epsilometer.runs import STORE, Executor, Inline, Local, MemoryStore, SqliteStore, run_directory
from epsilometer.runs.executors.executor import Job
from epsilometer.runs.groups import Played
from epsilometer.runs.scores import require_scores


@pytest.mark.parametrize("length", [None, 1, 3])
def test_many_at_once_are_as_one_by_one(length: int | None) -> None:
    """Numbers and arrays of one kind are checked together, anything else by itself; the same is accepted."""
    given = [np.array([0.5, 2.0, -1.0]) * scale for scale in (1.0, 1e300)] if length == 3 else [0.5, -2.0]
    trials = [(0, 0), (1, 0)]
    together = require_scores(dict(zip(trials, given, strict=True)), "api", length)
    for trial, value in zip(trials, given, strict=True):
        (alone,) = require_scores({trial: np.array(value, np.longdouble)}, "api", length).values()
        assert together[trial].tobytes() == alone.tobytes()
    for odd in (np.nan, np.ones((1, 3)), np.ones(2), True, "1"):
        with pytest.raises(InvalidInput, match="trial 0 of world 1"):
            require_scores(dict(zip(trials, [given[0], odd], strict=True)), "api", length)


PLAN = spec_from_dict({"training": {"steps": 3}, "audit": {"trials": 20}}).plan()
ONE_RUN = spec_from_dict(
    {"training": {"steps": 3}, "adversary": {"name": "canaries", "canaries": 60}, "audit": {"trials": 2}}
).plan()

ODD = {  # what an adversary may come to give, by mistake
    "fifty": (np.ones(50), r"array of shape \(50,\)"),
    "none at all": (np.ones(0), r"array of shape \(0,\)"),
    "not a number": (float("nan"), "nan"),
    "infinite": (float("-inf"), "-inf"),
    "nothing": (None, "is missing"),
    "text": ("0.5", "0.5"),
    "truth": (True, "True"),
    "objects": ([1.0, [2.0]], r"list \[1.0, \[2.0\]\]"),
}


@dataclass(frozen=True)
class Careless(Gradient):
    """Scores as it should, and once in a while as it should not."""

    name: ClassVar[str] = "careless"
    what: str = "fifty"
    when: tuple[int, int] = (1, 7)

    def craft(self, subject, relation, prepared):
        game = super().craft(subject, relation, prepared)
        trials = {0: iter(range(10**6)), 1: iter(range(10**6))}  # inline they come in order
        odd: list[bool] = []  # of the trials that have begun, in the order in which observers come

        def insert(world: int, seed: np.random.SeedSequence):
            odd.append((world, next(trials[world])) == self.when)
            return game.insert(world, seed)

        def observe():
            observer = game.observe()
            if odd.pop(0):
                observer.score = lambda: ODD[self.what][0]
            return observer

        return replace(game, insert=insert, observe=observe)


class Changed:
    """Plays as Inline does, but what comes out is not what was played."""

    name: ClassVar[str] = "changed"

    def __init__(self, scores: object) -> None:
        self.scores = scores

    def play(self, job: Job, groups):
        for i, played in enumerate(Inline().play(job, groups)):
            yield played if not i else Played(played.trials, [self.scores] * len(played.trials), played.seconds)


@pytest.mark.parametrize("what", ODD)
def test_an_odd_score_is_refused_before_it_is_stored(tmp_path: Path, what: str) -> None:
    plan = replace(PLAN, adversary=Careless(what=what))
    words = f"score of careless in trial 7 of world 1 (= '?)?{ODD[what][1]}.*: expected one finite number; .*are kept"
    with pytest.raises(InvalidInput, match=words) as caught, run_directory(tmp_path / "run", plan) as store:
        run(plan, store=store)
    assert "\n" not in str(caught.value)
    with SqliteStore.reading(tmp_path / "run" / STORE) as store:
        kept = store.results(plan.fingerprint())
    assert (0, 0) in kept
    assert (1, 7) not in kept
    assert all(scores.shape == (1,) and np.isfinite(scores).all() for scores in kept.values())


@pytest.mark.parametrize("plan", [PLAN, ONE_RUN], ids=["pairs", "canaries"])
@pytest.mark.parametrize("scores", [np.ones(50), np.full(60, np.nan), np.ones((60, 1)), None])
def test_whoever_plays_nothing_odd_is_stored(plan: Plan, scores: object) -> None:
    plan, store = replace(plan, trials=20), MemoryStore()
    executor: Executor = Changed(scores)
    with pytest.raises(InvalidInput, match=r"expected (one|60) finite number"):
        run(plan, store=store, executor=executor)
    kept = store.results(plan.fingerprint())
    assert kept
    assert {values.shape for values in kept.values()} == {(60,) if plan.adversary == Canaries(60) else (1,)}


@pytest.mark.parametrize("scores", [np.ones(50), np.array([np.nan]), np.array([np.inf]), np.ones(0)])
def test_an_odd_score_in_a_store_is_refused_before_anything_is_played(tmp_path: Path, scores: np.ndarray) -> None:
    """An earlier version kept it: fifty scores a trial would be fifty trials."""
    everything = {(world, i): np.full(len(scores), float(world)) for world in (0, 1) for i in range(20)}
    told: list[object] = []
    with run_directory(tmp_path / "run", PLAN) as store:
        store.add(PLAN.fingerprint(), everything | {(1, 3): scores}, 0.0)
        with pytest.raises(InvalidInput, match=r"score of gradient in trial .*move the store away"):
            run(PLAN, told.append, store=store)
        (stored,) = store.runs()
        assert stored.conclusion is None
        with pytest.raises(InvalidInput, match="score of gradient in trial"):
            write_scores(tmp_path / "scores.csv", stored, store.results(stored.fingerprint))
    assert told == []
    assert not (tmp_path / "scores.csv").exists()


def test_evidence_has_one_score_a_trial() -> None:
    odd = {(world, i): np.ones(50) for world in (0, 1) for i in range(20)}
    with pytest.raises(InvalidInput, match=r"trial 0 of world 0 = 'array of shape \(50,\)'"):
        PLAN.evidence(odd, 20)
    with pytest.raises(InvalidInput, match="expected 60 finite numbers, one for each canary"):
        ONE_RUN.evidence({(1, i): np.ones(59) for i in range(2)}, 2)


def test_workers_say_it_too(tmp_path: Path) -> None:
    """The error travels, whatever the score was, and a trial that gives nonsense is not tried again."""
    plan = replace(PLAN, adversary=Careless(what="objects", when=(0, 0)))
    with pytest.raises(InvalidInput, match=r"score of careless in trial \d+ of world 0 = 'list"):
        run(plan, executor=Local(1))
