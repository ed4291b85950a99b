"""A small Opacus training in this process, with or without watch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import epsilometer.opacus
from epsilometer.opacus import Watch
from epsilometer.watching.frameworks.opacus import spending

SIGMA = 1.386


@dataclass
class Trained:
    weights: torch.Tensor
    history: list[Any]
    drawn_next: tuple[float, float]
    optimizer: Any
    engine: Any
    watch: Watch | None


def train(
    watched: dict[str, Any] | None = None,
    *,
    steps: int = 6,
    seed: int = 0,
    optimizer: str = "SGD",
    physical: int = 0,
    alter: Callable[[Any], None] = lambda _: None,
    before: Callable[[Any], None] = lambda _: None,
    made_private: Callable[[Watch, Any, Any, TensorDataset], None] | None = None,
    **given: Any,
) -> Trained:
    """The training; `watched` holds what `epsilometer.opacus.watch` is given. `alter` sees the private optimizer, and
    `made_private` watch, optimizer, module and data."""
    spending._ALL.clear()  # as if it were the first of its process
    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002 (a script's)
    data = TensorDataset(torch.randn(256, 64), torch.randint(0, 10, (256,)))
    model: Any = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    own = getattr(torch.optim, optimizer)(model.parameters(), lr=0.1)
    criterion: Any = nn.CrossEntropyLoss()
    engine = PrivacyEngine(accountant="rdp")
    before(engine)
    watch = None if watched is None else epsilometer.opacus.watch(engine, quiet=True, **{"seed": 1, **watched})
    settings = {"noise_multiplier": SIGMA, "max_grad_norm": 1.0, **given}
    made = engine.make_private(module=model, optimizer=own, data_loader=DataLoader(data, batch_size=64), **settings)
    model, private, loader = made[0], made[1], made[-1]
    criterion = made[2] if len(made) == 4 else criterion
    alter(private)
    if made_private is not None and watch is not None:
        made_private(watch, private, model, data)
    taken = 0

    def epoch(batches: Any) -> None:
        nonlocal taken
        for x, y in batches:
            private.zero_grad()
            criterion(model(x), y).backward()
            private.step()
            taken += not private._is_last_step_skipped
            if taken == steps:
                return

    while taken < steps:
        if physical:
            with BatchMemoryManager(data_loader=loader, max_physical_batch_size=physical, optimizer=private) as split:
                epoch(split)
        else:
            epoch(loader)
    weights = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    following = torch.rand(1).item(), float(np.random.rand())  # noqa: NPY002
    return Trained(weights, engine.accountant.history, following, private, engine, watch)
