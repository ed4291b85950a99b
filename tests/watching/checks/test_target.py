"""The check of what is spent, against what `make_private_with_epsilon` was asked for."""

import pytest
import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset

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
@pytest.mark.parametrize("same", [True, False], ids=["one-model", "two-models"])
def test_two_engines_spend_together(same: bool) -> None:
    """Each within what it was asked for; the model that both have trained is not. Other models are other releases."""
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,)))
    plain = torch.nn.Linear(4, 2)
    found = []
    for _ in range(2):
        engine = PrivacyEngine(accountant="rdp")
        audit = epsilometer.opacus.watch(engine, quiet=True, seed=1)
        plain = plain if same else torch.nn.Linear(4, 2)
        model, optimizer, loader = engine.make_private_with_epsilon(
            module=plain, optimizer=torch.optim.SGD(plain.parameters(), lr=0.1),
            data_loader=DataLoader(data, batch_size=16), max_grad_norm=1.0,
            target_epsilon=8.0, target_delta=1e-3, epochs=2,
        )  # fmt: skip
        for _ in range(2):
            for x, y in loader:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()
        audit.finish()
        found += [one for one in audit.trainings[0].checks if one.name == "target-epsilon"]
        model.remove_hooks()
    first, second = found
    assert first.status == "passed"
    assert (second.status, second.basis) == (("failed", "hint") if same else ("passed", "counterexample"))
    assert ("2 engines have trained this model on this data" in second.reason) is same
