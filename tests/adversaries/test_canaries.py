"""Canary games: one training, many coins."""

import numpy as np
import pytest

from epsilometer import DpSgdTraining, PointClaim, Recipe, run
from epsilometer.adversaries import ADVERSARIES, Canaries
from epsilometer.auditing import Outcome, Plan, parse_spec
from epsilometer.bounds import OneRunPoint, one_run
from epsilometer.claims import Relation
from epsilometer.data import Dataset, digits
from epsilometer.errors import InvalidInput
from epsilometer.evidence import IN, OneRun
from epsilometer.training import network_for


def plan(adversary: Canaries, sigma: float = 0.5, **changes) -> Plan:
    data = digits()
    settings = {"sample_rate": 0.1, "steps": 30, "learning_rate": 0.5} | changes.pop("recipe", {})
    recipe = Recipe(records=len(data), noise_multiplier=sigma, **settings)
    return Plan(DpSgdTraining(recipe, data), PointClaim(2.0, 1e-5), 1e-5, adversary, **changes)


def played(chosen: Plan, index: int = 0) -> OneRun:
    prepared = chosen.prepare()
    results = {(IN, index): chosen.play(prepared, [(IN, index)])[0] for index in range(index + 1)}
    size = chosen.adversary.canaries
    pooled = chosen.evidence(results, index + 1)
    return OneRun(pooled.scores[-size:], pooled.member[-size:])


def test_a_run_is_a_pure_function_of_plan_and_index() -> None:
    chosen = plan(Canaries(300))
    first, again, other = played(chosen), played(chosen), played(chosen, 1)
    np.testing.assert_array_equal(first.scores, again.scores)
    np.testing.assert_array_equal(first.member, again.member)
    assert not np.array_equal(first.member, other.member)
    assert 100 < first.member.sum() < 200


@pytest.mark.parametrize("canaries", [400, 2000])
def test_dirac_gradients_are_seen_without_noise(canaries: int) -> None:
    """At full batches and hardly any noise; with several on a coordinate they hide each other."""
    chosen = plan(Canaries(canaries), sigma=0.01, recipe={"sampling": "full", "sample_rate": 1.0, "steps": 10})
    evidence = played(chosen)
    assert one_run(evidence, guesses=100).epsilon > (3.0 if canaries < 650 else 0.5)


def test_what_a_dirac_adds_is_what_the_recipe_would_sample() -> None:
    """Included canaries are seen q·T·C more often on average than the others."""
    chosen = plan(Canaries(640), sigma=0.05, recipe={"steps": 200, "clip_norm": 0.5})
    blank = Dataset("blank", np.zeros((50, 64)), np.zeros(50, int), 10)
    recipe = Recipe(records=50, noise_multiplier=0.05, sample_rate=0.1, steps=200, clip_norm=0.5, learning_rate=0.01)
    evidence = played(Plan(DpSgdTraining(recipe, blank), chosen.claim, 1e-5, Canaries(640)))
    apart = evidence.scores[evidence.member].mean() - evidence.scores[~evidence.member].mean()
    assert apart == pytest.approx(0.1 * 200 * 0.5, rel=0.1)


def test_records_are_in_the_data_exactly_when_their_coin_says_so() -> None:
    chosen = plan(Canaries(200, kind="records"))
    game, seed, data = chosen.game(chosen.prepare()), np.random.SeedSequence(0), chosen.subject.data
    everything = game.insert(np.ones(200, bool), seed).data
    assert len(everything) == len(data)
    assert (everything.y != data.y).sum() == 200  # every canary has a wrong label
    coins = np.arange(200) < 50
    assert len(game.insert(coins, seed).data) == len(data) - 150


@pytest.mark.parametrize("model", [{"model": "logistic"}, {"model": "mlp", "hidden": (16,)}, {"model": "cnn"}])
@pytest.mark.parametrize("clipping", ["flat", "per-layer", "automatic"])
def test_products_are_those_of_clipped_gradients(model: dict, clipping: str) -> None:
    data = digits()
    recipe = Recipe(records=len(data), sample_rate=0.1, steps=1, noise_multiplier=1.0, precision="float64", **model)
    network, rng = network_for(recipe, data), np.random.default_rng(0)
    flat, direction = network.initial(rng, 1.0), rng.normal(size=network.parameters)
    x, y = data.x[:5].astype(np.float64), data.y[:5]
    found = network.clipped_products(flat, x, y, direction, 0.7, clipping)
    expected = [network.clipped_gradient_sum(flat, x[[i]], y[[i]], 0.7, clipping) @ direction for i in range(5)]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("sees", ["updates", "model"])
def test_wrong_labels_are_remembered_without_noise(sees: str) -> None:
    recipe = {"model": "mlp", "hidden": (64,), "sampling": "full", "sample_rate": 1.0, "steps": 200, "clip_norm": 10.0}
    evidence = played(plan(Canaries(300, kind="records", sees=sees), sigma=0.01, recipe=recipe))
    inside, outside = evidence.scores[evidence.member], evidence.scores[~evidence.member]
    assert np.mean(inside[:, None] > outside[None, :]) > 0.58


def test_an_audit_pools_runs_and_accuses_what_leaks() -> None:
    leaky = {"sampling": "full", "sample_rate": 1.0, "steps": 10}
    result = run(plan(Canaries(400), sigma=0.05, recipe=leaky, trials=2))
    assert isinstance(result.evidence, OneRun)
    assert len(result.evidence.scores) == 800
    assert result.verdict.outcome is Outcome.VIOLATED
    assert result.noise_limit is None


def test_a_spec_gets_the_method_that_fits() -> None:
    chosen = parse_spec('[adversary]\nname = "canaries"\ncanaries = 50').plan()
    assert chosen.planned_method == OneRunPoint()
    assert chosen.planned_trials == 1
    assert parse_spec("").plan().planned_trials == 500


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[adversary]\nname = "canaries"\n[audit]\nbound = "exact-rank"', "audit.bound = 'exact-rank'.*one-run-point"),
        ('[audit]\nbound = "one-run-point"', "audit.bound = 'one-run-point'.*exact-rank"),
        ('[adversary]\nname = "canaries"\ncanaries = 0', "adversary.canaries = 0"),
        ('[adversary]\nname = "canaries"\nkind = "record"', "adversary.kind"),
        ('[adversary]\nname = "canaries"\nsees = "model"', "adversary.sees"),
        ('[adversary]\nname = "canaries"\n[audit]\ntrials = 0', "audit.trials = 0"),
        ("[audit]\ntarget = 1.0", "audit.target = 1"),
    ],
)
def test_what_does_not_fit_is_refused(text: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        parse_spec(text).plan()


def test_a_coin_cannot_replace() -> None:
    adversary = ADVERSARIES["canaries"](10)
    seed = np.random.SeedSequence(0)
    with pytest.raises(InvalidInput, match="add-remove or zero-out"):
        adversary.game(plan(adversary).subject, Relation.REPLACE, seed)
    many = Canaries(5000, kind="records")
    with pytest.raises(InvalidInput, match="canaries = 5000"):
        many.game(plan(many).subject, Relation.ADD_REMOVE, seed)
