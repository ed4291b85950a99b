import numpy as np
import pytest
from scipy import stats

from epsilometer import DpSgdTraining, Recipe
from epsilometer.adversaries import ADVERSARIES, ClipBkd, Game, Gradient
from epsilometer.adversaries.clipbkd import least_singular_direction
from epsilometer.claims import Relation
from epsilometer.data import Dataset, digits
from epsilometer.errors import InvalidInput
from epsilometer.evidence import IN, OUT
from epsilometer.subjects import Controls, Sees

SEED = np.random.SeedSequence(0)


def scores(game: Game, subject: DpSgdTraining, world: int, trials: int) -> np.ndarray:
    found = []
    for index in range(trials):
        seed, observer = np.random.SeedSequence([world, index]), game.observe()
        subject.run([game.insert(world, seed)], [seed], [observer])
        found.append(observer.score())
    return np.array(found)


@pytest.fixture(scope="module")
def data() -> Dataset:
    return digits()


def test_the_gradient_adversary_plays_the_gaussian_game_exactly(data: Dataset) -> None:
    """Full batch, watermark where natural gradients vanish: N(0, T) against N(μ, T)-like scores, μ = √T/σ."""
    subject = DpSgdTraining(Recipe(records=len(data), sample_rate=1.0, steps=4, noise_multiplier=2.0), data)
    game = Gradient().game(subject, Relation.ADD_REMOVE, SEED)
    out, member = (scores(game, subject, world, 200) for world in (OUT, IN))
    # The log-likelihood ratio of N(μ, 1) to N(0, 1) is N(∓μ²/2, μ²), here with μ = √4/2 = 1.
    for sample, mean in ((out, -0.5), (member, 0.5)):
        assert stats.kstest(sample, "norm", args=(mean, 1.0)).pvalue > 1e-3
    assert stats.kstest(out, "norm", args=(-0.5, 1.5)).pvalue < 1e-3


def test_under_replace_the_canary_turns_round(data: Dataset) -> None:
    subject = DpSgdTraining(Recipe(records=len(data), sample_rate=1.0, steps=1, noise_multiplier=2.0), data)
    game = Gradient().game(subject, Relation.REPLACE, SEED)
    out, member = (scores(game, subject, world, 300) for world in (OUT, IN))
    # Distance 2C at σ = 2: μ = 1.
    assert stats.kstest(out, "norm", args=(-0.5, 1.0)).pvalue > 1e-3
    assert stats.kstest(member, "norm", args=(0.5, 1.0)).pvalue > 1e-3


def test_with_subsampling_the_scores_are_log_likelihood_ratios(data: Dataset) -> None:
    """E over the out-world of e^score is 1, and it is the mixture's: nothing is lost or invented."""
    subject = DpSgdTraining(Recipe(records=len(data), sample_rate=0.2, steps=3, noise_multiplier=1.5), data)
    game = Gradient().game(subject, Relation.ADD_REMOVE, SEED)
    ratios = np.exp(scores(game, subject, OUT, 400))
    assert abs(ratios.mean() - 1) < 4 * ratios.std() / 20
    assert scores(game, subject, IN, 400).mean() > np.log(ratios).mean()


def test_the_watermark_has_the_clip_norm_and_sits_on_quiet_coordinates(data: Dataset) -> None:
    subject = DpSgdTraining(Recipe(records=len(data), clip_norm=0.5), data)
    game = Gradient(coordinates=12).game(subject, Relation.ADD_REMOVE, SEED)
    inserted = game.insert(IN, SEED).gradient
    assert np.linalg.norm(inserted) == pytest.approx(0.5)
    silent_pixels = np.flatnonzero(data.x.max(axis=0) == 0)
    touched = np.flatnonzero(inserted)
    assert len(touched) == 12
    assert set(touched % 64) <= set(silent_pixels)  # logistic weights are class × pixel


def test_clipbkd_poisons_where_the_data_do_not_go(data: Dataset) -> None:
    game = ClipBkd(copies=3).game(DpSgdTraining(Recipe(records=len(data)), data), Relation.ADD_REMOVE, SEED)
    out, member = (game.insert(world, SEED).data for world in (OUT, IN))
    assert len(member) == len(out) + 3
    assert game.group_size == 3
    poison = member.x[-1]
    assert np.linalg.norm(poison) == pytest.approx(np.median(np.linalg.norm(data.x, axis=1)), rel=1e-5)
    assert np.abs(data.x @ poison).max() < 1e-4  # digits have pixels that are always blank


def test_clipbkd_under_replace_changes_a_label_only(data: Dataset) -> None:
    game = ClipBkd(copies=2).game(DpSgdTraining(Recipe(records=len(data)), data), Relation.REPLACE, SEED)
    out, member = (game.insert(world, SEED).data for world in (OUT, IN))
    assert len(member) == len(out) == len(data)
    np.testing.assert_array_equal(member.x, out.x)
    changed = np.flatnonzero(member.y != out.y)
    assert len(changed) == 2
    np.testing.assert_array_equal(np.flatnonzero((member.x != data.x).any(axis=1)), changed)


def test_clipbkd_separates_perfectly_without_noise(data: Dataset) -> None:
    subject = DpSgdTraining(Recipe(records=len(data), noise_multiplier=0.0, steps=50), data)
    game = ClipBkd().game(subject, Relation.ADD_REMOVE, SEED)
    assert scores(game, subject, OUT, 10).max() < scores(game, subject, IN, 10).min()


def test_the_least_singular_direction_is_the_flattest() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 4)) * np.array([3, 2, 0.01, 1])
    assert abs(least_singular_direction(x)[2]) > 0.99
    wide = rng.normal(size=(3, 8))
    assert np.abs(wide @ least_singular_direction(wide)).max() < 1e-9


def test_every_adversary_states_its_threat_model() -> None:
    for name, adversary in ADVERSARIES.items():
        assert adversary.name == name
        assert adversary.summary
        assert isinstance(adversary.threat.sees, Sees)
        assert all(isinstance(power, Controls) for power in adversary.threat.controls)
        assert adversary().needs.knows


def test_impossible_games_are_refused_in_words(data: Dataset) -> None:
    with pytest.raises(InvalidInput, match="at most the model's 650 parameters"):
        Gradient(coordinates=651).game(DpSgdTraining(Recipe(records=len(data)), data), Relation.ADD_REMOVE, SEED)
    silent = DpSgdTraining(Recipe(records=len(data), noise_multiplier=0.0), data)
    with pytest.raises(InvalidInput, match="clipbkd"):
        Gradient().game(silent, Relation.ADD_REMOVE, SEED)
    with pytest.raises(InvalidInput, match="copies = 0"):
        ClipBkd(copies=0)
