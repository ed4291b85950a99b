"""The loss of single records, beside torch's."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from epsilometer.training import record_losses
from epsilometer.training.models import Network
from epsilometer.training.recipe import LOSSES


def oracle(logits: np.ndarray, y: np.ndarray, loss: str) -> np.ndarray:
    outputs, labels = torch.tensor(logits, dtype=torch.float64), torch.tensor(y)
    wanted = functional.one_hot(labels, logits.shape[1]).double()
    if loss == "cross-entropy":
        return functional.cross_entropy(outputs, labels, reduction="none").numpy()
    if loss == "logistic":
        return functional.binary_cross_entropy_with_logits(outputs, wanted, reduction="none").sum(dim=1).numpy()
    return 0.5 * functional.mse_loss(outputs, wanted, reduction="none").sum(dim=1).numpy()


def drawn(records: int = 40, classes: int = 5, spread: float = 3.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return spread * rng.normal(size=(records, classes)), rng.integers(0, classes, records)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("spread", [1.0, 30.0, 1e4])
def test_losses_are_those_of_torch(loss: str, spread: float) -> None:
    logits, y = drawn(spread=spread)
    np.testing.assert_allclose(record_losses(logits, y, loss), oracle(logits, y, loss), rtol=1e-12, atol=1e-12)


def test_losses_differ_from_each_other() -> None:
    logits, y = drawn()
    first, second, third = (record_losses(logits, y, loss) for loss in LOSSES)
    assert not np.isclose(first, second).any()
    assert not np.isclose(second, third).any()


def test_the_default_is_cross_entropy() -> None:
    logits, y = drawn()
    np.testing.assert_array_equal(record_losses(logits, y), record_losses(logits, y, "cross-entropy"))


@pytest.mark.parametrize("loss", LOSSES)
def test_huge_logits_overflow_nowhere(loss: str) -> None:
    """The largest that single precision has; a naive log of a sum of exponentials would be infinite."""
    huge = np.array([[3e38, -3e38], [-3e38, 3e38], [1000.0, -1000.0]], dtype=np.float32)
    found = record_losses(huge, np.array([0, 0, 1]), loss)
    assert found.dtype == np.float64
    assert np.isfinite(found).all()
    right, wrong, far = found
    assert wrong > 1e38
    assert far >= 1000
    if loss != "squared":
        assert right == 0
        assert wrong == pytest.approx(6e38, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_loss_and_the_error_that_is_trained_on_belong_together(loss: str) -> None:
    """Central differences of the one are the other; those of another loss are not."""
    logits, y = drawn(records=6, classes=4, spread=1.0)
    h, slopes = 1e-5, np.zeros_like(logits)
    for k in range(logits.shape[1]):
        step = np.zeros_like(logits)
        step[:, k] = h
        slopes[:, k] = (record_losses(logits + step, y, loss) - record_losses(logits - step, y, loss)) / (2 * h)
    errors = {name: Network((3, 4), loss=name)._output_error(logits, y) for name in LOSSES}
    np.testing.assert_allclose(slopes, errors.pop(loss), atol=1e-8)
    assert all(np.abs(slopes - other).max() > 0.05 for other in errors.values())


def test_no_records_have_no_losses() -> None:
    assert record_losses(np.zeros((0, 3)), np.zeros(0, int)).shape == (0,)
