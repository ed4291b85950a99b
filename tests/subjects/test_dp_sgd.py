"""The own DP-SGD as a subject: insertions know the world and see nothing, observers see and do not know the world."""

from __future__ import annotations

import inspect
import json
import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsilometer import DpSgdTraining, Plan, PointClaim, Recipe, claim_curve, run, summary
from epsilometer.adversaries import (
    ADVERSARIES,
    Adversary,
    Api,
    Canaries,
    ClipBkd,
    Game,
    Gradient,
    GradientSteps,
    MembershipAttack,
)
from epsilometer.auditing.per_step import StepBets
from epsilometer.bounds import BestOnSame, ClopperPearson, ExactRank, OneRunPoint
from epsilometer.claims import Relation
from epsilometer.data import Dataset, digits
from epsilometer.errors import InvalidInput
from epsilometer.evidence import IN, OUT, PairedRuns
from epsilometer.report import to_json
from epsilometer.subjects import Access, Controls, Faults, Insertion, Observer, Sees, Subject, ThreatModel, WhiteModel
from epsilometer.training import MODELS, modules

SEED = np.random.SeedSequence(3)
SMALL: dict[str, dict[str, Any]] = {
    "static-poison": {"shadows": 2},
    "intermediate": {"shadows": 2},
    "adaptive-poison": {"shadows": 2},
    "gradient-steps": {"coordinates": 4},
    "worst-case-init": {"pretraining": 3},
    "backdoor": {"size": 2, "probes": 5},
    "canaries": {"canaries": 9},
    "membership": {"records": 9},
}
EVERYBODY = [
    *(kind(**SMALL.get(name, {})) for name, kind in ADVERSARIES.items()),
    Canaries(9, kind="records"),
    Canaries(9, kind="records", sees="model"),
    GradientSteps(4, malicious=True),
]


@pytest.fixture(scope="module")
def data() -> Dataset:
    return digits().subset(classes=(0, 1, 2), per_class=12)


@pytest.fixture(scope="module")
def subject(data: Dataset) -> DpSgdTraining:
    return DpSgdTraining(Recipe(records=len(data), sample_rate=0.3, steps=4, noise_multiplier=1.0), data)


def plan_for(subject: DpSgdTraining, adversary: Adversary, **settings: Any) -> Plan:
    return Plan(subject, claim_curve(subject.recipe), 1e-5, adversary, **settings)


def sides(adversary: Adversary, game: Game) -> tuple[Any, Any]:
    """Worlds 0 and 1, or the coins of two trainings."""
    if adversary.evidence_type is PairedRuns:
        return OUT, IN
    coins = np.arange(game.scores) % 2 == 0
    return coins, ~coins


class Ends(Observer):
    """Keeps the final model."""

    def finish(self, model: WhiteModel) -> None:
        self.parameters = model.parameters.copy()

    def score(self) -> float:
        return 0.0


def ends(subject: DpSgdTraining, insertion: Insertion) -> np.ndarray:
    observer = Ends()
    subject.run([insertion], [SEED], [observer])
    return observer.parameters


# -- who knows what --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adversary", EVERYBODY, ids=lambda one: one.describe())
def test_an_observer_has_seen_the_training_and_nothing_else(adversary: Adversary, subject: DpSgdTraining) -> None:
    """Whatever was inserted before it came, and whatever the other training has: the same training, the same score."""
    game = adversary.game(subject, Relation.ADD_REMOVE, SEED)
    assert not inspect.signature(game.observe).parameters
    observers = []
    for side in sides(adversary, game):
        for other in sides(adversary, game):
            game.insert(other, SEED)
            observers.append((side, game.observe()))
    # The same draws: an insertion's own come from the seed that it is given.
    subject.run([game.insert(side, SEED) for side, _ in observers], [SEED] * 4, [one for _, one in observers])
    scores = [np.ravel(one.score()) for _, one in observers]
    np.testing.assert_array_equal(scores[0], scores[1])
    np.testing.assert_array_equal(scores[2], scores[3])
    assert not np.array_equal(scores[0], scores[2])  # and the sides were not the same


