"""Faults of some steps or batches only: the verdict names the statement that they break, and the step."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset

import epsilometer.opacus

pytestmark = pytest.mark.filterwarnings("ignore")
Loop = Callable[[Any, Any, Any, TensorDataset], None]


def step(model: Any, optimizer: Any, x: Any, y: Any) -> None:
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()


def verdict(loop: Loop) -> Any:
    """Of a training as tutorials write it, with this loop."""
    torch.manual_seed(2)
    data = TensorDataset(torch.randn(300, 16), torch.randint(0, 4, (300,)))
    model: Any = torch.nn.Sequential(torch.nn.Linear(16, 12), torch.nn.Tanh(), torch.nn.Linear(12, 4))
    engine = PrivacyEngine(accountant="rdp")
    audit = epsilometer.opacus.watch(engine, quiet=True, seed=3)
    private, optimizer, loader = engine.make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(data, batch_size=30), noise_multiplier=1.2, max_grad_norm=0.5,
    )  # fmt: skip
    loop(private, optimizer, loader, data)
    audit.finish()
    return audit.trainings[0].verdict()


def right(model: Any, optimizer: Any, loader: Any, _: TensorDataset) -> None:
    for _ in range(3):
        for x, y in loader:
            step(model, optimizer, x, y)


def unclipped_at_first(model: Any, optimizer: Any, loader: Any, data: TensorDataset) -> None:
    """A warm-up of one epoch without clipping; afterwards all is as it should be."""

    def add_up() -> None:
        for p in optimizer.params:
            p.summed_grad = 3 * p.grad_sample.sum(0)

    optimizer.clip_and_accumulate = add_up
    for x, y in loader:
        step(model, optimizer, x, y)
    del optimizer.clip_and_accumulate
    right(model, optimizer, loader, data)


def shuffled_with_random_cuts(model: Any, optimizer: Any, _: Any, data: TensorDataset) -> None:
    for epoch in range(3):
        own = torch.Generator().manual_seed(epoch)
        order = torch.randperm(len(data), generator=own)
        cuts = (torch.randperm(len(data) - 1, generator=own)[:9] + 1).sort().values.tolist()
        parts = [part.tolist() for part in torch.tensor_split(order, cuts)]
        for a, b in DataLoader(data, batch_sampler=parts):
            step(model, optimizer, a, b)


def divided_by_the_batch(model: Any, optimizer: Any, loader: Any, _: TensorDataset) -> None:
    for _ in range(3):
        for x, y in loader:
            optimizer.expected_batch_size = max(len(x), 1)
            step(model, optimizer, x, y)


def seeded_in_every_epoch(model: Any, optimizer: Any, loader: Any, _: TensorDataset) -> None:
    for epoch in range(3):
        torch.manual_seed(epoch)
        for x, y in loader:
            step(model, optimizer, x, y)


@pytest.mark.parametrize(
    ("loop", "statement", "check"),
    [
        (unclipped_at_first, "clipping", "record-shares"),
        (shuffled_with_random_cuts, "sampling", "batches"),
        (divided_by_the_batch, "nothing else", "divisor"),
        (seeded_in_every_epoch, "noise", "fresh-noise"),
    ],
)
def test_the_statement_that_is_broken_is_named(loop: Loop, statement: str, check: str) -> None:
    found = verdict(loop)
    assert found.outcome == "violated", found
    assert statement in found.refuted
    assert check in found.reason


def test_the_same_script_without_a_fault() -> None:
    assert verdict(right).outcome == "consistent"
