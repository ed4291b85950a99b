"""The six adversaries of Nasr et al. (2021) and those since: worlds, powers, crafting, scores."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from epsilometer import DpSgdTraining, Recipe
from epsilometer.adversaries import (
    ADVERSARIES,
    LADDER,
    AdaptivePoison,
    Adversary,
    Api,
    Canaries,
    Game,
    Gradient,
    GradientSteps,
    HiddenState,
    Intermediate,
    MaliciousDataset,
    StaticPoison,
    WorstCaseInit,
)
from epsilometer.adversaries.adaptive_poison import _Simulated
from epsilometer.adversaries.malicious_dataset import unlearnable
from epsilometer.adversaries.static_poison import static_poison
from epsilometer.auditing import Plan, claim_curve
from epsilometer.auditing.plan import _crafted
from epsilometer.claims import Relation
from epsilometer.data import Dataset, digits
from epsilometer.errors import InvalidInput
from epsilometer.evidence import IN, OUT, PerStep
from epsilometer.subjects import Access, Observer, WhiteModel
from epsilometer.training import initial_parameters, network_for, record_losses, train
from epsilometer.training.threefry import trial_key

SEED = np.random.SeedSequence(0)


@pytest.fixture(scope="module")
def data() -> Dataset:
    return digits().subset(classes=(0, 1, 2), per_class=40)


@pytest.fixture(scope="module")
def recipe(data: Dataset) -> Recipe:
    return Recipe(records=len(data), sample_rate=0.2, steps=12, noise_multiplier=1.0, learning_rate=1.0)


def game_of(adversary: Adversary, recipe: Recipe, data: Dataset, relation: Relation = Relation.ADD_REMOVE) -> Game:
    return adversary.game(DpSgdTraining(recipe, data), relation, SEED)


def played(game: Game, recipe: Recipe, data: Dataset, world: int, index: int = 0) -> float:
    seed, observer = np.random.SeedSequence([7, index]), game.observe()
    DpSgdTraining(recipe, data).run([game.insert(world, seed)], [seed], [observer])
    return observer.score()


# -- worlds ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adversary", [Api(), StaticPoison(), Intermediate(), AdaptivePoison(), WorstCaseInit(3)])
@pytest.mark.parametrize("relation", list(Relation))
def test_worlds_differ_in_one_record(adversary: Adversary, relation: Relation, data: Dataset, recipe: Recipe) -> None:
    game = game_of(adversary, recipe, data, relation)
    out, member = (game.insert(world, SEED).data for world in (OUT, IN))
    assert game.group_size == adversary.group_size == 1
    assert len(member) == recipe.records
    if relation is Relation.REPLACE:
        differs = (out.x != member.x).any(axis=1) | (out.y != member.y)
        assert differs.sum() == 1
    else:
        np.testing.assert_array_equal(out.x, member.x[:-1])
        np.testing.assert_array_equal(out.y, member.y[:-1])


def test_the_api_record_can_be_given(data: Dataset, recipe: Recipe) -> None:
    game = game_of(Api(record=5), recipe, data)
    np.testing.assert_array_equal(game.insert(IN, SEED).data.x[-1], data.x[5])
    with pytest.raises(InvalidInput, match="record = 120: expected a row of digits, 0 to 119"):
        game_of(Api(record=120), recipe, data)


# -- crafting ----------------------------------------------------------------------------------------------------------


def test_the_static_poison_has_a_larger_loss_and_stays_among_the_data(data: Dataset, recipe: Recipe) -> None:
    target = static_poison(DpSgdTraining(recipe, data), Relation.ADD_REMOVE, 4, "same", SEED)
    network, label = network_for(recipe, data), np.array([target.label])
    model = train(recipe, data.without(target.row), np.random.SeedSequence(99))  # not one of its shadows

    def loss(x: np.ndarray) -> float:
        return float(record_losses(network.logits(model, x[None]), label)[0])

    assert loss(target.x) > loss(data.x[target.row]) + 1.0
    assert (target.x >= data.x.min(axis=0)).all()
    assert (target.x <= data.x.max(axis=0)).all()
    assert target.other != target.label


def test_a_poison_that_looked_best_by_luck_is_not_taken() -> None:
    """A natural record whose loss each model lowers by 1, or a blank one: by 1.1 on average, by −2 and 4 in turns."""
    known = Dataset("one kind", np.full((9, 2), 0.5), np.zeros(9, int), 2)
    spread = np.linspace(-1.5, 1.5, 8)

    class Models:
        data, loss = replace(known.taken(slice(8)), held_out=known), "cross-entropy"

        def rehearse(self, records: Dataset, seeds) -> list:
            blank = len(records) == 9 and not records.x[-1].any()  # shadows have eight, and the poison
            lowered = (1.1 + 3.0 * (-1.0) ** np.arange(8) if blank else np.ones(8)) * (len(records) == 9)

            def model(lost: float):
                return SimpleNamespace(logits=lambda x: np.tile([-lost, 0.0], (len(x), 1)))  # a loss of `lost`, nearly

            return [model(20.0 + noise - change) for noise, change in zip(spread, lowered, strict=True)]

    target = static_poison(Models(), Relation.ADD_REMOVE, 8, "held-out", SEED)  # type: ignore[arg-type]
    np.testing.assert_array_equal(target.x, [0.5, 0.5])
    assert (target.label, target.other) == (0, 1)


def test_more_sight_starts_from_the_same_poison_and_its_last_loss_is_the_static_score(
    data: Dataset, recipe: Recipe
) -> None:
    static = game_of(StaticPoison(), recipe, data)
    last = game_of(Intermediate("last"), recipe, data)
    for world in (OUT, IN):
        assert played(last, recipe, data, world) == pytest.approx(played(static, recipe, data, world), abs=1e-6)
    mean, most = (game_of(Intermediate(s), recipe, data) for s in ("mean", "max"))
    assert played(most, recipe, data, IN) < played(mean, recipe, data, IN)


def test_an_adaptive_poison_lowers_the_querys_loss_at_least_as_much_as_the_query_itself(
    data: Dataset, recipe: Recipe
) -> None:
    """Where the query's own gradient is shorter than C, another record can do better, and the derivative finds it."""
    network = network_for(recipe, data)
    query = data.x[:1]
    labels = data.y[:1]
    model = train(replace(recipe, noise_multiplier=0.0, learning_rate=5.0, steps=60), data, SEED)
    simulated = _Simulated(network, model[None], query[0], labels, clip_norm=1.0, rates=np.array([0.5]))
    along, before = simulated.ascent(query)
    assert before == pytest.approx(simulated.query_loss(query), abs=1e-9)
    better = simulated.query_loss(query + 0.1 * along / np.linalg.norm(along))
    worse = simulated.query_loss(query - 0.1 * along / np.linalg.norm(along))
    assert better < before < worse


