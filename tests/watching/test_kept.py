"""All values of gradients are compared, in small tensors together and in large ones, before the step and after it."""

from collections.abc import Callable

import pytest
import torch

from epsilometer.watching.collect.drawn import NoisySum
from epsilometer.watching.collect.kept import KeptGradients

NAMES = ("weight", "bias", "large")


def found(
    change: Callable[[list[torch.Tensor]], None],
    *,
    size: float = 1.0,
    dtype: torch.dtype = torch.float32,
    during: bool = False,
) -> list[str]:
    """Parameters whose gradients are said to be others, once changed between noise and step, or in the step."""
    torch.manual_seed(0)
    shapes = ((32, 64), (10,), (200, 200))
    parameters = [torch.nn.Parameter(torch.zeros(shape, dtype=dtype)) for shape in shapes]
    names = dict(zip(map(id, parameters), NAMES, strict=True))

    class Changing(torch.optim.SGD):
        def step(self, closure: object = None) -> None:  # type: ignore[override]
            if during:
                change([p.grad for p in parameters])  # type: ignore[misc]

    optimizer = Changing(parameters, lr=0.1)
    kept = KeptGradients(lambda: parameters, lambda: optimizer, lambda p: names[id(p)])
    for p in parameters:
        p.grad = (size * torch.randn(p.shape)).to(dtype)
    kept.leave([NoisySum(p, "", torch.zeros_like(p), p.grad) for p in parameters])
    if not during:
        change([p.grad for p in parameters])  # type: ignore[misc]
    optimizer.step()
    kept.close()
    assert kept.steps == 1
    return list(kept.changed)


def one_of(place: int) -> Callable[[list[torch.Tensor]], None]:
    def change(gradients: list[torch.Tensor]) -> None:
        gradients[place].view(-1)[7] += 0.1 * float(gradients[place].double().norm())

    return change


def by_size(gradients: list[torch.Tensor]) -> None:
    for factor, gradient in zip((0.5, 2.0, 1e-3), gradients, strict=True):
        gradient.mul_(factor)


def regularised(gradients: list[torch.Tensor]) -> None:
    """A hundred times the gradient, in all columns but two of 64."""
    gradients[0][:, [column for column in range(64) if column % 32]] *= 100.0


@pytest.mark.parametrize("during", [False, True], ids=["before the step", "in the step"])
@pytest.mark.parametrize("size", [1.0, 1e-25, 1e25])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_whatever_is_changed_is_seen(during: bool, size: float, dtype: torch.dtype) -> None:
    for place, name in enumerate(NAMES):
        assert found(one_of(place), size=size, dtype=dtype, during=during) == [name]
    assert found(regularised, size=size, dtype=dtype, during=during) == ["weight"]
    assert found(lambda all_of: all_of[2].copy_(all_of[2].flip(0)), dtype=dtype, during=during) == ["large"]


@pytest.mark.parametrize("during", [False, True], ids=["before the step", "in the step"])
def test_a_factor_is_no_harm(during: bool) -> None:
    assert found(lambda _: None, during=during) == []
    assert found(lambda all_of: [one.div_(-179.0) for one in all_of], during=during) == []  # type: ignore[arg-type]
    assert found(by_size, during=during) == []
    assert found(lambda all_of: [one.zero_() for one in all_of], during=during) == []  # type: ignore[arg-type]
    assert found(lambda all_of: all_of[0].fill_(torch.nan), during=during) == []  # type: ignore[arg-type]


def test_half_precision() -> None:
    assert found(lambda all_of: [one.div_(8.0) for one in all_of], dtype=torch.bfloat16) == []  # type: ignore[arg-type]
    assert found(one_of(1), dtype=torch.bfloat16) == ["bias"]
