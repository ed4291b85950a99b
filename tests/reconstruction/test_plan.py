"""Reconstructions as trials: one record at one noise each, beside limits that unbiased attacks cannot pass."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from epsilometer.claims import GaussianClaim
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.reconstruction import (
    Differencing,
    GradientInversion,
    ReconstructionPlan,
    error_words,
    parse_reconstruction,
    reconstruction_from_dict,
    run_reconstruction,
)
from epsilometer.report import reconstruction_summary, reconstruction_to_json
from epsilometer.runs import Local

ATTACKS = ("sums", "layer", "network")


def plan(**settings: Any) -> ReconstructionPlan:
    asked = {"records": 6, "noises": [0.0, 0.01, 1.0], **settings}
    return reconstruction_from_dict({"reconstruction": asked}).study().plan


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_trial_is_a_function_of_plan_noise_and_record(attack: str) -> None:
    one = plan(attack=attack)
    prepared = one.prepare()
    trials = [(world, index) for world in one.worlds for index in range(3)]
    together = dict(zip(trials, one.play(prepared, trials), strict=True))
    copy = pickle.loads(pickle.dumps(one))
    assert copy.fingerprint() == one.fingerprint()
    assert one.to_dict()["attack"]["name"] == attack
    for trial in reversed(trials):
        (alone,) = copy.play(copy.prepare(), [trial])
        assert alone.tobytes() == together[trial].tobytes()


@pytest.mark.parametrize("attack", ATTACKS)
def test_without_noise_records_are_rebuilt_and_with_much_they_are_not(attack: str) -> None:
    found = run_reconstruction(plan(attack=attack))
    none, little, much = found.at
    assert none.cut_mse < 1e-12
    assert none.found.value == little.found.value == 1.0
    assert much.cut_mse > much.guess_mse > little.cut_mse
    assert none.fisher_limit == none.renyi_limit == 0.0
    assert np.isinf(none.epsilon)
    assert much.fisher_limit == pytest.approx(1e4 * little.fisher_limit)
    assert "PRIVATE" in reconstruction_summary(found)


def test_unbiased_estimates_keep_to_their_limits() -> None:
    """Of sums, whose error is known: 2s² a feature, twice what Fisher information allows."""
    found = run_reconstruction(plan(attack="sums", records=200, noises=[0.05, 2.0]))
    for one in found.at:
        raw = np.mean([each.mse for each in found.rebuilt[found.at.index(one)]])
        assert raw == pytest.approx(2 * one.noise_std**2, rel=0.05)
        assert one.fisher_limit == pytest.approx(one.noise_std**2)
        assert one.renyi_limit <= one.fisher_limit


def test_noise_that_nobody_counts_protects_nobody() -> None:
    once, often = (run_reconstruction(plan(attack="sums", noises=[0.1], releases=m, records=40)) for m in (1, 25))
    assert often.at[0].mse == pytest.approx(once.at[0].mse / 25, rel=0.2)
    assert often.at[0].fisher_limit == pytest.approx(once.at[0].fisher_limit / 25)
    assert often.at[0].renyi_epsilon == pytest.approx(25 * once.at[0].renyi_epsilon)
    assert often.at[0].epsilon > once.at[0].epsilon


def test_who_plays_changes_nothing() -> None:
    first, second = run_reconstruction(plan()), run_reconstruction(plan(), executor=Local(2))
    for ours, theirs in zip(first.rebuilt, second.rebuilt, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one.estimate, other.estimate)


def test_pictures_are_of_images_only() -> None:
    found = run_reconstruction(plan())
    assert [len(one.pictures) for one in found.pictures().values()] == [4, 4, 4]
    assert set(reconstruction_to_json(found)["figures"]) == {"errors", *(f"record {row}" for row in found.pictures())}
    rng = np.random.default_rng(0)
    table = Dataset("table", rng.normal(size=(50, 5)), rng.integers(2, size=50), 2)
    for attack in (Differencing(10), GradientInversion((3,)), GradientInversion(())):
        plain = run_reconstruction(ReconstructionPlan(table, attack, (0.0, 0.1), records=4))
        assert plain.pictures() == {}
        assert set(reconstruction_to_json(plain)["figures"]) == {"errors"}


def test_what_is_exact_but_for_rounding_has_no_digits() -> None:
    assert [error_words(one) for one in (0.0, 3e-33, 0.25, float("inf"))] == ["0", "under 1e-09", "0.25", "∞"]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ('attack = "gradient"', "reconstruction.attack = 'gradient': expected one of layer, network, sums"),
        ("in_sum = 10", "reconstruction.in_sum = 10: expected nothing for network; it is a setting of sums"),
        ('attack = "sums"\nhidden = [3]', "reconstruction.hidden = .3.: expected nothing for sums"),
        ('attack = "sums"\nin_sum = 1798', "reconstruction.in_sum = 1798: expected a whole number from 2 to 1,797"),
        ("hidden = []", "reconstruction.hidden = .*: expected at least one hidden layer.*; layer is the attack"),
        ("noises = []", "reconstruction.noises = .*: expected 1 to 20 noise multipliers, each once"),
        ("noises = [1.0, 1]", "expected 1 to 20 noise multipliers, each once"),
        ("noises = [-0.5]", "reconstruction.noises = -0.5"),
        ("records = 1798", "reconstruction.records = 1798: .*; digits has 1797 records"),
        ("delta = 0.0", "reconstruction.delta = 0.0"),
        ("clip_norm = 0.0", "reconstruction.clip_norm = 0.0"),
    ],
)
def test_what_cannot_be_rebuilt_is_refused(spec: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        parse_reconstruction(f"[reconstruction]\n{spec}").study()


def test_records_that_are_all_alike_are_refused() -> None:
    with pytest.raises(InvalidInput, match="records that differ"):
        ReconstructionPlan(Dataset("flat", np.ones((5, 3)), np.arange(5) % 2, 2), GradientInversion(), records=3)


def test_the_promise_counts_that_others_are_in_both_sums() -> None:
    """Whoever is not left out is in both noisy sums: one release each, so μ = √2/σ."""
    at = run_reconstruction(plan(attack="sums", noises=[1.0], in_sum=5), delta=1e-5).at[0]
    assert at.epsilon == pytest.approx(GaussianClaim(2**0.5).epsilon_at(1e-5), rel=1e-6)
    assert at.renyi_epsilon == pytest.approx(1.0)  # of the record that is rebuilt, which is in one of them
