"""Trainings that are right are not accused, and do not notice that somebody looks on."""

from typing import Any

import numpy as np
import pytest
import torch

from epsilometer.watching.checks.catalogue import judge
from epsilometer.watching.checks.check import CHANCE
from epsilometer.watching.checks.names import NAMES
from epsilometer.watching.facts import Facts

ALWAYS = {"nonfinite-record"}  # of Opacus up to 1.6.0


class Recurrent(torch.nn.Module):
    """Sequences: 3-d input for a linear layer, an embedding, and layers without a quick way."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(16, 6)
        self.mix = torch.nn.Linear(6, 6)
        self.norm = torch.nn.LayerNorm(6)
        self.out = torch.nn.Linear(6, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.norm(self.mix(self.embed(x))).mean(1))


def convolutional() -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Unflatten(1, (1, 4, 5)), torch.nn.Conv2d(1, 4, 3, padding=1), torch.nn.GroupNorm(2, 4),
        torch.nn.Flatten(), torch.nn.Dropout(0.3), torch.nn.Linear(80, 16),
    )  # fmt: skip


def sequences() -> torch.utils.data.TensorDataset:
    own = torch.Generator().manual_seed(6)
    return torch.utils.data.TensorDataset(
        torch.randint(16, (104, 5), generator=own), torch.randint(16, (104,), generator=own)
    )


def test_everything_passes_that_can_pass(right: Any) -> None:
    assert right.failed == ALWAYS
    assert list(right.checks) == [name for name in NAMES if not name.startswith("replayed-")]
    not_applicable = {name for name in right.checks if right.status(name) == "not applicable"}
    assert not_applicable == {"copies", "empty-batches", "target-epsilon", "fresh-noise", "ghost-clip-norm"}


@pytest.mark.parametrize("mode", ["hooks", "functorch", "ew", "ghost"])
@pytest.mark.parametrize("model", ["plain", "convolutional", "sequences"])
def test_modes_and_models(trained: Any, mode: str, model: str) -> None:
    if mode == "ew" and model == "sequences":
        pytest.skip("expanded weights want one input each")
    options: dict[str, Any] = {"grad_sample_mode": mode}
    if model == "convolutional":
        options |= {"model": convolutional}
    if model == "sequences":
        options |= {"model": Recurrent, "data": sequences()}
    found = trained(**options)
    assert found.failed == ALWAYS
    assert not [check.reason for check in found.checks.values() if "could not be tried" in check.reason]
    assert found.status("mixing") == found.status("noise-scale") == found.status("huge-record") == "passed"
    if mode != "ew":
        assert found.status("record-norms") == "passed"
        assert ("Linear with 3-d input" in found.reason("record-norms")) == (model == "sequences")


@pytest.mark.parametrize("clipping", ["per_layer", "adaptive"])
def test_other_clippings(trained: Any, clipping: str) -> None:
    options: dict[str, Any] = {"clipping": clipping}
    if clipping == "per_layer":
        options["max_grad_norm"] = [0.3, 0.1, 0.2, 0.4]
    else:
        options |= {
            "target_unclipped_quantile": 0.5, "clipbound_learning_rate": 0.2, "max_clipbound": 10.0,
            "min_clipbound": 0.01, "unclipped_num_std": 1.0,
        }  # fmt: skip
    found = trained(**options)
    assert found.failed == ALWAYS
    assert found.status("huge-record") == "passed"
    assert "more than" not in found.reason("noise-scale")


def test_virtual_steps_are_one_batch(trained: Any) -> None:
    from opacus.utils.batch_memory_manager import BatchMemoryManager

    def loop(made: Any, epochs: int) -> None:
        for _ in range(epochs):
            with BatchMemoryManager(
                data_loader=made.loader, max_physical_batch_size=4, optimizer=made.optimizer
            ) as loader:
                for x, y in loader:
                    made.optimizer.zero_grad()
                    made.criterion(made.module(x), y).backward()
                    made.optimizer.step()

    found = trained(loop=loop)
    assert found.failed == ALWAYS
    assert found.status("sampler") == found.status("sample-rate") == found.status("steps") == "passed"
    assert "33 batches" in found.reason("sampler")


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
@pytest.mark.parametrize("clipping", ["flat", "adaptive"])
def test_the_training_is_the_same_without(trained: Any, mode: str, clipping: str) -> None:
    options: dict[str, Any] = {"grad_sample_mode": mode, "model": convolutional}
    if clipping == "adaptive":
        if mode == "ghost":
            pytest.skip("adaptive ghost clipping has an engine of its own")
        options |= {
            "clipping": clipping, "target_unclipped_quantile": 0.5, "clipbound_learning_rate": 0.2,
            "max_clipbound": 10.0, "min_clipbound": 0.01, "unclipped_num_std": 1.0,
        }  # fmt: skip
    states = []
    for inspect in (True, False):
        found = trained(inspect=inspect, **options)
        weights = [p.detach().clone() for p in found.made.module.parameters()]
        states.append((weights, found.made.engine.accountant.history, torch.get_rng_state()))
        if inspect:  # looking a second time, after crafted records, changes nothing either
            assert found.again() == {name: check.status for name, check in found.checks.items()}
    assert all(torch.equal(a, b) for a, b in zip(states[0][0], states[1][0], strict=True))
    assert states[0][1] == states[1][1]
    assert torch.equal(states[0][2], states[1][2])


def test_right_noise_is_accused_as_rarely_as_stated() -> None:
    """p-values of noise that is right are uniform: one in a hundred is below .01, not more."""
    from epsilometer.watching.checks.correlation import chance_of

    draw = np.random.default_rng(3)
    a, b = draw.standard_normal((2, 20_000, 6))
    cosines = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    share = (chance_of(cosines, 6) < 0.01).mean()
    assert 0.007 < share < 0.013  # ± 4 standard deviations
    naive = 2 * (1 - np.vectorize(_normal)(np.abs(cosines) * np.sqrt(6)))  # a correlation taken for Gaussian
    assert (naive < 0.01).mean() < 0.003  # has no power
    assert CHANCE == 1e-6


def _normal(z: float) -> float:
    from statistics import NormalDist

    return NormalDist().cdf(z)


def test_no_training_no_answers() -> None:
    assert judge(Facts()) == []


def test_nothing_that_goes_wrong_reaches_the_script(trained: Any) -> None:
    def change(made: Any) -> None:
        made.engine.accountant.mechanism = lambda: 1 / 0

    found = trained(change, epochs=1)
    assert found.status("accountant") == "not applicable"
    assert found.reason("accountant") == "PRVAccountant does not say what it computes"
    assert found.status("noise-scale") == "passed"


def test_two_trainings_may_share_an_accountant(trained: Any) -> None:
    first = trained()
    second = trained(share=first.made, seed=1)
    assert first.status("steps") == second.status("steps") == "passed"


def test_frozen_batch_normalisation_in_evaluation_is_not_accused() -> None:
    """Its running statistics are fixed: it was put into training for the probe, and mixed records there only."""
    from epsilometer.watching.collect.mixing import mixing, mixing_batch_norms

    class Frozen(torch.nn.BatchNorm1d):
        def train(self, mode: bool = True) -> "Frozen":
            return super().train(False)

    model = torch.nn.Sequential(Frozen(4), torch.nn.Linear(4, 2)).train()
    modes = [(part, part.training) for part in model.modules()]
    records = torch.randn(6, 4, generator=torch.Generator().manual_seed(1))
    assert mixing_batch_norms(model) == []
    assert (mixing(model, records, [], modes).influence or 0) < 1e-6
    plain = torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
    plain[0].eval()  # the linear layer is trained
    modes = [(part, part.training) for part in plain.modules()]
    plain.train()
    assert (mixing(plain, records, [], modes).influence or 0) < 1e-6
    assert plain[0].training  # as it was before
    assert (mixing(plain, records, []).influence or 0) > 1e-3  # what the probe had seen of it
