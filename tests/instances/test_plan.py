"""Records' ε from trainings of the own engine: what is noted, what is kept, and the truth where that is known."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from epsilometer.adversaries.record_gradient import RecordGradient
from epsilometer.auditing import Plan, claim_curve
from epsilometer.claims import GaussianClaim, Relation
from epsilometer.data import Dataset, load
from epsilometer.errors import InvalidInput
from epsilometer.evidence import IN
from epsilometer.instances import (
    Agreement,
    ClippedNorms,
    InstancePlan,
    MeanUpdates,
    chosen_records,
    draw_batches,
    ends,
    individual_epsilons,
    measure,
    most_accurate,
    most_memorised,
    most_reconstructed,
    run_instances,
    unlearned_for_free,
)
from epsilometer.instances.plan import mean_recipe
from epsilometer.runs import Inline, MemoryStore, run_directory
from epsilometer.subjects import DpSgdTraining, Faults
from epsilometer.training import Recipe, network_for, train
from epsilometer.training.sampling import sample
from epsilometer.training.threefry import trial_key

DATA = load(name="digits", classes=[0, 1, 2], per_class=20)
RECIPE = Recipe(records=60, sample_rate=0.3, steps=8, noise_multiplier=1.5, learning_rate=1.0)
ROWS = (3, 17, 30, 44, 59)
# Records of very different size, and models that do not move: a Gaussian mean of known values, released eight times.
SPREAD = Dataset("spread", DATA.x * np.linspace(0.02, 1.5, 60, dtype=np.float32)[:, None], DATA.y, 3)
STILL = replace(RECIPE, sample_rate=1.0, learning_rate=1e-20, clip_norm=4.0, noise_multiplier=4.0, init_scale=1e-6)
STRENGTHS = (
    np.sqrt(8) / 4.0 * np.minimum(network_for(STILL, SPREAD).gradient_norms(np.zeros(195), SPREAD.x, DATA.y) / 4, 1)
)
SEED = np.random.SeedSequence(4)


def _plan(**changes: object) -> InstancePlan:
    return InstancePlan(**{"subject": DpSgdTraining(RECIPE, DATA), "records": ROWS, "delta": 1e-5} | changes)


@pytest.mark.parametrize("clipping", ["flat", "per-layer", "automatic"])
@pytest.mark.parametrize("model", [{"model": "logistic"}, {"model": "mlp", "hidden": (7,)}])
def test_norms_are_those_of_gradients_taken_one_by_one(model: dict, clipping: str) -> None:
    recipe = replace(RECIPE, clipping=clipping, precision="float64", clip_norm=2.0, **model)
    network = network_for(recipe, DATA)
    parameters = network.initial(np.random.default_rng(1), 1.0)
    x = DATA.x.astype(np.float64)
    found = network.clipped_norms(parameters, x, DATA.y, 2.0, clipping)
    for row in range(0, 60, 7):
        one = network.clipped_gradient_sum(parameters, x[row : row + 1], DATA.y[row : row + 1], 2.0, clipping)
        assert found[row] == pytest.approx(np.linalg.norm(one), rel=1e-9)


def test_who_takes_notes_changes_nothing() -> None:
    noted = ClippedNorms(RECIPE, network_for(RECIPE, DATA), DATA.taken(np.asarray(ROWS)))
    assert train(RECIPE, DATA, SEED, noted).tobytes() == train(RECIPE, DATA, SEED).tobytes()
    assert noted.shares.shape == (8, 5)
    assert (noted.shares <= 1.0).all()


def test_the_mean_rule_trains_with_means() -> None:
    """Against a plain loop without noise; and its models are those on the way."""
    recipe = replace(RECIPE, weight_decay=0.1, precision="float64")
    watcher = MeanUpdates(mean_recipe(recipe), 60, SEED, every=3)
    found = train(mean_recipe(recipe), DATA, SEED, watcher, noise_scale=0.0)
    network, key = network_for(recipe, DATA), trial_key(SEED)
    model = watcher.models[0].copy()
    for step in range(8):
        if step % 3 == 0:
            assert watcher.models[step // 3] == pytest.approx(model)
        rows = sample(recipe, key, step, 60)
        total = network.clipped_gradient_sum(model, DATA.x[rows].astype(np.float64), DATA.y[rows], 1.0)
        model -= total / max(len(rows), 1) + 0.1 * model
    assert found == pytest.approx(model)


def test_batches_are_what_their_members_say() -> None:
    recipe, everybody = replace(RECIPE, precision="float64"), np.arange(60)
    network = network_for(recipe, DATA)
    model = network.initial(np.random.default_rng(1), 1.0)
    found = draw_batches(recipe, network, model, DATA, everybody, draws=2, tuples=3, order=4, seed=SEED)
    x = DATA.x.astype(np.float64)
    gradients = np.array([network.clipped_gradient_sum(model, x[i : i + 1], DATA.y[i : i + 1], 1.0) for i in everybody])
    sums = found.members @ gradients
    inner = sums[2:].reshape(3, 4, -1)
    assert found.sizes.tolist() == found.members.sum(axis=1).tolist()
    assert found.products == pytest.approx(sums @ gradients.T)
    assert found.squares == pytest.approx(np.square(sums).sum(axis=1))
    assert found.tuple_products == pytest.approx(np.einsum("kip,kjp->kij", inner, inner))
    assert found.cross_products == pytest.approx(np.einsum("jp,kip->jki", sums[:2], inner))
    sizes = draw_batches(recipe, network, model, DATA, everybody, draws=500, tuples=1, order=2, seed=SEED).sizes
    assert sizes.mean() == pytest.approx(18, abs=0.6)  # 60 coins of 0.3
    assert sizes.var() == pytest.approx(12.6, rel=0.2)


def test_no_record_has_less_than_its_truth_where_that_is_known() -> None:
    """ε of each record is exact there. No bound is below it or above the worst case, and all are near."""
    truth = np.array([GaussianClaim(strength).epsilon_at(1e-5) for strength in STRENGTHS])
    assert truth.max() > 4 * truth.min()
    for rule in ("sum", "individual"):
        result = run_instances(_plan(subject=DpSgdTraining(STILL, SPREAD), records=tuple(range(60)), rule=rule))
        assert (result.epsilons >= truth * (1 - 1e-4)).all()
        assert (result.epsilons <= result.worst_case.epsilon).all()
        assert (result.epsilons <= truth * 1.3).all()
        assert stats.spearmanr(result.epsilons, truth).statistic > 0.99


def test_what_was_interrupted_goes_on_and_is_the_same(tmp_path: Path) -> None:
    class StopsAfterOne(Inline):
        def play(self, job, groups):
            yield next(iter(super().play(job, groups)))
            raise KeyboardInterrupt

    for rule in ("sum", "mean"):
        plan = _plan(rule=rule, trainings=4, tuples=3, draws=2, every=2)
        with pytest.raises(KeyboardInterrupt), run_directory(tmp_path / rule, plan) as store:
            run_instances(plan, store=store, executor=StopsAfterOne())
        with run_directory(tmp_path / rule, plan) as store:
            assert 0 < store.begin(plan).trials < plan.planned_trials
            found = run_instances(plan, store=store)
        whole = run_instances(plan)
        assert found.epsilons.tobytes() == whole.epsilons.tobytes()
        assert found.certified is not None
        assert (found.certified >= found.epsilons - 1e-9).all()
        assert (found.certified <= found.worst_case.epsilon).all()


def test_a_checkpoint_that_is_missing_is_said() -> None:
    plan = _plan(rule="mean", trainings=1, tuples=2, draws=2, every=4)
    prepared = plan.prepare()
    prepared.arrays["models"] = prepared.arrays["models"][:, :1]
    with pytest.raises(InvalidInput, match="checkpoint = '1 of training 0'"):
        plan.play(prepared, [(IN, 1)])


LONG = DpSgdTraining(replace(RECIPE, steps=2_000_000, noise_multiplier=1e4), DATA)
ALL = tuple(range(60))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"records": (3, 60)}, "records = 60: expected a whole number from 0 to 59"),
        ({"records": (3, 3)}, "each once"),
        ({"records": ()}, "rows of the data"),
        ({"p": 1.0}, "p = 1.0"),
        ({"order": 1.0}, "order = 1.0"),
        ({"every": 9}, "the checkpoint is missing"),
        ({"rule": "summ"}, "did you mean 'sum'"),
        ({"rule": "individual", "trainings": 2}, "one training"),
        ({"relation": Relation.REPLACE}, "add-remove"),
        ({"relation": Relation.ZERO_OUT, "rule": "mean"}, "still counts in the size of a batch"),
        ({"subject": DpSgdTraining(RECIPE, DATA, Faults(0.5))}, "faults"),
        ({"subject": DpSgdTraining(replace(RECIPE, sampling="shuffle"), DATA)}, "poisson or full"),
        ({"subject": DpSgdTraining(replace(RECIPE, noise_multiplier=0.0), DATA)}, "some noise"),
        ({"delta": 0.0}, "delta"),
        (
            {"subject": LONG, "records": ALL},
            r"every = 1: expected a larger interval: 120,000,000 numbers of a training would be kept",
        ),
        ({"subject": LONG, "records": ALL, "every": 2, "trainings": 20}, "1,200,000,000 numbers of all trainings"),
        ({"subject": LONG, "rule": "mean", "every": 1}, "numbers of a training would be kept"),
    ],
)
def test_plans_explain_what_is_wrong(changes: dict, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        _plan(**changes)


def test_records_are_chosen_without_looking() -> None:
    assert chosen_records(DATA, 5, 0) == chosen_records(DATA, 5, 0) != chosen_records(DATA, 5, 1)
    with pytest.raises(InvalidInput, match="records = 61"):
        chosen_records(DATA, 61, 0)


def test_the_record_adversary_is_the_best_one_where_nothing_moves() -> None:
    """Scores are Gaussian with the record's own μ there, and what is certified stays below what the record pays."""
    recipe = replace(STILL, noise_multiplier=1.5)
    plan = _plan(subject=DpSgdTraining(recipe, SPREAD), rule="individual", records=tuple(range(60)))
    result = run_instances(plan)
    seen = measure(result, ends(result, 1), trials=200, store=MemoryStore(), executor=Inline())
    for one in seen:
        assert one.strength == pytest.approx(STRENGTHS[one.row] * 4.0 / 1.5, abs=0.25)
        assert one.bound.epsilon <= one.epsilon
        assert one.memorised == 0  # models that stand still learn nothing
    assert seen[0].epsilon < seen[1].epsilon
    assert seen[0].strength < seen[1].strength
    assert seen[1].bound.epsilon > 0.5
    with pytest.raises(InvalidInput, match="measure"):
        ends(result, 31)