@pytest.mark.parametrize("clip_norm", [1e-3, 100.0], ids=["clipped", "unclipped"])
def test_the_ascent_is_the_derivative_through_the_simulated_step(
    data: Dataset, recipe: Recipe, clip_norm: float
) -> None:
    network = network_for(recipe, data)
    rng = np.random.default_rng(3)
    model = rng.normal(size=network.parameters)
    x, query, labels = rng.random((1, 64)), rng.random((1, 64)), np.array([1])
    simulated = _Simulated(network, model[None], query[0], labels, clip_norm, rates=np.array([0.3]))
    along, _ = simulated.ascent(x)
    size = np.linalg.norm(network.clipped_gradient_sum(model, x, labels, np.inf))
    slope = -0.3 * min(1.0, clip_norm / size) * along[0]
    for feature in (5, 20, 40):
        shift = 1e-5 * (np.arange(64) == feature)
        difference = simulated.query_loss(x + shift) - simulated.query_loss(x - shift)
        assert difference / 2e-5 == pytest.approx(slope[feature], abs=1e-7 + 1e-4 * abs(slope[feature]))


def test_adaptive_poisons_are_really_trained_on(data: Dataset, recipe: Recipe) -> None:
    """World 0 never meets them; world 1 ends in another model than with the query alone."""
    fast = replace(recipe, noise_multiplier=0.0, sample_rate=1.0, steps=30, learning_rate=0.1, clip_norm=100.0)
    adaptive = game_of(AdaptivePoison("last"), fast, data)
    static = game_of(Intermediate("last"), fast, data)
    assert played(adaptive, fast, data, OUT) == played(static, fast, data, OUT)
    assert played(adaptive, fast, data, IN) > played(static, fast, data, IN)


