"""The check of what is spent, against what `make_private_with_epsilon` was asked for."""

import pytest
import torch
from opacus import PrivacyEngine
from opacus.accountants import utils
from opacus.optimizers import DPOptimizer
from torch.utils.data import DataLoader, Subset, TensorDataset

import epsilometer.opacus
from epsilometer.statements import Statement
from epsilometer.watching.checks import Check, Status


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("epochs", "status"), [(2, "passed"), (6, "failed")])
def test_more_than_the_target_is_no_pass(epochs: int, status: str) -> None:
    """Trained for longer than `make_private_with_epsilon` was told."""
    torch.manual_seed(0)
    engine = PrivacyEngine(accountant="rdp")
    audit = epsilometer.opacus.watch(engine, quiet=True, seed=1)
    data = TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,)))
    model = torch.nn.Linear(4, 2)
    model, optimizer, loader = engine.make_private_with_epsilon(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(data, batch_size=16), max_grad_norm=1.0,
        target_epsilon=8.0, target_delta=1e-3, epochs=2,
    )  # fmt: skip
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    audit.finish()
    (seen,) = audit.trainings
    (check,) = [one for one in seen.checks if one.name == "target-epsilon"]
    assert check.status == status, check
    if status == "failed":
        assert seen.verdict().refuted == "the stated mechanism and the (ε, δ): accounting"
        assert "put in doubt" not in str(seen.epsilon())  # what is spent is promised all the same
        seen.checks.append(Check("sampler", Status.FAILED, "shuffled", Statement.SAMPLING))
        seen._epsilon = None
        assert "which failed checks put in doubt (sampler)" in str(seen.epsilon())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("data", "shared", "status"),
    [("same", False, "failed"), ("half", False, "failed"), ("other", False, "passed"), ("same", True, "passed")],
    ids=["same-records", "half-of-them", "other-records", "one-accountant"],
)
def test_accountants_of_the_same_records_add_up(data: str, shared: bool, status: str) -> None:
    """Each within what it was asked for; whoever sees both releases has seen all steps."""
    torch.manual_seed(0)
    first = TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,)))
    others = {
        "same": TensorDataset(first.tensors[0].clone(), torch.randint(0, 2, (64,))),
        "half": Subset(first, range(32)),
        "other": TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,))),
    }
    one = PrivacyEngine(accountant="rdp")
    engines = [one, one if shared else PrivacyEngine(accountant="rdp")]
    audits = [epsilometer.opacus.watch(engine, quiet=True, seed=1) for engine in dict.fromkeys(engines)]
    for engine, used in zip(engines, (first, others[data]), strict=True):
        model = torch.nn.Linear(4, 2)
        model, optimizer, loader = engine.make_private_with_epsilon(
            module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            data_loader=DataLoader(used, batch_size=16), max_grad_norm=1.0,
            target_epsilon=16.0, target_delta=1e-3, epochs=2,
        )  # fmt: skip
        for _ in range(2):
            for x, y in loader:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()
    audits[-1].finish()
    (check,) = [one for one in audits[-1].trainings[-1].checks if one.name == "composition"]
    assert (check.status, check.basis) == (status, "hint"), check
    if status == "failed":
        records = 32 if data == "half" else 64
        assert f"2 accountants for trainings on the same {records} records" in check.reason


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("hooked", [False, True])
def test_steps_of_an_optimizer_that_no_engine_has_made(hooked: bool) -> None:
    torch.manual_seed(0)
    engine = PrivacyEngine(accountant="rdp")
    audit = epsilometer.opacus.watch(engine, quiet=True, seed=1)
    data = DataLoader(TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,))), batch_size=16)
    model = torch.nn.Linear(4, 2)
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1), data_loader=data,
        noise_multiplier=1.0, max_grad_norm=1.0,
    )  # fmt: skip
    settings = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, "expected_batch_size": 16}
    polish = DPOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), **settings)
    if hooked:
        polish.attach_step_hook(engine.accountant.get_optimizer_hook_fn(sample_rate=0.25))
    for chosen in (optimizer, polish):
        for x, y in loader:
            chosen.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            chosen.step()
    audit.finish()
    first, second = ([one for one in training.checks if one.name == "steps"] for training in audit.trainings)
    assert first[0].status == "passed"
    assert second[0].reason.startswith("4 steps taken, all accounted" if hooked else "0 steps accounted; expected 4")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("records", "accountant", "status"),
    [(64, "rdp", "passed"), (640, "rdp", "failed"), (64, "prv", "not applicable")],
)
def test_noise_that_the_script_has_found_for_a_target_itself(records: int, accountant: str, status: str) -> None:
    """For more records than there are, the sample rate is too small. Another accountant may say more of the same."""
    torch.manual_seed(0)
    engine = PrivacyEngine(accountant="rdp")
    audit = epsilometer.opacus.watch(engine, quiet=True, seed=1)
    sigma = utils.get_noise_multiplier(
        target_epsilon=3.0, target_delta=1e-3, sample_rate=16 / records, steps=8, accountant=accountant
    )
    data = DataLoader(TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,))), batch_size=16)
    model = torch.nn.Linear(4, 2)
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1), data_loader=data,
        noise_multiplier=sigma, max_grad_norm=1.0,
    )  # fmt: skip
    for x, y in [batch for _ in range(2) for batch in loader]:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    audit.finish()
    (check,) = [one for one in audit.trainings[0].checks if one.name == "target-epsilon"]
    assert check.status == status, check
