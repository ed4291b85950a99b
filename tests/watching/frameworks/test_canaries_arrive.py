"""Canaries of a size that a script's clipping leaves, and clipping that would notice them."""

from typing import Any

import pytest
import torch
from opacus.optimizers import DPOptimizer
from trainings import train

pytestmark = pytest.mark.filterwarnings("ignore")


def clipping(most: float, above: float) -> type:
    """At so many times C, and records above so many times C are dropped."""

    class Drops(DPOptimizer):  # type: ignore[misc]
        def clip_and_accumulate(self) -> None:
            norms = torch.stack([g.reshape(len(g), -1).norm(dim=1) for g in self.grad_samples], 1).norm(dim=1)
            factor = (most * self.max_grad_norm / (norms + 1e-6)).clamp(max=1.0)
            factor[norms > above * self.max_grad_norm] = 0.0
            for p, g in zip(self.params, self.grad_samples, strict=True):
                added = torch.einsum("i,i...", factor, g)
                p.summed_grad = added if p.summed_grad is None else p.summed_grad + added

    return Drops


def watched(monkeypatch: pytest.MonkeyPatch, kind: type, place: str) -> Any:
    monkeypatch.setattr("opacus.privacy_engine.get_optimizer_class", lambda **_: kind)
    seen = train({"place": place}, steps=20).watch
    assert seen is not None
    return seen.trainings[0]


@pytest.mark.parametrize("place", ["extra", "model"])
@pytest.mark.parametrize(
    ("most", "above", "outcome"), [(1.0, 5.5, "consistent"), (3.0, 8.0, "violated"), (1.0, 1.2, "inconclusive")]
)
def test_records_that_are_dropped(
    most: float, above: float, outcome: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Canaries of ten times C never arrived: "nothing is known of the noise; train longer"."""
    training = watched(monkeypatch, clipping(most, above), place)
    verdict = training.verdict()
    assert verdict.outcome == outcome, verdict
    if outcome == "inconclusive":
        assert "they do not arrive: its clipping drops records with gradients of 10·C, 5·C" in verdict.reason


class Counts(DPOptimizer):  # type: ignore[misc]
    """Every third call clips nothing, and calls are counted: to ask once more would change what is clipped."""

    calls_so_far = 0

    def clip_and_accumulate(self) -> None:
        self.calls = getattr(self, "calls", 0) + 1
        usual = self.max_grad_norm
        if self.calls % 3 == 0:
            self.max_grad_norm = 1e6
        super().clip_and_accumulate()
        self.max_grad_norm = usual


@pytest.mark.parametrize("place", ["extra", "model"])
def test_calls_that_are_counted_on_the_optimizer_are_put_back(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the canaries, that is: the script's own every third call stays as it was."""
    monkeypatch.setattr("opacus.privacy_engine.get_optimizer_class", lambda **_: Counts)
    alone, seen = train(None, steps=9), train({"place": place}, steps=9)
    assert alone.optimizer.calls == seen.optimizer.calls == 9
    assert torch.allclose(alone.weights, seen.weights, atol=1e-3)
    assert seen.watch is not None
    checks = {one.name: one.status for one in seen.watch.trainings[0].checks}
    assert checks["record-shares"] == "failed"


class Clipper:
    """State in an object that is called."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> None:
        self.calls += 1


CLIPPER = Clipper()


class Global(DPOptimizer):  # type: ignore[misc]
    def clip_and_accumulate(self) -> None:
        CLIPPER()
        super().clip_and_accumulate()


class Default(DPOptimizer):  # type: ignore[misc]
    def clip_and_accumulate(self, calls: list[int] = [0]) -> None:  # noqa: B006
        calls[0] += 1
        super().clip_and_accumulate()


@pytest.mark.parametrize("place", ["extra", "model"])
@pytest.mark.parametrize("kind", [Global, Default])
def test_calls_that_are_counted_elsewhere_are_refused(kind: type, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reason = watched(monkeypatch, kind, place).not_audited
    assert "clip_and_accumulate keeps" in reason
    assert "outside of the optimizer, which canaries could disturb" in reason
