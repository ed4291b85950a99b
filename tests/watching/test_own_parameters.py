"""Canaries on an extra parameter accuse nobody whose own parameters have their noise."""

from typing import Any

import numpy as np
import pytest
import torch
from opacus.optimizers import DPOptimizer
from trainings import SIGMA, train

from epsilometer.watching.recording import Step
from epsilometer.watching.unclipped import Unclipped

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
        assert "outside of the optimizer, which canaries could disturb" in watch.trainings[0].not_audited
        assert watch.verdict.outcome == "consistent"  # the model's own noise is right
        return
    assert watch.verdict.outcome == outcome, watch.verdict
    if outcome == "inconclusive":
        assert "the model itself has no less noise than is stated" in watch.verdict.reason
        assert "do not refute" not in watch.verdict.reason
        told = watch.trainings[0].epsilon()
        assert (told.lower, told.strength) == (None, None)  # nothing is certified of the model
        assert "use --canaries model" in watch.verdict.reason
        assert watch.trainings[0].process.refuted_at is not None


def unclipped_since(adds: float, count: int = 40) -> int | None:
    """What canaries add is so many clip norms."""
    rng, found = np.random.default_rng(3), Unclipped()
    for _ in range(count):
        coins = rng.random(200) < 0.5
        found.add(Step(1, adds * coins + rng.normal(0, SIGMA, 200), coins, SIGMA, 1.0))
    return found.since


def test_canaries_that_add_too_much_stand_by_the_accusation() -> None:
    assert unclipped_since(adds=1.0) is None
    assert unclipped_since(adds=10.0) == 1
    assert (unclipped_since(adds=1.3) or 99) <= 25
