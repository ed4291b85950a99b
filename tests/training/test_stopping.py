"""What Abadi et al. (2016) need of a training: rates that fall and stay, an end at a budget, a look at every epoch."""

import numpy as np
import pytest

from epsilometer.accounting import Budget, BudgetExceeded, Composition, DpSgd, account
from epsilometer.auditing import Spec, parse_spec
from epsilometer.data import Dataset, digits
from epsilometer.errors import InvalidInput
from epsilometer.mechanisms import DpPca
from epsilometer.subjects import DpSgdTraining
from epsilometer.training import Every, Recipe, accuracy, median_gradient_norm, network_for, train, within_budget

RECIPE = Recipe(records=60_000, sample_rate=0.01, noise_multiplier=4.0, steps=10**6)
SEED = np.random.SeedSequence(0)


def test_a_rate_falls_on_a_line_and_stays() -> None:
    """From .1 to .052 in ten epochs of 100 steps (Abadi et al. 2016, section 5.2)."""
    recipe = Recipe(
        60_000, learning_rate=0.1, final_learning_rate=0.052, schedule="linear", decay_steps=1000, steps=2000
    )
    rates = recipe.learning_rates()
    assert (rates[0], rates[500], rates[1000], rates[-1]) == pytest.approx((0.1, 0.076, 0.052, 0.052))
    np.testing.assert_allclose(np.diff(rates[:1000]), -0.048 / 1000)
    whole = Recipe(10, schedule="cosine", steps=100, learning_rate=1.0, final_learning_rate=0.5).learning_rates()
    assert whole[0] == 1.0
    assert whole[-1] == pytest.approx(0.5, abs=1e-3)


def test_plans_of_earlier_versions_stay_the_same() -> None:
    assert not {"final_learning_rate", "decay_steps"} & RECIPE.to_dict().keys()
    used = Recipe(10, schedule="linear", decay_steps=5).to_dict()
    assert used["decay_steps"] == 5
    assert "final_learning_rate" not in used


# ------------------------------------------------------------------------------------------------------- the budget
@pytest.mark.parametrize(
    "accountant", ["moments", *(pytest.param(name, marks=pytest.mark.full) for name in ("rdp", "pld"))]
)
def test_one_step_more_would_be_too_much(accountant: str) -> None:
    """After a release of another kind; whoever forgot that would train too long."""
    pca = DpPca(60, 7.0)
    budget = Budget(1.0, 1e-5, accountant=accountant)
    budget.spend(pca.event)
    steps = within_budget(RECIPE, budget).steps

    def spent(count: int) -> float:
        whole = Composition.of(pca.event).plus(RECIPE.mechanism.event, count)
        return account(whole, 1e-5, accountant=accountant).epsilon

    assert spent(steps) <= 1.0 < spent(steps + 1)
    assert budget.spent.epsilon == pytest.approx(spent(steps))
    assert steps < 0.9 * within_budget(RECIPE, Budget(1.0, 1e-5, accountant=accountant)).steps
    with pytest.raises(BudgetExceeded, match="one step with noise_multiplier = 4 costs more than is left"):
        within_budget(RECIPE, budget)


def test_enough_budget_changes_nothing() -> None:
    short = Recipe(records=100, sample_rate=0.1, noise_multiplier=4.0, steps=7)
    assert within_budget(short, Budget(5.0, 1e-5)) == short


def test_what_no_accountant_proves_has_no_budget() -> None:
    with pytest.raises(InvalidInput, match="sampling = 'shuffle': expected poisson or full"):
        within_budget(Recipe(100, sampling="shuffle"), Budget(5.0, 1e-5))


