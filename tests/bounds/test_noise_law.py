"""The law of noise that can be seen: a wrong scale, tail or grid is refuted; right and wider noise hardly ever."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from scipy import stats

from epsilometer.bounds import NoiseLaw
from epsilometer.bounds.noise_law import (
    _ALL,
    _EACH,
    _GRIDS,
    _LATER,
    _LEVELS,
    SMALLER_SHARES,
    _grid_gains,
    _level_gains,
    _scale_gains,
)
from epsilometer.errors import InvalidInput
from epsilometer.noise_sample import GRIDS, LEVELS, Counts, NoiseSample, on_grids

SIZES = {"weight": 150, "bias": 40, "scale": 10}


def simulated(draw, trainings: int, steps: int, seed: int, *, unpaid: bool = False) -> float:
    """The share of trainings that reach 20 at any step, all at once; unpaid, the largest part counts in full."""
    rng = np.random.default_rng(seed)
    total = np.zeros((trainings, steps, len(SMALLER_SHARES)))
    parts, counted = [], sum(SIZES.values())
    beyond, near = np.zeros((trainings, steps, len(LEVELS))), np.zeros((trainings, steps, 2 * len(GRIDS)))
    for size in SIZES.values():
        noise = draw(rng, (trainings, steps, size))
        gains = _scale_gains(size, (noise**2).sum(axis=-1))
        total += gains
        parts.append((_EACH / len(SIZES), np.logaddexp.reduce(np.cumsum(gains, 1) + np.log(SMALLER_SHARES), axis=-1)))
        beyond += np.stack([(np.abs(noise) > level).sum(axis=-1) for level in LEVELS], axis=-1)
        for place, digits in enumerate(GRIDS):
            significands = np.ldexp(np.abs(np.frexp(noise)[0]), digits)
            close = (np.abs(significands - np.rint(significands)) < 1 / 32).sum(axis=-1)
            near[..., place] += close
            near[..., place + len(GRIDS)] += close
    parts.append((_ALL, np.logaddexp.reduce(np.cumsum(total, 1) + np.log(SMALLER_SHARES), axis=-1)))
    levels = np.cumsum(_level_gains(counted, beyond), axis=1).reshape(trainings, steps, -1)
    grids = np.cumsum(_grid_gains(counted, near), axis=1)
    parts += [(_LEVELS / levels.shape[-1], levels[..., i]) for i in range(levels.shape[-1])]
    parts += [(_GRIDS / grids.shape[-1], grids[..., i]) for i in range(grids.shape[-1])]
    logs = np.stack([part + (0.0 if unpaid else np.log(share)) for share, part in parts])
    wealth = logs.max(axis=0) if unpaid else np.logaddexp.reduce(logs, axis=0)
    return float((wealth.max(axis=1) >= np.log(20)).mean())


def normal(scale: float):
    return lambda rng, shape: scale * rng.standard_normal(shape)


def test_enough_noise_is_refuted_with_probability_alpha_at_most() -> None:
    """10,000 trainings of 40 steps; the largest part, not paid for, fails the same test."""
    shares = [simulated(normal(1.0), 1000, 40, seed) for seed in range(10)]
    assert np.mean(shares) <= 0.05
    assert np.mean([simulated(normal(1.0), 1000, 40, seed, unpaid=True) for seed in range(2)]) > 0.05


@pytest.mark.parametrize("draw", [
    normal(1.01),
    normal(3.0),
    lambda rng, shape: rng.standard_normal(shape) + 0.7,  # sums that were not taken off
    lambda rng, shape: rng.standard_normal(shape) * np.where(rng.random(shape) < 0.5, 1.0, 4.0),
    lambda rng, shape: rng.standard_normal(shape) + rng.laplace(0, 0.5, shape),
], ids=["a little wider", "wider", "shifted", "wider in half of the places", "more noise added"])  # fmt: skip
def test_wider_noise_is_not_accused(draw) -> None:
    assert simulated(draw, 2000, 40, seed=3) <= 0.05


def test_the_parts_share_one_alpha() -> None:
    assert pytest.approx(1.0) == _ALL + _EACH + _LATER + _LEVELS + _GRIDS


def steps_needed(draw, *, most: int = 60, seeds: int = 9) -> tuple[float, str]:
    """The median step of refutation, and what most of them say; `draw` gives the noise of a step by parameter."""
    at, said = [], []
    for seed in range(seeds):
        rng, law = np.random.default_rng(seed), NoiseLaw()
        while law.refuted_at is None and law.steps < most:
            law.add(NoiseSample.of(draw(rng)))
        at.append(law.refuted_at or 1000)
        said.append(re.sub("[0-9.]+", "", str(law.leading)))
    return float(np.median(at)), max(said, key=said.count)


def of_all(draw):
    return lambda rng: {name: draw(rng, size) for name, size in SIZES.items()}


@pytest.mark.parametrize(("scale", "most"), [(0.5, 1), (0.8, 1), (0.9, 2), (0.95, 8), (0.98, 44)])
def test_median_step_of_refutation_with_200_coordinates(scale: float, most: int) -> None:
    found, _ = steps_needed(of_all(lambda rng, size: rng.normal(0, scale, size)), most=120, seeds=41)
    assert found <= most


@pytest.mark.parametrize(("name", "scale", "most"), [("scale", 0.0, 1), ("scale", 0.3, 2), ("bias", 0.5, 1)])
def test_one_parameter_with_too_little_noise(name: str, scale: float, most: int) -> None:
    found, said = steps_needed(lambda rng: {
        one: rng.normal(0, scale if one == name else 1.0, size) for one, size in SIZES.items()
    })  # fmt: skip
    assert found <= most
    assert said.startswith(f"{name}: noise ×")


def truncated(rng: np.random.Generator, size: int, at: float) -> np.ndarray:
    """Cut off and brought back to variance 1."""
    law = stats.truncnorm(-at, at)
    return law.rvs(size, random_state=rng) / law.std()


@pytest.mark.parametrize(("draw", "most", "word"), [
    (lambda rng, size: truncated(rng, size, 2.0), 5, "beyond"),
    (lambda rng, size: truncated(rng, size, 3.0), 25, "beyond"),
    (lambda rng, size: rng.uniform(-(3**0.5), 3**0.5, size), 4, "beyond"),
    (lambda rng, size: rng.choice([-1.0, 1.0], size), 2, "beyond|grid"),
    (lambda rng, size: rng.laplace(0, 0.5**0.5, size), 4, "beyond"),
    (lambda rng, size: torch.tensor(rng.standard_normal(size)).bfloat16().double().numpy(), 1, "grid"),
    (lambda rng, size: torch.tensor(rng.standard_normal(size)).half().double().numpy(), 1, "grid"),
    (lambda rng, size: torch.tensor(rng.standard_normal(size)).bfloat16().double().numpy() * 1.37, 1, "grid"),
], ids=["cut at 2", "cut at 3", "uniform", "signs", "laplace", "bfloat16", "float16", "scaled bfloat16"])  # fmt: skip
def test_other_laws_of_the_right_variance(draw, most: int, word: str) -> None:
    found, said = steps_needed(lambda rng: {"weight": draw(rng, 1000)})
    if word == "grid":  # the scaled one is on a grid in the units of the noise, before it is divided
        rng, law = np.random.default_rng(0), NoiseLaw()
        law.add(NoiseSample.of({"weight": draw(rng, 200)}, 1.37))
        found, said = min(found, law.refuted_at or 1000), str(law.leading)
    assert found <= most
    assert re.search(word, said)


@pytest.mark.parametrize("size", [0.1, 8.0, 100.0, 3000.0, 1e5])
def test_float32_generators_of_frameworks_are_right(size: float) -> None:
    """torch's own normal_ in float32, with sums of any size added and taken off again, 400,000 values."""
    generator, law = torch.Generator().manual_seed(4), NoiseLaw()
    for step in range(20):
        sums = size * torch.randn(20_000, generator=generator)
        noise = torch.empty(20_000).normal_(0, 1.3, generator=generator)
        seen = ((sums + noise) - sums).double().numpy()
        law.add(NoiseSample.of({"weight": seen}, 1.3, {"weight": sums.numpy()}))
        assert law.refuted_at is None, (step, str(law.leading))