@pytest.mark.parametrize("model", ["mlp", "cnn"])
def test_poisons_of_many_trainings_are_made_at_once_and_each_is_as_if_alone(
    model: str, data: Dataset, recipe: Recipe
) -> None:
    steps = 12 if model == "mlp" else 3
    data = data.subset(per_class=5 if model == "mlp" else 2)
    loose = Recipe(len(data), 0.5, steps, 0.05, clip_norm=20.0, learning_rate=1.0, model=model)
    plan = Plan(DpSgdTraining(loose, data), claim_curve(loose), 1e-5, AdaptivePoison("mean", shadows=2), trials=50)
    made = []
    prepared = plan.prepare()
    poisoner = plan.game(prepared).insert(IN, SEED).poisoner
    make = poisoner.records
    poisoner.records = lambda steps, parameters: made.append(len(steps)) or make(steps, parameters)
    trials = [(OUT, 0), (IN, 3), (IN, 0), (OUT, 2), (IN, 2), (IN, 1)][: 6 if model == "mlp" else 3]
    together = plan.play(prepared, trials)
    assert max(made) == (4 if model == "mlp" else 1)  # of one game, all that wait; modules are handled one by one
    assert len({float(score[0]) for score in together}) == len(trials)
    made.clear()
    for trial, score in zip(trials, together, strict=True):
        assert plan.play(prepared, [trial]) == [score]
    assert max(made) == 1


@pytest.mark.parametrize("direction", ["watermark", "dirac", "random"])
def test_gradients_have_the_clip_norm_in_any_direction(direction: str, data: Dataset, recipe: Recipe) -> None:
    clipped = replace(recipe, clip_norm=0.5)
    game = game_of(Gradient(direction=direction), clipped, data)
    inserted = game.insert(IN, SEED).gradient
    assert inserted is not None
    assert np.linalg.norm(inserted) == pytest.approx(0.5)
    touched = {"watermark": 20, "dirac": 1, "random": len(inserted)}
    assert np.count_nonzero(inserted) == touched[direction]


def test_malicious_records_give_no_gradient_at_the_start(data: Dataset, recipe: Recipe) -> None:
    for chosen in (recipe, replace(recipe, model="mlp")):
        network = network_for(chosen, data)
        start = initial_parameters(chosen, network, trial_key(SEED))
        records = unlearnable(chosen, data, SEED)
        assert records.x.shape == data.x.shape
        natural, crafted = (
            np.linalg.norm(network.clipped_gradient_sum(start, d.x, d.y, 1.0)) / len(data) for d in (data, records)
        )
        assert crafted < 0.01 * natural
    with pytest.raises(InvalidInput, match="fixed: the initial model labels the records; use natural records"):
        game_of(MaliciousDataset(), replace(recipe, initialisation="random"), data)
    with pytest.raises(InvalidInput, match="one that can be so sure of records that they give no gradient"):
        game_of(GradientSteps(malicious=True), replace(recipe, loss="squared"), data)


# -- the hidden state, and chosen weights ----------------------------------------------------------------------------


class Ends(Observer):
    """Keeps the final model."""

    def finish(self, model: WhiteModel) -> None:
        self.parameters = model.parameters.copy()

    def score(self) -> float:
        return 0.0


def test_in_the_hidden_state_the_final_parameter_has_moved_by_all_inserted_gradients(
    data: Dataset, recipe: Recipe
) -> None:
    slow = replace(recipe, sample_rate=1.0, sampling="full", learning_rate=1e-4, clip_norm=0.5, precision="float64")
    for relation, distance in ((Relation.ADD_REMOVE, 1.0), (Relation.REPLACE, 2.0)):
        game = game_of(HiddenState(), slow, data, relation)
        moved = played(game, slow, data, IN) - played(game, slow, data, OUT)
        expected = distance * slow.steps * slow.clip_norm * slow.learning_rate / slow.expected_batch
        assert moved == pytest.approx(expected, rel=1e-3)