def put(insertion: Insertion, subject: DpSgdTraining) -> np.ndarray:
    """What it adds to the sums of all steps, beside the gradients of its records."""
    sums = np.zeros((subject.recipe.steps, subject.network.parameters))
    if insertion.gradient is not None:
        sums += insertion.gradient
    if insertion.additions is not None:
        for step, row in enumerate(sums):
            np.add.at(row, *insertion.additions(step))
    return sums


@pytest.mark.parametrize("adversary", EVERYBODY, ids=lambda one: one.describe())
def test_observers_are_alike_and_insertions_are_not(adversary: Adversary, subject: DpSgdTraining) -> None:
    game = adversary.game(subject, Relation.ADD_REMOVE, SEED)
    out, member = (game.insert(side, SEED) for side in sides(adversary, game))
    data_differ = out.data.fingerprint() != member.data.fingerprint()
    gradients_differ = not np.array_equal(put(out, subject), put(member, subject))
    assert data_differ or gradients_differ
    if adversary.needs.controls in ((), (Controls.RECORDS,)):
        assert data_differ
        assert not gradients_differ
    first, second = game.observe(), game.observe()
    assert first is not second
    assert (type(first), first.stepwise) == (type(second), second.stepwise)
    assert vars(first).keys() == vars(second).keys()
    for name, value in vars(first).items():
        other = vars(second)[name]
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, other)
        elif callable(value):
            assert value.__code__ is other.__code__
        elif not isinstance(value, int | float | str | list):  # shared between trainings, or equal
            assert value is other or value == other


def test_a_plan_tells_observers_nothing(subject: DpSgdTraining, monkeypatch: pytest.MonkeyPatch) -> None:
    """`play` gives sides and seeds to insertions, and no argument at all to whoever makes observers."""
    told: dict[str, list[tuple[Any, ...]]] = {"insert": [], "observe": []}
    before = ClipBkd.craft

    def spied(self: ClipBkd, *arguments: Any) -> Game:
        game = before(self, *arguments)

        def insert(*given: Any, **named: Any) -> Insertion:
            told["insert"].append((*given, *named.values()))
            return game.insert(*given, **named)

        def observe(*given: Any, **named: Any) -> Observer:
            told["observe"].append((*given, *named.values()))
            return game.observe(*given, **named)

        return replace(game, insert=insert, observe=observe)

    monkeypatch.setattr(ClipBkd, "craft", spied)
    plan = plan_for(subject, ClipBkd(), trials=2)
    plan.play(plan.prepare(), [(IN, 0), (OUT, 1), (IN, 1)])
    assert told["observe"] == [(), (), ()]
    assert [world for world, _ in told["insert"]] == [IN, OUT, IN]
    keys = [seed.spawn_key for _, seed in told["insert"]]
    trials = [np.random.SeedSequence(0, spawn_key=trial) for trial in ((IN, 0), (OUT, 1), (IN, 1))]
    assert not set(keys) & {seed.spawn_key for seed in trials}  # nor do they know what the training will draw


def test_an_observer_cannot_change_the_training(subject: DpSgdTraining, data: Dataset) -> None:
    @dataclass
    class Meddler(Ends):
        stepwise = True

        def contribute(self, step: int, gradient_sum: np.ndarray) -> None:
            gradient_sum[:] = 1e9

    meddler, quiet = Meddler(), Ends()
    quiet.stepwise = True
    for observer in (meddler, quiet):
        subject.run([Insertion(data)], [SEED], [observer])
    np.testing.assert_array_equal(meddler.parameters, quiet.parameters)


def test_what_is_inserted_is_trained_on(subject: DpSgdTraining, data: Dataset) -> None:
    plain, size = Insertion(data), subject.network.parameters
    changed = [
        replace(plain, whole=data.without(0)),
        replace(plain, rows=np.arange(1, len(data))),
        replace(plain, start=np.ones(size)),
        replace(plain, gradient=np.eye(size)[0]),
        replace(plain, additions=lambda _: (np.array([0, 0]), np.array([0.5, 0.5]))),
    ]
    before = ends(subject, plain)
    for insertion in changed:
        assert not np.allclose(ends(subject, insertion), before, atol=1e-3)
    # Places that come twice count twice.
    once = replace(plain, additions=lambda _: (np.array([0]), np.array([1.0])))
    np.testing.assert_allclose(ends(subject, changed[-1]), ends(subject, once), atol=1e-6)