@pytest.mark.parametrize(("sigma", "batch"), [(1.0, 4096), (0.5, 2048), (0.1, 512), (0.01, 64), (0.001, 16)])
def test_a_bias_whose_gradients_are_all_alike_is_not_accused(sigma: float, batch: int) -> None:
    generator, law = torch.Generator().manual_seed(1), NoiseLaw()
    for _ in range(20):
        sums = torch.full((3,), batch / 3**0.5)
        noisy = sums + torch.empty(3).normal_(0, sigma, generator=generator)
        law.add(NoiseSample.of({"bias": (noisy - sums).double().numpy()}, sigma, {"bias": sums.numpy()}))
    assert law.refuted_at is None, str(law.leading)


def test_what_is_far_too_large_for_noise_is_not_looked_at_for_grids() -> None:
    law, rng = NoiseLaw(), np.random.default_rng(0)
    for _ in range(20):
        law.add(NoiseSample.of({"weight": 4096 + rng.normal(size=300), "w": 64 + rng.normal(size=300)}))
    assert law.refuted_at is None


def test_parameters_that_come_later_are_paid_for() -> None:
    law, rng = NoiseLaw(), np.random.default_rng(0)
    law.add(NoiseSample.of({"weight": rng.normal(size=20)}))
    for n in range(50):
        law.add(NoiseSample.of({f"late {n}": rng.normal(size=20)}))
    assert sum(law._prices) <= _EACH + _LATER
    law.add(NoiseSample.of({"silent": np.zeros(30)}))
    assert law.refuted_at == 52
    assert law.leading.parameter == "silent"


def test_extremes_give_numbers_or_clear_errors() -> None:
    law = NoiseLaw()
    law.add(None)
    assert (law.refuted_at, law.log_e_value <= 0.0) == (None, True)
    with pytest.raises(InvalidInput, match="finite sums of squares"):
        law.add(NoiseSample.of({"weight": [np.inf]}))
    with pytest.raises(InvalidInput, match="on_grid"):
        law.add(NoiseSample(("weight",), (3,), (1.0,), Counts(3, fine=3, on_grid=(1, 2))))
    with pytest.raises(InvalidInput, match="beyond"):
        law.add(NoiseSample(("weight",), (3,), (1.0,), Counts(3, beyond=(4,) * len(LEVELS))))
    assert law.steps == 1  # nothing that was refused counts
    assert on_grids(np.zeros(3)).tolist() == [3, 3]
