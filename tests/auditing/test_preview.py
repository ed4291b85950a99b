"""What `check` says that a plan will cost and could show."""

import importlib
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from epsilometer.auditing import Plan, preview, run, spec_from_dict
from epsilometer.auditing.decision import least_power
from epsilometer.auditing.preview import UNLUCKY, _needed, _power
from epsilometer.bounds import attack_strength
from epsilometer.errors import InvalidInput
from epsilometer.evidence import PairedRuns, Trial
from epsilometer.report import describe_preview
from epsilometer.runs.executors.executor import Job
from epsilometer.runs.groups import Played
from epsilometer.verdict import ENOUGH_POWER

MODULE = importlib.import_module("epsilometer.auditing.preview")  # whose name its function has too


def played(seconds: Callable[[Sequence[Trial]], float], apart: float = 1.0) -> Callable[[Job, Sequence[Trial]], Played]:
    """A training that takes so long, with normal scores."""

    def play(job: Job, trials: Sequence[Trial]) -> Played:
        length = job.work.game(job.prepared).scores
        rng = np.random.default_rng(0)
        scores = [rng.normal(apart * world, 1.0, length) for world, _ in trials]
        return Played(trials, scores, seconds(trials))

    return play


@pytest.mark.parametrize("adversary", ["gradient", "canaries"])
def test_the_cost_is_that_of_a_group_when_all_is_compiled(adversary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A world's first trial compiles what the other does not need; 3 h 53 min were predicted for 7 minutes."""
    seen: set[int] = set()

    def seconds(trials: Sequence[Trial]) -> float:
        compiling = sum(5.0 for world in {world for world, _ in trials} - seen)
        seen.update(world for world, _ in trials)
        return compiling + 0.01 + 0.001 * len(trials)

    monkeypatch.setattr(MODULE, "play_group", played(seconds))
    trials = {"gradient": 100, "canaries": 10}[adversary]
    chosen = {"adversary": {"name": adversary}, "audit": {"trials": trials}, "training": {"steps": 5}}
    plan = spec_from_dict(chosen).plan()
    assert preview(plan).seconds_a_trial == pytest.approx(0.001 + 0.01 / (trials * len(plan.worlds)))


def test_trials_that_take_long_are_not_played_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Trial] = []

    def seconds(trials: Sequence[Trial]) -> float:
        asked.extend(trials)
        return 100.0

    monkeypatch.setattr(MODULE, "play_group", played(seconds))
    seen = preview(spec_from_dict({"training": {"steps": 5}}).plan())
    assert seen.seconds_a_trial == 50.0
    assert asked == [(0, 0), (1, 0)]
    assert (seen.pilot, seen.power, seen.needed_trials) == (None, None, None)  # two scores tell nothing of an attack
    assert "too long to try a few" in describe_preview(seen)


def test_one_training_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODULE, "play_group", played(lambda _: 0.25))
    chosen = {"adversary": {"name": "canaries"}, "audit": {"trials": 1}, "training": {"steps": 5}}
    assert preview(spec_from_dict(chosen).plan()).seconds_a_trial == 0.25


def test_more_trials_than_anybody_plays_are_refused() -> None:
    """They filled 11.5 GB before one was played."""
    with pytest.raises(InvalidInput, match=r"audit.trials = 100000000: expected a whole number from 2 to 1,000,000"):
        spec_from_dict({"audit": {"trials": 10**8}}).plan()


def test_no_power_is_simulated_where_even_the_best_attack_refutes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """At ε = 500 it took seconds, to say what was known."""

    def never(*_: object) -> float:
        raise AssertionError

    monkeypatch.setattr(MODULE, "_power", never)
    seen = preview(spec_from_dict({"claim": {"epsilon": 30.0, "form": "point"}, "training": {"steps": 5}}).plan())
    assert not seen.can_refute
    assert seen.power == 0.0


QUICK = {"training": {"steps": 20}, "audit": {"trials": 200}}


def test_the_pilot_is_of_the_real_attack_with_seeds_that_no_audit_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = spec_from_dict(QUICK).plan()
    seeds = []
    own = Plan.play

    def play(self: Plan, prepared, trials):
        seeds.append(self.seed)
        return own(self, prepared, trials)

    monkeypatch.setattr(Plan, "play", play)
    seen = preview(plan)
    assert set(seeds) == {int(np.random.SeedSequence(plan.seed, spawn_key=(8,)).generate_state(1)[0])}
    assert plan.seed not in seeds
    assert seen.pilot is not None
    assert 0.5 < seen.pilot.area < 1.0
    assert seen.pilot.strength < seen.pilot.likely_strength


@pytest.mark.parametrize(("apart", "says"), [(3.0, True), (0.0, False)])
def test_check_promises_only_what_the_audit_keeps(apart: float, says: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power of .87, computed for the best attack there could be, was promised to one that saw nothing."""
    plan = spec_from_dict(QUICK | {"claim": {"epsilon": 30.0}}).plan()
    monkeypatch.setattr(MODULE, "play_group", played(lambda _: 0.1, apart))
    seen = preview(plan)
    assert seen.has_power is says
    words = describe_preview(seen)
    assert ("trials needed  about " in words) is says
    assert ("Gaussian and for randomized-response scores" in " ".join(words.split())) is says
    assert ("cannot tell this attack from guessing" in words) is not says


@pytest.mark.full
def test_as_many_trials_as_are_needed_are_enough() -> None:
    """The number of `check` gives the audit its power, and a fraction of it does not."""
    plan = spec_from_dict(QUICK).plan()
    needed = preview(plan).needed_trials
    assert needed is not None
    audit = run(spec_from_dict(QUICK | {"audit": {"trials": needed}}).plan(), noise_limit=False)
    assert audit.verdict.power is not None
    assert audit.verdict.power >= 0.8
    weak = run(spec_from_dict(QUICK | {"audit": {"trials": max(20, needed // 8)}}).plan(), noise_limit=False)
    assert weak.verdict.power is None or weak.verdict.power < 0.8


def test_the_number_of_trials_is_enough_for_audits_without_luck_too() -> None:
    """Of audits with that number, four of five see enough of the attack; of audits with the number at which the mean
    audit does, which was recommended before, hardly more than half."""
    plan, strength, rng = spec_from_dict({}).plan(), 0.7, np.random.default_rng(0)

    def seeing_enough(trials: int) -> float:
        seen = 0
        for _ in range(40):
            pairs = PairedRuns(rng.normal(size=trials), rng.normal(strength, size=trials))
            sizes = {"out_trials": trials, "in_trials": trials}
            seen += least_power(plan.planned_method, plan.claim, attack_strength(pairs), **sizes) >= ENOUGH_POWER
        return seen / 40

    needed = _needed(plan, 1, strength)
    assert needed == 500
    assert _power(plan, 1, strength, 300) >= ENOUGH_POWER > _power(plan, 1, strength, 300, UNLUCKY)
    assert seeing_enough(needed) >= 0.8
    assert seeing_enough(300) <= 0.65


def test_a_training_of_very_many_steps_is_refused_and_not_played(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take an hour or more, and so does preparing an attack on it; a thousand of its steps tell that."""

    def never(*_: object) -> None:
        raise AssertionError("it was played")

    monkeypatch.setattr(MODULE, "_played", never)
    monkeypatch.setattr(Plan, "prepare", never)
    settings = {"training": {"steps": 10**8, "noise_multiplier": 1000.0}, "claim": {"epsilon": 4.0}}
    with pytest.raises(InvalidInput, match=r"steps = 100000000: expected a training to try .* check and audit fewer"):
        preview(spec_from_dict(settings).plan())