# -- faults ----------------------------------------------------------------------------------------------------------


def test_faults_are_in_the_training_and_nobody_who_plays_is_told(subject: DpSgdTraining, data: Dataset) -> None:
    quiet = replace(subject, faults=Faults(noise_scale=0.0))
    (noiseless,) = subject.rehearse(data, [SEED], noiseless=True)
    np.testing.assert_array_equal(ends(quiet, Insertion(data)), noiseless.parameters)
    assert not np.allclose(ends(subject, Insertion(data)), noiseless.parameters, atol=1e-3)
    for own, faulty in zip(subject.rehearse(data, [SEED]), quiet.rehearse(data, [SEED]), strict=True):
        np.testing.assert_array_equal(own.parameters, faulty.parameters)
    for adversary in (Gradient(), ClipBkd()):
        prepared = [plan_for(one, adversary).prepare().to_bytes() for one in (subject, quiet)]
        assert prepared[0] == prepared[1]
    assert subject.injected() == []
    assert quiet.injected() == ["the noise really added is 0 × what is claimed"]
    assert plan_for(quiet, Gradient()).upper_bound == plan_for(subject, Gradient()).upper_bound
    assert plan_for(quiet, Gradient()).fingerprint() != plan_for(subject, Gradient()).fingerprint()


def test_a_training_has_as_many_records_as_its_recipe(data: Dataset) -> None:
    with pytest.raises(InvalidInput, match="records = 7: expected the 36 records of digits"):
        DpSgdTraining(Recipe(records=7), data)


# -- plans keep what was asked ---------------------------------------------------------------------------------------


def test_another_adversary_gets_the_trials_and_the_method_that_fit(subject: DpSgdTraining) -> None:
    pairs = plan_for(subject, Gradient())
    canaries = replace(pairs, adversary=Canaries(10))
    steps = replace(canaries, adversary=GradientSteps(4))
    back = replace(steps, adversary=Gradient())
    assert [one.planned_trials for one in (pairs, canaries, steps, back)] == [500, 1, 2, 500]
    kinds = [type(one.planned_method) for one in (pairs, canaries, steps, back)]
    assert kinds == [ExactRank, OneRunPoint, StepBets, ExactRank]
    assert {(one.trials, one.method) for one in (pairs, canaries, steps, back)} == {(None, None)}
    for one in (pairs, canaries, steps, back):
        assert one.planned_method.evidence_type is one.adversary.evidence_type
        assert one.to_dict()["trials"] == one.planned_trials
        made = plan_for(subject, one.adversary)
        assert (one.fingerprint(), one.planned_method) == (made.fingerprint(), made.planned_method)


def test_what_was_asked_for_stays_and_is_refused_where_it_does_not_fit(subject: DpSgdTraining) -> None:
    asked = plan_for(subject, Gradient(), trials=30)
    assert replace(asked, adversary=Canaries(10)).planned_trials == 30
    with pytest.raises(InvalidInput, match="trials = 1: expected a whole number from 2"):
        plan_for(subject, Gradient(), trials=1)
    assert plan_for(subject, Canaries(10), trials=1).planned_trials == 1
    with pytest.raises(InvalidInput, match="trials = 1: expected a whole number from 2"):
        replace(plan_for(subject, Canaries(10), trials=1), adversary=Gradient())
    estimate = ClopperPearson(BestOnSame())
    assert plan_for(subject, Gradient(), method=estimate).planned_method == estimate
    for method, adversary, words in (
        (ExactRank(), Canaries(10), "method = 'exact-rank': expected a method for canaries .one-run-point"),
        (estimate, Canaries(10), "method = 'best-on-same': expected a method for canaries .one-run-point"),
        (OneRunPoint(), Gradient(), "method = 'one-run-point': expected a method for gradient .*exact-rank"),
        (ExactRank(), GradientSteps(4), "exact-rank.: expected a method for gradient-steps .step-bets, gaussian-steps"),
    ):
        with pytest.raises(InvalidInput, match=words):
            plan_for(subject, adversary, method=method)
    with pytest.raises(InvalidInput, match=r"method = 'exact-rank'.*leave it out for the default"):
        replace(plan_for(subject, Gradient(), method=ExactRank()), adversary=MembershipAttack(5))
    with pytest.raises(InvalidInput, match="method = 'one-run-point'"):
        replace(plan_for(subject, Canaries(10), method=OneRunPoint()), adversary=ClipBkd())


