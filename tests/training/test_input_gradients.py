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


def formed(network: Network | ModuleNetwork, models, x, y) -> np.ndarray:
    """Gradients of a record at each model, the plain way."""
    each = zip(models, x[:, None], y[:, None], strict=True)
    return np.array([network.clipped_gradient_sum(*one, np.inf) for one in each])


@pytest.mark.parametrize("loss", ["cross-entropy", "logistic", "squared"])
def test_a_records_gradient_at_a_moved_model_is_never_formed_and_the_same(loss: str) -> None:
    rng = np.random.default_rng(3)
    for network in networks(loss):
        models = rng.normal(size=(4, network.parameters))
        (x, z), (y, v), factors = rng.normal(size=(2, 4, 5)), rng.integers(0, 3, (2, 4)), rng.normal(size=4)
        step = network.record_gradients(models, z, v)
        moved = models + factors[:, None] * formed(network, models, z, v)
        found, plain = network.record_gradients(models, x, y, [(factors, step)]), formed(network, moved, x, y)
        np.testing.assert_allclose(found.dot(found), np.sum(plain**2, axis=1), rtol=1e-9)
        np.testing.assert_allclose(found.dot(step), np.sum(plain * formed(network, models, z, v), axis=1), rtol=1e-8)
        logits = [network.logits(*one)[0] for one in zip(moved, x[:, None], strict=True)]
        np.testing.assert_allclose(found.logits, logits, atol=1e-10)


@pytest.mark.parametrize("loss", ["cross-entropy", "logistic", "squared"])
def test_how_they_change_with_the_parameters_is_exact_too(loss: str) -> None:
    rng = np.random.default_rng(1)
    for network in networks(loss):
        models, step = rng.normal(size=(4, network.parameters)), 1e-6
        records, labels = rng.normal(size=(3, 4, 5)), rng.integers(0, 3, (3, 4))
        factors = rng.normal(size=(2, 4))
        pairs = list(zip(factors, records[1:], labels[1:], strict=True))
        direction = [(c, network.record_gradients(models, x, y)) for c, x, y in pairs]
        along = sum(c[:, None] * formed(network, models, x, y) for c, x, y in pairs)
        up, down = (
            np.array([
                network.input_gradients(*one)[0]
                for one in zip(models + sign * step * along, records[0][:, None], labels[0][:, None], strict=True)
            ])
            for sign in (1, -1)
        )  # fmt: skip
        found = network.input_gradients_along(models, records[0], labels[0], direction)
        np.testing.assert_allclose(found, (up - down) / (2 * step), atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_no_model_depends_on_those_beside_it(precision: str) -> None:
    """Bit by bit: groups are formed by chance."""
    rng = np.random.default_rng(5)
    odd = [Network((123, 17, 3), "tanh"), Network((64, 10)), Network((784, 32, 10)), ModuleNetwork(module, 5, 3)]
    for network in odd:
        features, classes = (network.widths[0], network.widths[-1]) if isinstance(network, Network) else (5, 3)
        models = rng.normal(size=(9, network.parameters)).astype(precision)
        (x, z), y = rng.normal(size=(2, 9, features)).astype(precision), rng.integers(0, classes, 9)

        def all_of(rows, network=network, models=models, x=x, z=z, y=y):
            models, x, z, y = models[rows], x[rows], z[rows], y[rows]
            own = network.record_gradients(models, z, y)
            factors = -0.1 * np.arange(1, 10)[rows]
            after = network.record_gradients(models, x, y, [(factors, own)])
            along = network.input_gradients_along(models, z, y, [(np.ones(len(y)), after), (factors, own)])
            return np.concatenate([along, after.logits, own.dot(after)[:, None]], axis=1)

        together = all_of(np.arange(9))
        for rows in ([3], [0], [8, 1, 4], [7, 6, 5, 4, 3]):
            np.testing.assert_array_equal(all_of(np.array(rows)), together[rows])


def test_a_logistic_model_in_torch_has_the_same_as_ours() -> None:
    rng = np.random.default_rng(2)
    ours, theirs = Network((5, 3)), ModuleNetwork(nn.Linear, 5, 3)
    models = rng.normal(size=(4, ours.parameters))
    x, y, ones = rng.normal(size=(4, 5)), rng.integers(0, 3, 4), np.ones(4)
    np.testing.assert_allclose(ours.input_gradients(models[0], x, y), theirs.input_gradients(models[0], x, y))
    found = [
        network.input_gradients_along(models, x, y, [(ones, network.record_gradients(models, x + 1, y))])
        for network in (ours, theirs)
    ]
    np.testing.assert_allclose(*found, atol=1e-12)
