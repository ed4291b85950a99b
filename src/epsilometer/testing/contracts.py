"""What every adversary and every method must keep to, as tests that people can run on their own.

They are short, and find what would spoil an audit: scores that depend on anything but the trial, a relation or a number
of records that is not the stated one, a bound that forgets its unit, an accusation where nothing leaks. They do not
prove that a bound covers: for that see tests/statistical in Epsilometer's sources.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import is_dataclass

import numpy as np

from epsilometer.adversaries import Adversary
from epsilometer.auditing import Plan
from epsilometer.bounds import ExactRank, LowerBound, Method
from epsilometer.claims import PointClaim, Relation
from epsilometer.data import digits
from epsilometer.evidence import IN, OUT, OneRun, PairedRuns
from epsilometer.runs import Inline, MemoryStore, play
from epsilometer.runs.executors.executor import Job, play_group
from epsilometer.subjects import DpSgdTraining, Subject
from epsilometer.training import Recipe

NULL_TRIALS = 40  # of each world
ALPHA = 1e-3  # a contract is not to fail by chance


def check_adversary(
    adversary: Adversary, subject: Subject | None = None, relations: Sequence[Relation | str] = ("add-remove",)
) -> None:
    """Assert that an adversary of one's own keeps to the contract, against a small DP-SGD if nothing else is said.

    - It is a frozen dataclass with name, summary and threat model, and can be sent to other processes.
    - Trials are pure: the same score alone, in a group, in another order, and with what was prepared read back.
    - The worlds differ in `group_size` records under the stated relation.
    - It is silent on a null game: where both worlds get world 0, its scores do not tell them apart.

    >>> from epsilometer.adversaries import Api
    >>> check_adversary(Api())
    """
    assert is_dataclass(type(adversary)), "an adversary is a frozen dataclass whose fields are its settings"
    for name in ("name", "summary", "threat"):
        assert hasattr(type(adversary), name), f"an adversary has a {name}"
    assert pickle.loads(pickle.dumps(adversary)) == adversary, "an adversary can be sent to another process"
    chosen = small_training() if subject is None else subject
    for relation in relations:
        plan = Plan(
            chosen, PointClaim(1.0, 1e-5, Relation.of(relation), chosen.unit), 1e-5, adversary, trials=2, seed=11
        )
        _check_purity(plan)
        if adversary.evidence_type.independent:
            _check_worlds(plan)
            _check_silence(plan)


def check_method(method: Method) -> None:
    """Assert that a method of one's own keeps to the contract: bounds and tests agree, and chance refutes nothing.

    >>> from epsilometer.bounds import ExactRank
    >>> check_method(ExactRank())
    """
    rng = np.random.default_rng(7)
    shown = _evidence(method, rng, apart=4.0)
    for delta in (0.0, 1e-5):
        bound = method.bound(shown, delta=delta, confidence=0.95)
        assert isinstance(bound, LowerBound), "bound gives a LowerBound"
        assert bound.epsilon >= 0, "ε is a number from 0 on"
        assert (bound.delta, bound.confidence) == (delta, 0.95)
        assert bound.neighbours == shown.neighbours, "a bound has relation and unit of its evidence"
        if 0 < bound.epsilon < np.inf:
            below, above = (
                PointClaim(factor * bound.epsilon, delta, shown.relation, shown.unit) for factor in (0.9, 1.2)
            )
            assert method.test(shown, below, confidence=0.95).refuted, "what is well below the bound is refuted"
            assert not method.test(shown, above, confidence=0.95).refuted, "what is above the bound is not"
        more = method.bound(shown, delta=delta, confidence=0.99)
        assert more.epsilon <= bound.epsilon + 1e-9, "more confidence gives a smaller bound"
    silent = PointClaim(0.0, unit=shown.unit)
    accused = sum(
        method.test(_evidence(method, rng, apart=0.0), silent, confidence=1 - ALPHA).refuted for _ in range(20)
    )
    assert accused == 0, f"{accused} of 20 audits of chance refuted ε = 0 at α = {ALPHA}"


def small_training() -> DpSgdTraining:
    """DP-SGD on 60 digits, in milliseconds."""
    data = digits().subset(classes=[0, 1, 2], per_class=20)
    return DpSgdTraining(Recipe(records=len(data), steps=5, sample_rate=0.5), data)


def _check_purity(plan: Plan) -> None:
    trials = [(world, index) for index in range(2) for world in plan.worlds]
    job = Job.of(plan)
    alone = [play_group(job, [trial]).scores[0] for trial in trials]
    together = play_group(job, trials[::-1]).scores[::-1]
    store = MemoryStore()
    stored = play(plan, store, Inline()).results  # with what was prepared anew
    for trial, one, two in zip(trials, alone, together, strict=True):
        assert one.tobytes() == two.tobytes(), f"trial {trial} has another score beside others than alone"
        assert one.tobytes() == stored[trial].tobytes(), f"trial {trial} has another score when it is prepared again"


def _check_worlds(plan: Plan) -> None:
    game = plan.game(plan.prepare())
    assert game.relation is plan.relation, f"the game is played under {game.relation}, not {plan.relation}"
    seed = np.random.SeedSequence(0)
    absent, present = (game.insert(world, seed).data for world in (OUT, IN))
    size = plan.adversary.group_size
    assert game.group_size == size, f"the game is of {game.group_size} records, the adversary says {size}"
    if plan.relation is Relation.REPLACE:
        assert len(absent) == len(present), "under replace, worlds have as many records"
        changed = np.any(absent.x != present.x, axis=1) | (absent.y != present.y)
        assert changed.sum() <= size, f"worlds differ in {changed.sum()} records, not {size}"
    else:
        more = len(present) - len(absent)
        assert 0 <= more <= size, f"world 1 has {more} records more, not {size} at most"
        rows = [{(*x.tolist(), y.item()) for x, y in zip(one.x, one.y, strict=True)} for one in (absent, present)]
        assert rows[0] <= rows[1], "world 1 has all that world 0 has"


def _check_silence(plan: Plan) -> None:
    """World 0 on both sides: a fair test of the scores' order."""
    prepared = plan.prepare()
    game, seeds = plan.game(prepared), np.random.SeedSequence(3).spawn(2 * NULL_TRIALS)
    trials = [(OUT, index) for index in range(2 * NULL_TRIALS)]
    parties = game.parties([OUT for _ in trials], seeds, seeds)
    scores = np.concatenate(plan.observe(game, trials, parties, seeds))
    runs = PairedRuns(scores[::2], scores[1::2], plan.neighbours)
    silent = PointClaim(0.0, 0.0, runs.relation, runs.unit)
    test = ExactRank().test(runs, silent, confidence=1 - ALPHA, direction="either")
    assert not test.refuted, "scores tell two halves of the same world apart"


def _evidence(method: Method, rng: np.random.Generator, apart: float) -> PairedRuns | OneRun:
    if method.evidence_type is OneRun:
        member = rng.random(1000) < 0.5
        return OneRun(rng.normal(size=1000) + apart * member, member, unit="user")
    return PairedRuns(rng.normal(size=500), rng.normal(apart, size=500), unit="user")