def test_records_that_all_pay_the_worst_case_are_told_apart_by_their_most_costly_training() -> None:
    result = run_instances(_plan(subject=DpSgdTraining(RECIPE, SPREAD), records=tuple(range(60)), trainings=3))
    tied = np.flatnonzero(result.epsilons == result.worst_case.epsilon)
    assert len(tied) > 1
    assert result.costliest_training is not None
    order = result.from_least_to_most_exposed
    assert (np.diff(result.epsilons[order]) >= 0).all()
    assert (np.diff(result.costliest_training[order[-len(tied) :]]) >= 0).all()
    assert ends(result, 1)[1] == order[-1]
    assert "with p = 9 as asked" in replace(result, plan=replace(result.plan, p=9.0)).kind
    assert "tells nothing of others" in replace(result, plan=replace(result.plan, trainings=1)).kind


def test_the_record_adversary_wants_a_record_that_is_there_or_not() -> None:
    subject = DpSgdTraining(RECIPE, DATA)
    plan = Plan(subject, claim_curve(RECIPE, "replace"), 1e-5, RecordGradient(3), trials=2)
    with pytest.raises(InvalidInput, match="replace"):
        plan.prepare()


def test_what_an_epsilon_means() -> None:
    assert most_accurate(np.array([0.0, np.log(3), np.inf]), 0.0).tolist() == [0.5, 0.75, 1.0]
    assert most_memorised(0.0, 0.1) == pytest.approx(0.1)
    assert most_reconstructed([0.0, 50.0], 1e-5, 100).tolist() == [pytest.approx(0.01001), 1.0]
    assert unlearned_for_free([0.5, 1.0, 3.0, 4.0]) == 0.5


