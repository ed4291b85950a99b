"""Canaries on an extra parameter accuse nobody whose own parameters have their noise."""

from typing import Any

import numpy as np
import pytest
import torch
from opacus.optimizers import DPOptimizer
from trainings import SIGMA, train

from epsilometer.watching.frameworks.opacus.model import own_noise
from epsilometer.watching.own_parameters import OwnParameters
from epsilometer.watching.recording import Step

pytestmark = pytest.mark.filterwarnings("ignore")


def noised(optimizer: Any, deviation_of: Any) -> None:
    for place, p in enumerate(optimizer.params):
        p.grad = (p.summed_grad + torch.randn_like(p.summed_grad) * deviation_of(place, p)).view_as(p)


def by_identity(known: dict[int, float], unknown: float) -> type:
    """Noise by parameter, and a default for those that the script does not know."""

    class ByIdentity(DPOptimizer):  # type: ignore[misc]
        def add_noise(self) -> None:
            if not known:
                known.update({id(p): self.noise_multiplier * self.max_grad_norm for p in self.params})
            noised(self, lambda _, p: known.get(id(p), unknown))

    return ByIdentity


def by_size(known: tuple[int, ...], unknown: float) -> type:
    """The same by size, without anything that could change."""

    class BySize(DPOptimizer):  # type: ignore[misc]
        def add_noise(self) -> None:
            scale = self.noise_multiplier * self.max_grad_norm
            noised(self, lambda _, p: scale * (1.0 if p.numel() in known else unknown))

    return BySize


def by_group(deviations: list[float]) -> type:
    """Noise by group, from a list that is made once: the groups are those of the sizes that were there then."""
    sizes: list[int] = []

    class ByGroup(DPOptimizer):  # type: ignore[misc]
        def add_noise(self) -> None:
            sizes.extend([p.numel() for p in self.params] if not sizes else [])
            scale = self.noise_multiplier * self.max_grad_norm
            noised(self, lambda _, p: scale * deviations[sizes.index(p.numel()) if p.numel() in sizes else -1])

    return ByGroup


@pytest.mark.parametrize(
    ("kind", "place", "outcome"),
    [
        (lambda: by_size((2048, 32, 320, 10), 0.1), "extra", "inconclusive"),
        (lambda: by_size((2048, 32, 320, 10), 0.1), "model", "consistent"),
        (lambda: by_identity({}, 0.1), "extra", "not audited"),
        (lambda: by_group([1.0, 1.0, 1.0, 1.0, 0.2]), "extra", "not audited"),
        (lambda: by_group([0.4, 0.4, 0.4, 0.4, 0.4]), "extra", "violated"),
    ],
    ids=["default-extra", "default-model", "default-kept", "list-extra", "list-faulty"],
)
def test_a_parameter_that_the_script_does_not_know(
    kind: Any, place: str, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refuted at step 3 until the model's own noise was looked at."""
    made = kind()
    monkeypatch.setattr("opacus.privacy_engine.get_optimizer_class", lambda **_: made)
    watch = train({"place": place}, steps=20).watch
    assert watch is not None
    if outcome == "not audited":
        assert watch.verdict.outcome == "inconclusive"
        assert "outside of the optimizer, which canaries could disturb" in watch.verdict.reason
        return
    assert watch.verdict.outcome == outcome, watch.verdict
    if outcome == "inconclusive":
        assert "the model itself has no less noise than is stated" in watch.verdict.reason
        assert "do not refute" not in watch.verdict.reason
        told = watch.trainings[0].epsilon()
        assert (told.lower, told.strength) == (None, None)  # nothing is certified of the model
        assert "use --canaries model" in watch.verdict.reason
        assert watch.trainings[0].process.refuted_at is not None


def steps(own: float, canary: float, adds: float, law: str = "normal", count: int = 40) -> OwnParameters:
    """Noise of the model and of canaries as shares of the stated, and what a canary adds in clip norms."""
    rng, found = np.random.default_rng(3), OwnParameters(0.95)
    for _ in range(count):
        coins = rng.random(200) < 0.5
        scores = adds * coins + rng.normal(0, canary * SIGMA, 200)
        drawn = getattr(rng, law)(0, 1, 200) / {"normal": 1.0, "laplace": 2**0.5}[law]
        found.add(Step(1, scores, coins, SIGMA, 1.0, np.sort(np.abs(own * SIGMA * drawn))), SIGMA)
    return found


def test_what_stands_by_the_accusation() -> None:
    assert steps(own=1.0, canary=0.1, adds=1.0).refuted_at is None
    assert steps(own=1.5, canary=0.1, adds=1.0).refuted_at is None
    assert steps(own=0.5, canary=0.5, adds=1.0).refuted_at == 1
    assert steps(own=0.9, canary=0.9, adds=1.0).refuted_at == 2
    assert steps(own=1.0, canary=1.0, adds=10.0).refuted_at == 1  # clipping
    assert (steps(own=1.0, canary=1.0, adds=1.3).refuted_at or 99) <= 25
    laplace = steps(own=1.0, canary=1.0, adds=1.0, law="laplace", count=150)
    assert laplace.refuted_at is not None  # of the right variance, and another law


def test_recordings_give_no_noise_away() -> None:
    """Its size, sorted: neither sign nor place."""
    linear: Any = torch.nn.Parameter(torch.zeros(50))
    linear.summed_grad, linear.grad = torch.arange(50.0), torch.arange(50.0) - torch.linspace(-3, 3, 50)

    class Optimizer:
        params = (linear,)
        loss_reduction, max_grad_norm = "sum", 2.0

    found = own_noise(Optimizer(), 50, np.random.default_rng(0))
    assert found == pytest.approx(np.sort(np.abs(np.linspace(-3, 3, 50))) / 2, abs=1e-5)
