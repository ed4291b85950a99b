"""Gradients by a record's features, and how they change with the parameters: equal to differences, on every path."""

import numpy as np
import pytest
from torch import nn

from epsilometer.training import ModuleNetwork, Network, record_losses

RNG_SHAPES = [(5, 3), (5, 4, 3), (5, 6, 4, 3)]


def module(features: int, classes: int) -> nn.Module:
    return nn.Sequential(nn.Linear(features, 6), nn.Tanh(), nn.Linear(6, classes))


def networks(loss: str) -> list[Network | ModuleNetwork]:
    fully = [Network(widths, activation, loss) for widths in RNG_SHAPES for activation in ("relu", "tanh")]
    return [*fully, ModuleNetwork(module, 5, 3, loss)]


@pytest.mark.parametrize("loss", ["cross-entropy", "logistic", "squared"])
def test_input_gradients_are_derivatives(loss: str) -> None:
    rng = np.random.default_rng(0)
    for network in networks(loss):
        flat, x, y = rng.normal(size=network.parameters), rng.normal(size=(7, 5)), rng.integers(0, 3, 7)
        found, step = network.input_gradients(flat, x, y), 1e-6
        for feature in range(5):
            shift = step * (np.arange(5) == feature)
            up, down = (record_losses(network.logits(flat, x + sign * shift), y, loss) for sign in (1, -1))
            np.testing.assert_allclose(found[:, feature], (up - down) / (2 * step), atol=1e-6)


@pytest.mark.parametrize("loss", ["cross-entropy", "logistic", "squared"])
def test_how_they_change_with_the_parameters_is_exact_too(loss: str) -> None:
    rng = np.random.default_rng(1)
    for network in networks(loss):
        flat, along = rng.normal(size=(2, network.parameters))
        x, y, step = rng.normal(size=(7, 5)), rng.integers(0, 3, 7), 1e-6
        up, down = (network.input_gradients(flat + sign * step * along, x, y) for sign in (1, -1))
        np.testing.assert_allclose(
            network.input_gradients_along(flat, x, y, along), (up - down) / (2 * step), atol=1e-6
        )  # fmt: skip


def test_a_logistic_model_in_torch_has_the_same_as_ours() -> None:
    rng = np.random.default_rng(2)
    ours, theirs = Network((5, 3)), ModuleNetwork(nn.Linear, 5, 3)
    flat, along = rng.normal(size=(2, ours.parameters))
    x, y = rng.normal(size=(4, 5)), rng.integers(0, 3, 4)
    np.testing.assert_allclose(ours.input_gradients(flat, x, y), theirs.input_gradients(flat, x, y), atol=1e-12)
    np.testing.assert_allclose(
        ours.input_gradients_along(flat, x, y, along), theirs.input_gradients_along(flat, x, y, along), atol=1e-12
    )
