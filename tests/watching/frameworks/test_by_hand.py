"""Private optimizers that no engine has made, as dp-transformers makes them: watched like the rest."""

from typing import Any

import pytest
import torch
from opacus import GradSampleModule, PrivacyEngine
from opacus.accountants import RDPAccountant
from opacus.data_loader import DPDataLoader
from opacus.optimizers import DPOptimizer
from torch.utils.data import DataLoader, TensorDataset

from epsilometer.watching.frameworks.opacus import attach
from epsilometer.watching.judged import JudgedTraining
from epsilometer.watching.monitor import Monitor
from epsilometer.watching.settings import Settings
from epsilometer.watching.training import Trainings

pytestmark = pytest.mark.filterwarnings("ignore")
RATE, STEPS, SIGMA = 1 / 8, 24, 1.0


@pytest.fixture(name="trainings")
def _trainings() -> Trainings:
    found = Trainings(Monitor(), Settings(seed=1))
    attach.watch_strangers(found)
    return found


def data() -> TensorDataset:
    own = torch.Generator().manual_seed(3)
    return TensorDataset(torch.randn(256, 20, generator=own), torch.randint(0, 2, (256,), generator=own))


def trained(
    trainings: Trainings, told: str = "in a hook", noise: float = SIGMA, *, shuffled: bool = False, every: int = 1
) -> JudgedTraining:
    """What is known of a training by hand whose accountant is told of its steps at some time."""
    torch.manual_seed(0)
    model: Any = GradSampleModule(torch.nn.Sequential(torch.nn.Linear(20, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2)))
    plain = DataLoader(data(), batch_size=32, shuffle=True)
    loader = plain if shuffled else DPDataLoader.from_data_loader(plain)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer = DPOptimizer(sgd, noise_multiplier=noise, max_grad_norm=1.0, expected_batch_size=32)
    accountant = RDPAccountant()

    def account() -> None:
        accountant.step(noise_multiplier=SIGMA, sample_rate=RATE)

    if told == "in a hook":
        optimizer.attach_step_hook(accountant.get_optimizer_hook_fn(sample_rate=RATE))
    taken = 0
    while taken < STEPS:
        for x, y in loader:
            if told == "before":
                account()
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            taken += 1
            if told == "after" and taken % every == 0:
                account()
            if taken == STEPS:
                break
    for _ in range(STEPS if told == "in the end" else 0):
        account()
    trainings.finish()
    (found,) = trainings._sink
    return found


@pytest.mark.parametrize("told", ["in a hook", "before", "after", "in the end"])
def test_it_is_consistent_whenever_its_accountant_is_told(trainings: Trainings, told: str) -> None:
    found = trained(trainings, told)
    assert str(found.verdict()).startswith("consistent: held: clipping, noise, sampling, accounting"), found.verdict()
    assert found.history == [[SIGMA, RATE, STEPS]]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"told": "never"}, "inconclusive: accounting is untested (steps: no accountant of Opacus was told"),
        ({"told": "after", "every": 2}, "violated: accounting is broken (by steps): 12 steps accounted; expected 24"),
        ({"told": "after", "noise": 0.5}, "violated: noise is broken"),
        ({"told": "after", "shuffled": True}, "violated: sampling is broken (by sampler): a loader that draws no"),
    ],
)
def test_what_is_wrong_with_it_is_named(trainings: Trainings, fault: dict[str, Any], words: str) -> None:
    assert str(trained(trainings, **fault).verdict()).startswith(words)


def test_a_training_that_is_never_begun_keeps_nobody_from_being_consistent(trainings: Trainings) -> None:
    engine = PrivacyEngine()
    attach.watch_engine(engine, trainings)
    attach.watch_strangers(trainings)
    model = torch.nn.Linear(20, 2)
    engine.make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1), data_loader=DataLoader(data(), 32),
        noise_multiplier=1.0, max_grad_norm=1.0,
    )  # fmt: skip
    trainings.finish()
    monitor: Any = trainings._sink
    (idle,) = monitor
    assert idle.idle
    assert str(idle.verdict()) == "inconclusive: it was made private, and took no step: nothing of it is released"
    assert not monitor.supported  # alone it is no training that was audited


def test_layers_that_are_frozen_meanwhile(trainings: Trainings) -> None:
    engine = PrivacyEngine(accountant="rdp")
    attach.watch_engine(engine, trainings)
    torch.manual_seed(0)
    model: Any = torch.nn.Sequential(torch.nn.Linear(20, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1), data_loader=DataLoader(data(), 32),
        noise_multiplier=1.0, max_grad_norm=1.0,
    )  # fmt: skip
    first = list(model.parameters())[:2]
    for epoch in range(4):
        for parameter in first:
            parameter.requires_grad_(epoch not in (1, 2))
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    trainings.finish()
    (found,) = trainings._sink
    assert found.verdict().outcome == "consistent", found.verdict()