# -- other processes -------------------------------------------------------------------------------------------------

MODULE = """
from torch import nn
def make(features, classes):
    return nn.Sequential(nn.Linear(features, 3), nn.GELU(), nn.Linear(3, classes))
"""
ELSEWHERE = """
import json, pickle, sys
plan, prepared, trials = pickle.load(sys.stdin.buffer)
from epsilometer.training import MODELS
scores = [one.tobytes().hex() for one in plan.play(prepared, trials)]
print(json.dumps([plan.fingerprint(), plan.subject.identity()["recipe"], "traveller" in MODELS, scores]))
"""


@pytest.fixture
def registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module of the user's own, in a file that other processes can import."""
    (tmp_path / "traveller.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    import traveller

    modules.register("traveller", traveller.make)
    yield "traveller"
    del MODELS["traveller"], modules._FACTORIES["traveller"], sys.modules["traveller"]


def test_a_registered_module_travels_with_its_training(registered: str, subject: DpSgdTraining, tmp_path: Path) -> None:
    """The other process has never heard of it; it plays the same game, bit for bit."""
    own = replace(subject, recipe=replace(subject.recipe, model=registered))
    trials = [(OUT, 0), (IN, 3)]
    plan = plan_for(own, ClipBkd(), trials=5)
    prepared = plan.prepare()
    sent = pickle.dumps((plan, prepared, trials))
    environment = {"PYTHONPATH": str(tmp_path), "PATH": "", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE], input=sent, env=environment, capture_output=True, check=True
    )
    fingerprint, recipe, known, scores = json.loads(done.stdout)
    assert known
    assert fingerprint == plan.fingerprint()
    assert recipe == json.loads(json.dumps(own.identity()["recipe"]))
    assert recipe["module_code"]["files"].keys() == {"traveller.py"}
    assert scores == [one.tobytes().hex() for one in plan.play(prepared, trials)]


def test_a_pickled_training_is_the_same_training(subject: DpSgdTraining, data: Dataset) -> None:
    faulty = replace(subject, faults=Faults(0.5))
    again = pickle.loads(pickle.dumps(faulty))
    assert (again.recipe, again.faults, again.loss) == (faulty.recipe, faulty.faults, faulty.loss)
    assert again.identity() == faulty.identity()
    assert not hasattr(again, "factories")
    np.testing.assert_array_equal(ends(again, Insertion(data)), ends(faulty, Insertion(data)))


# -- access ----------------------------------------------------------------------------------------------------------

accesses = st.builds(Access, st.sampled_from(list(Sees)), st.frozensets(st.sampled_from(list(Controls))))
threats = st.builds(ThreatModel, st.sampled_from(list(Sees)), st.lists(st.sampled_from(list(Controls))).map(tuple))


@given(accesses, accesses, threats)
def test_both_grant_what_each_of_them_grants(one: Access, other: Access, threat: ThreatModel) -> None:
    both = one & other
    assert both == other & one
    assert both & one == both
    assert one & one == one
    assert one & Access() == one
    assert set(both.lacks(threat)) == set(one.lacks(threat)) | set(other.lacks(threat))


def test_sights_are_nested() -> None:
    order = ["release", "predictions", "final-model", "every-model"]
    assert [sees.value for sees in Sees] == order
    for i, granted in enumerate(order):
        for j, needed in enumerate(order):
            lacking = Access(granted).lacks(ThreatModel(Sees(needed), ()))
            assert lacking == ([] if j <= i else [needed])
    assert (Access("final-model") & Access("predictions")).sees is Sees.PREDICTIONS
    assert (Access(controls=["gradients"]) & Access(controls=["data"])).controls == {Controls.RECORDS}


class PublishesPredictions(DpSgdTraining):
    @property
    def grants(self) -> Access:
        return Access("predictions", ["records", "initial-weights"])


