"""Whole trainings against a naive oracle: torch's autograd, one record at a time, and torch's own optimizers.

The oracle gets the same batches and the same noise (whose laws are tested elsewhere) and nothing else from the engine.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from epsilometer import Recipe
from epsilometer.data import Dataset
from epsilometer.training import initial_parameters, network_for, threefry, train
from epsilometer.training.models import AUTOMATIC_STABILITY
from epsilometer.training.sampling import sample

shapes = st.fixed_dictionaries({
    "model": st.sampled_from(["logistic", "mlp"]),
    "hidden": st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple),
    "activation": st.sampled_from(["relu", "tanh"]),
    "loss": st.sampled_from(["cross-entropy", "logistic", "squared"]),
    "clipping": st.sampled_from(["flat", "per-layer", "automatic"]),
    "optimizer": st.sampled_from(["sgd", "momentum", "adam"]),
    "sampling": st.sampled_from(["poisson", "full", "shuffle", "fixed-size"]),
    "schedule": st.sampled_from(["constant", "linear", "cosine"]),
    "weight_decay": st.sampled_from([0.0, 0.01]),
    "clip_norm": st.floats(0.05, 3.0),
    "noise_multiplier": st.sampled_from([0.0, 0.7]),
})  # fmt: skip


def record_loss(recipe: Recipe, widths: tuple[int, ...], theta: torch.Tensor, x: torch.Tensor, y: int) -> torch.Tensor:
    value, at = x, 0
    for layer, (inputs, outputs) in enumerate(pairwise(widths)):
        weights = theta[at : at + inputs * outputs].view(outputs, inputs)
        at += inputs * outputs
        value = weights @ value + theta[at : at + outputs]
        at += outputs
        if layer < len(widths) - 2:
            value = torch.relu(value) if recipe.activation == "relu" else torch.tanh(value)
    label = torch.nn.functional.one_hot(torch.tensor(y), widths[-1]).to(value.dtype)
    if recipe.loss == "cross-entropy":
        return torch.nn.functional.cross_entropy(value[None], torch.tensor([y]))
    if recipe.loss == "logistic":
        return torch.nn.functional.binary_cross_entropy_with_logits(value, label, reduction="sum")
    return 0.5 * ((value - label) ** 2).sum()


def clipped(recipe: Recipe, gradient: torch.Tensor, ends: list[int]) -> torch.Tensor:
    parts = list(torch.tensor_split(gradient, ends)) if recipe.clipping == "per-layer" else [gradient]
    limit = recipe.clip_norm / len(parts) ** 0.5
    norms = [part.norm() for part in parts]
    if recipe.clipping == "automatic":
        return gradient * recipe.clip_norm / (norms[0] + AUTOMATIC_STABILITY)
    return torch.cat([p * min(1.0, limit / max(float(n), 1e-300)) for p, n in zip(parts, norms, strict=True)])


def oracle(recipe: Recipe, data: Dataset, seed: np.random.SeedSequence) -> np.ndarray:
    network, key = network_for(recipe, data), threefry.trial_key(seed)
    theta = torch.tensor(initial_parameters(recipe, network, key))
    ends = list(np.cumsum([a * b + b for a, b in pairwise(network.widths)])[:-1])
    if recipe.optimizer == "adam":
        optimizer = torch.optim.Adam([theta], lr=1.0, weight_decay=recipe.weight_decay)
    else:
        momentum = recipe.momentum if recipe.optimizer == "momentum" else 0.0
        optimizer = torch.optim.SGD([theta], lr=1.0, momentum=momentum, weight_decay=recipe.weight_decay)
    x = torch.tensor(data.x, dtype=torch.float64)
    for step in range(recipe.steps):
        total = torch.zeros_like(theta)
        for row in sample(recipe, key, step, len(data)):
            point = theta.clone().requires_grad_()
            loss = record_loss(recipe, network.widths, point, x[row], int(data.y[row]))
            total += clipped(recipe, torch.autograd.grad(loss, point)[0], ends)
        noise = torch.tensor(threefry.normals(key, step, len(theta)), dtype=torch.float64)
        theta.grad = (total + recipe.noise_multiplier * recipe.clip_norm * noise) / recipe.expected_batch
        optimizer.param_groups[0]["lr"] = recipe.learning_rates()[step]
        optimizer.step()
    return theta.numpy()


@pytest.mark.parametrize("backend", ["compiled", "portable"])
@settings(max_examples=60)
@given(
    shape=shapes,
    records=st.integers(3, 12),
    features=st.integers(1, 6),
    classes=st.integers(2, 4),
    seed=st.integers(0, 99),
)
def test_trainings_equal_the_naive_oracle(backend: str, shape, records, features, classes, seed) -> None:
    rng = np.random.default_rng(seed)
    data = Dataset("made", rng.normal(size=(records, features)), rng.integers(0, classes, records), classes)
    rate = 1.0 if shape["sampling"] == "full" else 0.4
    recipe = Recipe(
        records=records, sample_rate=rate, steps=4, learning_rate=0.3, precision="float64",
        initialisation="random", **shape,
    )  # fmt: skip
    found = train(recipe, data, np.random.SeedSequence(seed), backend=backend)
    # The compiled loop's normals are computed in single precision, by other polynomials than numpy's.
    tolerance = 1e-9 if recipe.noise_multiplier == 0 else 1e-5
    np.testing.assert_allclose(
        found, oracle(recipe, data, np.random.SeedSequence(seed)), rtol=tolerance, atol=tolerance
    )
