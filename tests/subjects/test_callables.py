"""Models of all kinds, data of all kinds, one waist."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from torch.utils.data import TensorDataset

import epsilometer
from epsilometer.adversaries import Api, Canaries, ClipBkd, MembershipAttack, StaticPoison
from epsilometer.auditing import Outcome, Plan, run
from epsilometer.auditing.foreign import NotIndependent
from epsilometer.claims import PointClaim, Relation
from epsilometer.data import Dataset, own_data
from epsilometer.errors import InvalidInput
from epsilometer.runs import MemoryStore
from epsilometer.runs.replay import ReplayDiffers
from epsilometer.subjects import CallableTraining, Entry, Released, TrainingFailed
from epsilometer.subjects.entry import entry_of

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 5)).astype(np.float32), np.arange(60) % 2
DATA = own_data((X, Y))
SEED = np.random.SeedSequence(3)


def noisy(data, seed, scale=3.0):
    """A Gaussian mechanism: sums of clipped records by class."""
    x = data.x / np.maximum(1.0, np.linalg.norm(data.x, axis=1, keepdims=True))
    sums = np.stack([x[data.y == label].sum(axis=0) for label in range(2)])
    sums += scale * np.random.default_rng(seed).normal(size=sums.shape)
    return lambda points: np.asarray(points) @ sums.T


def noisy_here():
    """The same, as a notebook would define it: it plays in this process."""

    def train(data, seed):
        return noisy(data, seed)

    return train


@pytest.mark.parametrize(
    "adversary", [Api(), Api("random"), ClipBkd(), MembershipAttack(10), Canaries(10, kind="records", sees="model")]
)
def test_every_game_gives_records_in_their_own_shape(adversary) -> None:
    """What a model is asked about has it as well: one that is trained on rows and asked about images knows nothing."""
    images = Dataset("images", RNG.random((40, 6)), np.arange(40) % 2, 2, shape=(1, 2, 3))
    trained, asked = set(), set()

    def train(data, seed):
        trained.add(data.x.shape[1:])

        def model(x):
            asked.add(np.shape(x)[1:])
            return np.zeros((len(x), 2))

        return model

    subject = CallableTraining(train, images)
    game = adversary.game(subject, Relation.ADD_REMOVE, SEED)
    sides = np.ones((2, 10), bool) if game.scores > 1 else (0, 1)
    seeds = SEED.spawn(2)
    insertions, observers = zip(*game.parties(sides, seeds, seeds), strict=True)
    subject.run(insertions, seeds, observers)
    assert [np.size(observer.score()) for observer in observers] == [game.scores] * 2
    assert trained == asked == {(1, 2, 3)}


@pytest.mark.parametrize(
    "model",
    [
        torch.nn.Linear(5, 2),
        torch.nn.Sequential(torch.nn.Linear(5, 3), torch.nn.Dropout(0.5), torch.nn.Linear(3, 1)),
        LogisticRegression().fit(X, Y),
        RidgeClassifier().fit(X, Y),
        lambda x: np.stack([x[:, 0], -x[:, 0]], axis=1),
        lambda x: torch.as_tensor(x)[:, :1],
    ],
    ids=["module", "dropout", "chances", "margins", "function", "column"],
)
def test_models_are_asked_in_their_own_way(model) -> None:
    outputs = Released(model, DATA).logits(X[:7])
    assert outputs.shape == (7, 2)
    assert outputs.dtype == np.float64
    assert np.array_equal(outputs, Released(model, DATA).logits(X[:7]))


def test_a_model_that_has_not_seen_a_class_gives_it_no_chance() -> None:
    data = own_data((X, np.arange(60) % 3))
    model = LogisticRegression().fit(X, np.where(np.arange(60) % 3 == 2, 0, np.arange(60) % 3))
    outputs = Released(model, data).logits(X[:4])
    assert (outputs[:, 2] < -700).all()


def test_records_keep_their_shape() -> None:
    data = own_data((RNG.normal(size=(12, 1, 4, 4)), np.arange(12) % 2))
    assert data.shape == (1, 4, 4)
    seen = []

    def train(records, seed):
        seen.append(records.x.shape)
        return torch.nn.Sequential(torch.nn.Conv2d(1, 2, 4), torch.nn.Flatten())

    (model,) = CallableTraining(train, data).rehearse(data, [SEED])
    assert seen == [(12, 1, 4, 4)]
    assert model.logits(data.x).shape == (12, 2)


@pytest.mark.parametrize(
    ("given", "classes"),
    [
        ((X, Y), ("0", "1")),
        ([X.tolist(), ["b", "a"] * 30], ("a", "b")),
        ({"X": X, "labels": Y * 7.0}, ("0", "7")),
        (TensorDataset(torch.as_tensor(X), torch.as_tensor(Y)), ("0", "1")),
    ],
)
def test_data_of_ones_own(given, classes) -> None:
    found = own_data(given)
    assert (len(found), found.x.shape[1], found.class_names) == (60, 5, classes)


def test_files_of_ones_own(tmp_path) -> None:
    np.savez(tmp_path / "d.npz", x=X, y=Y)
    rows = "\n".join(",".join(map(str, [*row, label])) for row, label in zip(X.tolist(), Y, strict=True))
    (tmp_path / "d.csv").write_text(f"a,b,c,d,e,label\n{rows}\n")
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {name: X[:, i] for i, name in enumerate("abcde")} | {"label": Y}
    parquet.write_table(pyarrow.table(columns), tmp_path / "d.parquet")
    prints = {own_data(tmp_path / f"d.{kind}").fingerprint() for kind in ("npz", "csv", "parquet")}
    assert prints == {DATA.fingerprint()}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (3, "expected (x, y)"),
        ((X, Y + 0.5), "y = 'numbers with fractions'"),
        ((X, Y[:5]), "a row of features and one label"),
        ((X, np.zeros(60)), "at least two classes"),
        ((np.full((60, 2), np.nan), Y), "finite features"),
        ({"x": X}, "arrays x and y"),
        ("nothing.npz", "a readable file"),
        ("data.txt", "ends in .npz, .csv, .parquet"),
    ],
)
def test_data_that_cannot_be_used_are_refused(given, words) -> None:
    with pytest.raises(InvalidInput) as error:
        own_data(given)
    assert words in str(error.value)


@pytest.mark.parametrize("adversary", [Api(), ClipBkd(), StaticPoison(shadows=2), MembershipAttack(20),
                                       Canaries(20, "records", "model")])  # fmt: skip
def test_adversaries_of_records_play_against_any_function(adversary) -> None:
    plan = Plan(CallableTraining(noisy_here(), DATA), PointClaim(2.0, 1e-5), 1e-5, adversary,
                trials=None if adversary.evidence_type.worlds == (1,) else 3)  # fmt: skip
    assert run(plan).verdict.outcome is Outcome.INCONCLUSIVE


def test_others_are_refused_with_those_who_can() -> None:
    from epsilometer.adversaries import Gradient

    with pytest.raises(InvalidInput) as error:
        Plan(CallableTraining(noisy, DATA), PointClaim(2.0, 1e-5), 1e-5, Gradient())
    assert "these would work: api, static-poison" in str(error.value)


def test_global_generators_are_seeded_for_those_who_use_them() -> None:
    def train(data):
        return {"weights": torch.randn(3), "more": np.random.normal(size=2)}  # noqa: NPY002

    subject = CallableTraining(train, DATA)
    first, again, other = subject.rehearse(DATA, [SEED, SEED, np.random.SeedSequence(4)])
    assert np.array_equal(first.numbers, again.numbers)
    assert not np.array_equal(first.numbers, other.numbers)
    assert not subject.ignores_its_seed(SEED)


def test_what_a_training_raises_becomes_one_line() -> None:
    def train(data, seed):
        raise ValueError("first\nsecond")

    with pytest.raises(TrainingFailed, match=r"raised ValueError: first second, test_callables.py line \d+"):
        CallableTraining(train, DATA).rehearse(DATA, [SEED])


def test_trainings_may_change_what_they_are_given() -> None:
    def train(data, seed):
        data.x[:] = 0
        return noisy(data, seed)

    CallableTraining(train, DATA).rehearse(DATA, [SEED])
    assert DATA.x.any()


def test_a_training_without_randomness_or_with_state_is_refused() -> None:
    calls = []

    def keeps(data, seed):
        calls.append(1)
        weights = np.array([[0.0, len(calls)]])
        return lambda points: noisy(data, seed)(points) + points[:, :1] @ weights

    for train, words in ((lambda data, _: noisy(data, 0), "exactly the same numbers"), (keeps, "another score")):
        with pytest.raises(NotIndependent, match=words):
            epsilometer.audit(train, data=DATA, claim=(1.0, 1e-5), trials=5)


def test_a_harness_that_tells_the_worlds_apart_is_refused() -> None:
    """Worlds alternate, so that what every second call adds looks like a leak: in the control too."""
    calls = []

    def toggles(data, seed):
        calls.append(1)
        return lambda points: noisy(data, seed)(points) + np.array([0.0, 100.0 * (len(calls) % 2)]) * points[:, :1]

    subject = CallableTraining(toggles, DATA, deterministic=False)
    with pytest.raises(NotIndependent, match="in a control"):
        run(Plan(subject, PointClaim(1.0, 1e-5), 1e-5, ClipBkd(), trials=5))


def test_names_lead_to_functions() -> None:
    assert entry_of(np.linalg.norm) is None or entry_of(np.linalg.norm).load() is np.linalg.norm
    assert entry_of(own_data) == Entry("epsilometer.data.own:own_data", entry_of(own_data).root)
    assert entry_of(own_data).load() is own_data
    assert entry_of(lambda x: x) is None
    for name in ("train", "my module:train", "a:b c", "no.py:train", ":train"):
        with pytest.raises(InvalidInput):
            Entry.of(name)


def test_the_plan_has_the_code_in_its_fingerprint() -> None:
    def plan(train, **settings) -> str:
        subject = CallableTraining(train, DATA, **settings)
        return Plan(subject, PointClaim(1.0, 1e-5), 1e-5, Api(), trials=2).fingerprint()

    prints = [plan(noisy), plan(noisy, arguments={"scale": 2.0}), plan(noisy, score=noisy)]
    assert len(set(prints)) == 3
    assert plan(noisy) == prints[0]


def test_the_own_engine_trains_modules_by_name_on_files(tmp_path, monkeypatch) -> None:
    from epsilometer.auditing import spec_from_dict

    (tmp_path / "own_net.py").write_text(
        "from torch import nn\n\n\nclass Net(nn.Sequential):\n    def __init__(self, features, classes):\n"
        "        super().__init__(nn.Linear(features, 3), nn.Tanh(), nn.Linear(3, classes))\n"
    )
    np.savez(tmp_path / "d.npz", x=X, y=Y)
    monkeypatch.chdir(tmp_path)
    spec = {"model": {"name": "own_net:Net"}, "data": {"path": "d.npz"}, "training": {"steps": 3}}
    plan = spec_from_dict(spec | {"audit": {"trials": 2}, "adversary": {"name": "clipbkd"}}).plan()
    assert plan.subject.recipe.model == "own_net:Net"
    assert "own_net.py" in plan.to_dict()["recipe"]["module_code"]["files"]
    assert len(plan.play(plan.prepare(), [(0, 0), (1, 0)])) == 2


def test_a_data_set_is_taken_as_it_is() -> None:
    assert own_data(DATA) is DATA
    assert isinstance(DATA, Dataset)


def test_what_other_processes_cannot_find_is_said() -> None:
    with pytest.raises(InvalidInput, match="isolation = 'process'"):
        CallableTraining(noisy_here(), DATA, isolation="process")
    with pytest.raises(InvalidInput, match=r"train = .*a function of \(data, seed\)"):
        CallableTraining(lambda x, y, seed: None, DATA).rehearse(DATA, [SEED])  # noqa: ARG005


def test_scripts_from_standard_input_and_below_a_guard_play_here(tmp_path) -> None:
    script = (
        "import numpy as np\nimport epsilometer\nfrom epsilometer.data import own_data\n"
        "if __name__ == '__main__':\n"
        "    def train(data, seed):\n"
        "        weights = data.x.sum(axis=0) + np.random.default_rng(seed).normal(size=(2, 3))\n"
        "        return lambda points: points @ weights.T\n"
        "    data = (np.eye(8, 3), np.arange(8) % 2)\n"
        "    print(epsilometer.audit(train, data=data, claim=(1.0, 1e-5), trials=3).verdict.outcome)\n"
    )
    (tmp_path / "script.py").write_text(script)
    for arguments, given in ((["script.py"], None), (["-"], script)):
        shown = subprocess.run(
            [sys.executable, *arguments], input=given, cwd=tmp_path, text=True, capture_output=True, check=False
        )
        assert shown.stdout.strip() == "inconclusive", shown.stderr


def test_a_column_without_a_name_is_no_feature(tmp_path) -> None:
    (tmp_path / "d.csv").write_text(",a,label\n0,1.5,no\n1,2.5,yes\n")
    assert own_data(tmp_path / "d.csv").x.tolist() == [[1.5], [2.5]]


def test_scores_that_are_all_equal_are_said_to_see_nothing() -> None:
    subject = CallableTraining(noisy_here(), DATA, score=lambda model, _: float(model(X[:1])[0, 0]))
    assert (
        "all scores are equal" in run(Plan(subject, PointClaim(1.0, 1e-5), 1e-5, ClipBkd(), trials=25)).verdict.reason
    )


def test_what_draws_from_the_operating_system_goes_on_after_a_stop() -> None:
    """No trial of it can be played again to compare: that it is the same game, its code says."""
    fresh = np.random.default_rng()

    def train(data, seed):
        return noisy(data, int(fresh.integers(2**32)))

    subject = CallableTraining(train, DATA, deterministic=False)
    plan = Plan(subject, PointClaim(1.0, 1e-5), 1e-5, ClipBkd(), trials=4)
    store = MemoryStore()
    key = store.begin(plan).fingerprint
    prepared = plan.prepare()
    store.keep(key, prepared)
    begun = [(0, 0), (1, 0)]
    store.add(key, dict(zip(begun, plan.play(prepared, begun), strict=True)), 0.0)
    assert run(plan, store=store).judged == 4
    with pytest.raises(ReplayDiffers):
        run(replace(plan, subject=replace(subject, deterministic=True)), store=other_with(store, plan, subject))


def other_with(store: MemoryStore, plan: Plan, subject: CallableTraining) -> MemoryStore:
    """The same results, as those of a training that says it repeats itself."""
    sure = replace(plan, subject=replace(subject, deterministic=True))
    other, old = MemoryStore(), plan.fingerprint()
    key = other.begin(sure).fingerprint
    other.keep(key, store.preparation(old))
    other.add(key, {trial: scores for trial, scores in store.results(old).items() if trial[1] == 0}, 0.0)
    return other


def test_models_that_agree_on_all_labels_have_not_ignored_their_seed() -> None:
    subject = CallableTraining(lambda _, __: lambda x: np.eye(2)[(np.asarray(x)[:, 0] > 0).astype(int)], DATA)
    assert not subject.ignores_its_seed(SEED)