def test_without_subsampling_the_hidden_state_hides_nothing(data: Dataset, recipe: Recipe) -> None:
    """N(0, 1) against N(√T/σ, 1), as for those who see every update."""
    slow = replace(recipe, sample_rate=1.0, sampling="full", learning_rate=0.01, noise_multiplier=2.0, steps=16)
    game = game_of(HiddenState(), slow, data)
    out, member = (np.array([played(game, slow, data, world, i) for i in range(150)]) for world in (OUT, IN))
    scale = out.std(ddof=1)
    assert (member.mean() - out.mean()) / scale == pytest.approx(2.0, abs=0.35)
    assert stats.kstest((member - out.mean()) / scale, "norm", args=(2.0, 1.0)).pvalue > 1e-3


def test_the_training_starts_from_the_weights_that_the_adversary_chose(data: Dataset, recipe: Recipe) -> None:
    game = game_of(WorstCaseInit(pretraining=50), recipe, data)
    chosen = game.insert(IN, SEED)
    assert chosen.start is not None
    network = network_for(recipe, data)
    where_it_starts = initial_parameters(recipe, network, trial_key(SEED))
    before, after = (
        np.linalg.norm(network.clipped_gradient_sum(w, data.x, data.y, 1.0)) for w in (where_it_starts, chosen.start)
    )
    assert after < 0.5 * before
    still = replace(recipe, learning_rate=1e-9)
    observer = Ends()
    DpSgdTraining(still, data).run([chosen], [SEED], [observer])
    np.testing.assert_allclose(observer.parameters, chosen.start, atol=1e-6)
    assert game_of(WorstCaseInit(pretraining=0), recipe, data).insert(IN, SEED).start is None


def test_chosen_weights_must_fit_the_model(data: Dataset, recipe: Recipe) -> None:
    game = game_of(WorstCaseInit(3), recipe, data)
    chosen = replace(game.insert(IN, SEED), start=np.zeros(3))
    with pytest.raises(InvalidInput, match=r"start = 'shape \(3,\)'"):
        DpSgdTraining(recipe, data).run([chosen], [SEED], [game.observe()])


# -- single steps ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("malicious", [False, True])
@pytest.mark.parametrize(("relation", "distance"), [(Relation.ADD_REMOVE, 1.0), (Relation.REPLACE, 2.0)])
def test_scores_of_single_steps_are_noise_with_or_without_a_gradient(
    relation: Relation, distance: float, malicious: bool, data: Dataset, recipe: Recipe
) -> None:
    chosen = replace(recipe, clip_norm=0.5, steps=30)
    plan = Plan(DpSgdTraining(chosen, data), claim_curve(chosen, relation), 1e-5, GradientSteps(40, malicious))
    prepared = plan.prepare()
    seen = plan.evidence({(IN, i): plan.play(prepared, [(IN, i)])[0] for i in range(2)}, 2)
    assert isinstance(seen, PerStep)
    assert len(seen.scores) == 2 * 30 * 40
    out, member = seen.scores[~seen.member], seen.scores[seen.member]
    centre = -0.5 if relation is Relation.REPLACE else 0.0
    assert stats.kstest(out, "norm", args=(centre, 0.5)).pvalue > 1e-3
    assert stats.kstest(member, "norm", args=(centre + 0.5 * distance, 0.5)).pvalue > 1e-3
    assert stats.kstest(member, "norm", args=(centre, 0.5)).pvalue < 1e-3