def test_a_spec_ends_at_its_budget() -> None:
    plan = parse_spec("[training]\nnoise_multiplier = 2.0\nsteps = 5000\nbudget = 1.0").plan()
    assert isinstance(plan.subject, DpSgdTraining)
    steps = plan.subject.recipe.steps
    found = [account(DpSgd(0.1, 2.0, count), 1e-5).epsilon for count in (steps, steps + 1)]
    assert found[0] <= 1.0 < found[1]
    assert 0.9 < plan.claim.epsilon_at(1e-5) <= 1.0


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("budget = 0.001\nnoise_multiplier = 1.0", r"training\.budget = 0\.001: expected enough for a step"),
        ("budget = -1", r"training\.budget = -1\.0: expected a number in \(0, inf\)"),
        ('clip_norm = "mean"', r"""training\.clip_norm = 'mean': expected a number, or "median"$"""),
        ("clip_norm = [1.0]", r"""training\.clip_norm = \[1\.0\]: expected a number, or "median"$"""),
        ("clip_norm = -1", r"training\.clip_norm = -1\.0: expected a number in"),
        ('clip_norm = "median"\nlearning_rate = 1e20', r"training\.learning_rate = 1e\+20: expected a rate with which"),
        ("decay_steps = 3", r"training\.decay_steps = 3: expected nothing while the rate is constant"),
        ('schedule = "linear"\nfinal_learning_rate = -1', r"training\.final_learning_rate = -1\.0: expected"),
    ],
)
def test_bad_input(lines: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        parse_spec(f"[training]\n{lines}").plan()


# ------------------------------------------------------------------------------------------------------- the clip norm
def test_a_median_clip_norm_from_a_spec() -> None:
    """It is the recipe's from then on, said with what it costs, and repeats itself."""
    text = '[training]\nclip_norm = "median"\nlearning_rate = 0.5\nsteps = 20'
    plan = parse_spec(text).plan()
    assert isinstance(plan.subject, DpSgdTraining)
    chosen = plan.subject.recipe.clip_norm
    assert 0.1 < chosen < 10
    assert f"C = {chosen:.4g}, the median gradient norm of these data, for which nobody accounts" in repr(plan)
    assert plan.fingerprint() == parse_spec(text).plan().fingerprint()
    assert parse_spec(f"{text}\n[audit]\nseed = 1").plan().subject.recipe.clip_norm != chosen  # type: ignore[attr-defined]
    given = parse_spec(text.replace('"median"', repr(chosen))).plan()
    assert given.fingerprint() == plan.fingerprint()  # scores depend on the number alone
    assert "median" not in repr(given)
    assert "median" not in repr(Spec().plan())


def test_norms_of_a_modules_gradients_are_those_of_the_same_network() -> None:
    """For the median of a torch module: record by record as clipping sees them."""
    rng = np.random.default_rng(0)
    data = Dataset("images", rng.random((140, 16)), rng.integers(0, 3, 140), 3)
    recipe = Recipe(140, model="cnn", steps=2, learning_rate=0.1)
    network = network_for(recipe, data)
    flat = network.initial(rng, 1.0)
    norms = network.gradient_norms(flat, data.x.astype(float), data.y)
    alone = [
        np.linalg.norm(network.clipped_gradient_sum(flat, row[None].astype(float), label[None], np.inf))
        for row, label in zip(data.x[:5], data.y[:5], strict=True)
    ]
    np.testing.assert_allclose(norms[:5], alone, rtol=1e-6)
    assert len(norms) == 140
    assert 0 < median_gradient_norm(recipe, data, SEED) < 100


# ------------------------------------------------------------------------------------------------------- looking on
def test_a_look_at_every_epoch_changes_nothing() -> None:
    data = digits()
    recipe = Recipe(len(data), steps=25, noise_multiplier=0.5)
    seen: dict[int, np.ndarray] = {}
    final = train(recipe, data, SEED, Every(10, lambda steps, parameters: seen.update({steps: parameters.copy()})))
    assert list(seen) == [10, 20]
    np.testing.assert_array_equal(final, train(recipe, data, SEED))
    network = network_for(recipe, data)
    shares = [accuracy(network.logits(flat, data.x), data.y) for flat in (seen[10], final)]
    assert 0.5 < shares[0] < shares[1] < 1.0


def test_the_colour_network_is_the_papers() -> None:
    """Two convolutions of 5 × 5 and 64 channels on 24 × 24 pixels, two layers of 384: the borders are cropped away."""
    rng = np.random.default_rng(0)
    images = rng.random((4, 3, 32, 32)).astype(np.float32)
    data = Dataset("colours", images.reshape(4, -1), np.array([0, 1, 2, 9]), 10, shape=(3, 32, 32))
    network = network_for(Recipe(4, model="colour-cnn"), data)
    convolutions = (75 + 1) * 64 + (1600 + 1) * 64
    assert network.parameters == convolutions + (2304 + 1) * 384 + (384 + 1) * 384 + (384 + 1) * 10
    flat = network.initial(rng, 1.0).astype(np.float32)
    outputs = network.logits(flat, data.x)
    images[:, :, :4], images[:, :, :, 28:] = 0.0, 1.0
    np.testing.assert_array_equal(network.logits(flat, images.reshape(4, -1)), outputs)
    images[:, :, 4:6] = 0.0
    assert not np.array_equal(network.logits(flat, images.reshape(4, -1)), outputs)
    assert network._layered  # type: ignore[union-attr]  # the quick way to gradients agrees with torch.func
    with pytest.raises(InvalidInput, match="square images of three channels"):
        network_for(Recipe(4, model="colour-cnn"), Dataset("flat", np.ones((4, 784)), [0, 1, 0, 1], 2))