def test_a_plan_grants_what_both_it_and_its_subject_grant(subject: DpSgdTraining) -> None:
    assert subject.grants == Access()
    closed = PublishesPredictions(subject.recipe, subject.data)
    for adversary in (Gradient(), Canaries(10), Canaries(9, kind="records")):
        with pytest.raises(InvalidInput, match=r"no more than this training grants .predictions, records, initial"):
            plan_for(closed, adversary)
    blackbox = ("api", "static-poison", "worst-case-init", "clipbkd", "backdoor", "membership")
    for name in blackbox:
        plan_for(closed, ADVERSARIES[name]())
    plan_for(closed, Canaries(9, kind="records", sees="model"))
    with pytest.raises(InvalidInput) as refused:
        plan_for(closed, ADVERSARIES["hidden-state"]())
    able = str(refused.value).rpartition("these would work: ")[2].split(", ")
    assert set(blackbox) <= set(able)
    for name, kind in ADVERSARIES.items():
        if name in able:
            plan_for(closed, kind())
        else:
            with pytest.raises(InvalidInput, match="it also needs"):
                plan_for(closed, kind())
    with pytest.raises(InvalidInput, match=r"grants .predictions\); it also needs records; these would work: api"):
        plan_for(closed, ClipBkd(), access=Access("final-model", []))
    plan_for(closed, Api(), access=Access("final-model", []))
    with pytest.raises(InvalidInput, match=r"grants .release\); it also needs predictions"):
        plan_for(closed, Api(), access=Access("release", []))


# -- subjects of other kinds -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Means:
    centres: np.ndarray

    def logits(self, x: np.ndarray) -> np.ndarray:
        return x @ self.centres.T


@dataclass(frozen=True)
class NoisyMeans(Subject):
    """The sum of each class's records, with noise: it grants predictions, and does not say what its noise is worth."""

    data: Dataset
    noise: float = 0.5

    @property
    def grants(self) -> Access:
        return Access("predictions", ["records"])

    def describe(self) -> str:
        return "noisy sums of classes"

    def identity(self) -> dict[str, Any]:
        return {"data": {"name": self.data.name, "sha256": self.data.fingerprint()}, "noise": self.noise}

    def run(self, insertions: Sequence[Insertion], seeds: Sequence[Any], observers: Sequence[Observer]) -> None:
        for insertion, seed, observer in zip(insertions, seeds, observers, strict=True):
            observer.finish(self.rehearse(insertion.data, [seed])[0])

    def rehearse(self, data: Dataset, seeds: Sequence[Any], *, noiseless: bool = False) -> list[Means]:
        sums = np.array([data.x[data.y == label].sum(axis=0) for label in range(data.classes)])
        scale = 0.0 if noiseless else self.noise
        return [Means(sums + scale * np.random.default_rng(seed).normal(size=sums.shape)) for seed in seeds]


def test_another_subject_needs_no_mechanism(data: Dataset) -> None:
    """Played, proved, accused, told and written, without a word of what theory would promise."""
    result = run(Plan(NoisyMeans(data), PointClaim(0.5, 1e-5), 1e-5, ClipBkd(), trials=60))
    assert result.verdict.outcome.value == "violated"
    assert result.lower_bound.epsilon > 0.5
    assert (result.upper_bound, result.noise_limit, result.family_bound) == (None, None, None)
    assert "noisy sums of classes" in summary(result)
    assert json.loads(json.dumps(to_json(result)))["upper_bound"] is None
    with pytest.raises(InvalidInput, match="adversary = 'gradient'"):
        Plan(NoisyMeans(data), PointClaim(0.5, 1e-5), 1e-5, Gradient())


def test_gradients_are_for_trainings_in_noisy_steps_only(data: Dataset) -> None:
    @dataclass(frozen=True)
    class Boasting(NoisyMeans):
        @property
        def grants(self) -> Access:
            return Access()

    with pytest.raises(InvalidInput, match="one that noisy sums of classes offers enough to; it needs steps that add"):
        Plan(Boasting(data), PointClaim(0.5, 1e-5), 1e-5, Gradient())
    with pytest.raises(InvalidInput, match="a training that says its sample rate, noise and steps"):
        Plan(Boasting(data), PointClaim(0.5, 1e-5), 1e-5, GradientSteps(4))