def test_individual_accounting_of_a_run_is_that_of_its_norms() -> None:
    plan = _plan(rule="individual", seed=3)
    noted = ClippedNorms(RECIPE, network_for(RECIPE, DATA), plan.looked_at)
    train(RECIPE, DATA, plan._seed(0), noted)
    direct = individual_epsilons(noted.shares, RECIPE.mechanism, 1e-5)
    assert run_instances(plan).epsilons == pytest.approx(np.minimum(direct, plan.worst_case.epsilon))
    assert isinstance(plan.looked_at, Dataset)


def test_cheaper_checks_say_that_they_are_and_how_well_they_agree() -> None:
    recipe = replace(RECIPE, model="mlp", hidden=(7,), steps=20)
    subject, everybody = DpSgdTraining(recipe, SPREAD), tuple(range(60))
    full = run_instances(_plan(subject=subject, records=everybody, rule="individual"))
    fewer = run_instances(_plan(subject=subject, records=everybody, rule="individual", every=5))
    last = run_instances(_plan(subject=subject, records=everybody, rule="individual", last_layer=True))
    assert Agreement.of(full.epsilons, full.epsilons).rank_correlation == pytest.approx(1.0)
    assert Agreement.of(full.epsilons, fewer.epsilons).rank_correlation > 0.9
    assert (last.epsilons <= full.epsilons + 1e-9).all()  # a part of a gradient is no longer than the whole
    assert "no bound" in last.kind
    assert "every 5 steps" in fewer.kind
    with pytest.raises(InvalidInput, match="last_layer"):
        _plan(rule="mean", last_layer=True)
    with pytest.raises(InvalidInput, match="same records"):
        Agreement.of(full.epsilons, full.epsilons[:3])


