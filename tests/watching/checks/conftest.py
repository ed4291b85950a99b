"""Real Opacus trainings of a second, with an `Inspection` attached as the launcher attaches it."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from epsilometer.watching.checks import Check
from epsilometer.watching.checks.catalogue import judge
from epsilometer.watching.collect.inspection import Inspection
from epsilometer.watching.frameworks.opacus import spending
from epsilometer.watching.frameworks.opacus.seen import SeenOpacus
from epsilometer.watching.recording import Told, decode, encode

RECORDS, WIDTH = 104, 20


@contextmanager
def attached(inspections: list[Inspection[Any]] | None) -> Iterator[None]:
    """Opacus tells inspections what happens: a new one for every training."""
    from opacus import PrivacyEngine

    original = PrivacyEngine.make_private

    def make_private(self: Any, **given: Any) -> Any:
        made = original(self, **given)
        optimizer = made[1]
        assert inspections is not None
        inspection = Inspection(lambda: SeenOpacus(self, made[0], optimizer, made[-1], given))
        inspections.append(inspection)

        def after(name: str, what: Callable[[SeenOpacus], None], only_if_true: bool = False) -> None:
            def method() -> Any:
                result = getattr(type(optimizer), name)(optimizer)
                if result or not only_if_true:
                    inspection.tell(what)
                return result

            setattr(optimizer, name, method)

        after("accumulate" if hasattr(optimizer, "accumulate") else "clip_and_accumulate", SeenOpacus.accumulated)
        after("add_noise", SeenOpacus.noise_added)
        after("pre_step", SeenOpacus.step_ended, only_if_true=True)
        return made

    if inspections is None:
        yield
        return
    PrivacyEngine.make_private = make_private
    try:
        yield
    finally:
        PrivacyEngine.make_private = original


@dataclass
class Made:
    """What a script has in hand after `make_private`."""

    engine: Any
    module: Any
    optimizer: Any
    criterion: Any
    loader: Any
    original_loader: Any


def network() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(WIDTH, 16), torch.nn.ReLU(), torch.nn.Linear(16, 16))


def digits(records: int = RECORDS) -> torch.utils.data.TensorDataset:
    own = torch.Generator().manual_seed(5)
    x = torch.randn(records, WIDTH, generator=own)
    return torch.utils.data.TensorDataset(x, torch.randint(16, (records,), generator=own))


def loop(made: Made, epochs: int) -> None:
    for _ in range(epochs):
        for x, y in made.loader:
            made.optimizer.zero_grad()
            made.criterion(made.module(x), y).backward()
            made.optimizer.step()


@dataclass
class Trained:
    checks: dict[str, Check]
    inspections: list[Inspection[Any]]
    made: Made

    def status(self, name: str) -> str:
        return self.checks[name].status.value

    def reason(self, name: str) -> str:
        return self.checks[name].reason

    def again(self) -> dict[str, str]:
        """Statuses of the first training, asked once more."""
        return {check.name: check.status.value for check in judge(told(self.inspections[0]).facts)}

    @property
    def failed(self) -> set[str]:
        return {name for name, check in self.checks.items() if check.status == "failed"}


def trained(
    change: Callable[[Made], None] | None = None,
    *,
    model: Callable[[], torch.nn.Module] = network,
    data: torch.utils.data.Dataset[Any] | None = None,
    seed: int = 0,
    epochs: int = 3,
    batch: int = 10,
    loop: Callable[[Made, int], None] = loop,
    inspect: bool = True,
    accountant: str = "prv",
    optimizer: Callable[[Any], Any] = lambda model: torch.optim.SGD(model.parameters(), lr=0.1),
    share: Made | None = None,
    **given: Any,
) -> Trained:
    """One training of 33 steps; `change` is what a faulty script does after `make_private`."""
    from opacus import PrivacyEngine

    inspections: list[Inspection[Any]] = []
    if not share:
        spending._ALL.clear()  # as if it were the first of its process
    with attached(inspections if inspect else None), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(seed)
        module = model()
        loader = torch.utils.data.DataLoader(digits() if data is None else data, batch_size=batch, shuffle=True)
        engine = share.engine if share else PrivacyEngine(accountant=accountant)
        given = {"noise_multiplier": 1.1, "max_grad_norm": 0.5, **given}
        if given.get("grad_sample_mode") == "ghost" and "clipping" not in given:
            given["criterion"] = torch.nn.CrossEntropyLoss()
        result = engine.make_private(module=module, optimizer=optimizer(module), data_loader=loader, **given)
        criterion = result[2] if len(result) == 4 else torch.nn.CrossEntropyLoss()
        made = Made(engine, result[0], result[1], criterion, result[-1], loader)
        if change:
            change(made)
        loop(made, epochs)
    checks = {check.name: check for one in inspections[:1] for check in judge(told(one).facts)}
    return Trained(checks, inspections, made)


def told(inspection: Inspection[Any]) -> Told:
    """What it has seen, as it comes from another process."""
    record = decode(encode(Told(1, inspection.facts(end=True))))
    assert isinstance(record, Told)
    return record


@pytest.fixture(name="trained")
def _trained() -> Callable[..., Trained]:
    return trained


@pytest.fixture(scope="session")
def right() -> Trained:
    """A training with nothing wrong but what no Opacus gets right."""
    return trained()