def test_without_a_number_coordinates_are_as_many_as_are_quiet(data: Dataset, recipe: Recipe) -> None:
    """A tenth of the noise: with more noise, more of them are."""
    counts = [
        game_of(GradientSteps(), replace(recipe, noise_multiplier=noise), data).scores for noise in (1e-6, 1.0, 1e4)
    ]
    assert counts[1] % 12 == 0
    assert 12 * 20 <= counts[0] < counts[1] < counts[2] == 12 * 195  # 3 classes of 64 pixels and a bias
    with pytest.raises(InvalidInput, match="coordinates = 196: expected at most the model's 195"):
        game_of(GradientSteps(196), recipe, data)
    with pytest.raises(InvalidInput, match="poisson or full: an accountant adds up the steps"):
        game_of(GradientSteps(), replace(recipe, sampling="shuffle"), data)


def test_another_recipe_composes_its_own_steps(data: Dataset, recipe: Recipe) -> None:
    plan = Plan(DpSgdTraining(recipe, data), claim_curve(recipe), 1e-5, GradientSteps(5))
    shorter = replace(recipe, steps=3)
    changed = replace(plan, subject=replace(plan.subject, recipe=shorter), claim=claim_curve(shorter))
    made = Plan(DpSgdTraining(shorter, data), claim_curve(shorter), 1e-5, GradientSteps(5))
    assert changed.planned_method == made.planned_method
    assert changed.planned_method != plan.planned_method


# -- powers ------------------------------------------------------------------------------------------------------------


def test_nobody_plays_who_needs_more_than_the_training_grants(data: Dataset, recipe: Recipe) -> None:
    """Refused when the plan is made: nothing is crafted, nothing trained."""

    def plan(adversary: Adversary, access: Access) -> Plan:
        return Plan(DpSgdTraining(recipe, data), claim_curve(recipe), 1e-5, adversary, access=access)

    black_box = Access("final-model", ["records"])
    with pytest.raises(InvalidInput) as refused:
        plan(Gradient(), black_box)
    message = str(refused.value)
    assert "it also needs every-model, gradients" in message
    able = re.search(r"these would work: (.*)", message)
    assert able is not None
    assert able[1].split(", ") == ["api", "static-poison", "clipbkd", "backdoor", "membership", "learned"]
    for name in able[1].split(", "):
        plan(ADVERSARIES[name](), black_box)
    with pytest.raises(InvalidInput, match="also needs initial-weights"):
        plan(WorstCaseInit(), black_box)
    plan(WorstCaseInit(pretraining=0), black_box)
    plan(Canaries(kind="records", sees="model", canaries=10), black_box)
    with pytest.raises(InvalidInput, match="also needs every-model"):
        plan(Canaries(kind="records", canaries=10), black_box)


def test_greater_powers_include_lesser_ones() -> None:
    assert not Access("every-model", ["gradients"]).lacks(AdaptivePoison.threat)
    assert Access("every-model", ["records"]).lacks(AdaptivePoison.threat) == ["records-in-steps"]
    assert Access("final-model", []).lacks(StaticPoison.threat) == ["records"]
    assert all(not Access().lacks(kind().needs) for kind in ADVERSARIES.values())
    with pytest.raises(InvalidInput, match=r"controls = 'grads': expected one of .*; did you mean 'gradients'"):
        Access("every-model", ["grads"])


def test_who_may_play_changes_no_result(data: Dataset, recipe: Recipe) -> None:
    free = Plan(DpSgdTraining(recipe, data), claim_curve(recipe), 1e-5, StaticPoison())
    assert free.fingerprint() == replace(free, access=Access("final-model", ["records"])).fingerprint()


@pytest.mark.parametrize("name", LADDER)
def test_every_rung_is_a_pure_function_of_plan_world_and_index(name: str, data: Dataset, recipe: Recipe) -> None:
    plan = Plan(DpSgdTraining(recipe, data), claim_curve(recipe), 1e-5, ADVERSARIES[name](), trials=2)
    together = plan.play(plan.prepare(), [(OUT, 0), (IN, 0), (IN, 1)])
    _crafted.cache_clear()
    prepared = plan.prepare()
    alone = [plan.play(prepared, [trial])[0] for trial in ((IN, 1), (IN, 0), (OUT, 0))]
    np.testing.assert_array_equal(np.ravel(together), np.ravel(alone[::-1]))