def test_norms_of_the_last_layer_are_a_part_of_all() -> None:
    recipe = replace(RECIPE, model="mlp", hidden=(7,), precision="float64")
    network = network_for(recipe, DATA)
    model, x = network.initial(np.random.default_rng(1), 1.0), DATA.x.astype(np.float64)
    gradient = network.clipped_gradient_sum(model, x[:1], DATA.y[:1], np.inf)
    weights, biases = network.layers(gradient)[-1]
    norm = np.sqrt(np.square(weights).sum() + np.square(biases).sum())
    assert network.last_layer_norms(model, x[:1], DATA.y[:1]) == pytest.approx([norm])


def test_many_trainings_certify_what_small_records_pay() -> None:
    """Models move here, and the bound is for whatever they do: 800 trainings at δ = 0.02 do what 8 cannot."""
    recipe = replace(STILL, learning_rate=0.5, noise_multiplier=2.0, init_scale=0.1)
    plan = _plan(subject=DpSgdTraining(recipe, SPREAD), records=(*range(0, 28, 2), 59), delta=0.02, trainings=800)
    found = run_instances(plan)
    few = run_instances(replace(plan, trainings=8))
    assert found.certified is not None
    assert few.certified == pytest.approx(np.full(15, found.worst_case.epsilon))
    assert few.trainings_wanted is not None
    assert 100 <= few.trainings_wanted <= 1024
    assert found.costliest_training is not None
    assert (found.certified >= np.minimum(found.costliest_training, found.worst_case.epsilon)).all()
    assert found.certified[:5].max() < 0.7 * found.worst_case.epsilon
    assert found.certified[-1] == found.worst_case.epsilon  # whose gradients are clipped
