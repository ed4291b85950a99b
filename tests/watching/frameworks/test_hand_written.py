"""A hand-written DP-SGD loop of torch is watched by one file of its own, and checks that exist find its faults."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from hand_written import HandWritten, Tensors
from opacus.accountants import RDPAccountant

from epsilometer.watching.watch import Watch

pytestmark = pytest.mark.filterwarnings("ignore")
RECORDS, RATE, SIGMA, CLIP, STEPS = 200, 0.2, 1.3, 1.0, 25


def clip(gradients: Tensors, clip_norm: float) -> Tensors:
    """Gradients of records, clipped over all parameters together, and added up; no numbers count as nothing."""
    rows = [torch.nan_to_num(one, nan=0.0, posinf=0.0, neginf=0.0) for one in gradients]
    norms = torch.stack([one.flatten(1).norm(dim=1) for one in rows]).norm(dim=0)
    factors = (clip_norm / norms.clamp(min=1e-12)).clamp(max=1.0)
    return [torch.tensordot(factors, one, dims=1) for one in rows]


def add_noise(sums: Tensors, deviation: float) -> Tensors:
    return [one + deviation * torch.randn_like(one) for one in sums]


@dataclass
class Loop:
    """The loop as it should be; tests spoil parts of it."""

    clip: Callable[[Tensors, float], Tensors] = clip
    add_noise: Callable[[Tensors, float], Tensors] = add_noise
    draw: Callable[[int], torch.Tensor] = lambda _: torch.rand(RECORDS) < RATE
    before_step: Callable[[list[Any], Tensors], None] = lambda *_: None
    accounted: Callable[[int], bool] = lambda _: True
    accountant: Any = field(default_factory=RDPAccountant)

    def train(self, watch: Watch | None = None, steps: int = STEPS) -> torch.Tensor:
        """The weights in the end."""
        torch.manual_seed(3)
        x, y = torch.randn(RECORDS, 12), torch.randint(4, (RECORDS,))
        model = torch.nn.Sequential(torch.nn.Linear(12, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
        parameters = list(model.parameters())
        optimizer = torch.optim.SGD(parameters, lr=0.1)
        private = None
        if watch is not None:
            said = {"noise_multiplier": SIGMA, "clip_norm": CLIP, "records": RECORDS}
            private = HandWritten(watch, model, optimizer, self.clip, self.add_noise, self.accountant, **said)

        def loss(values: dict[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            output = torch.func.functional_call(model, values, (x[None],))
            return torch.nn.functional.cross_entropy(output, y[None])

        for step in range(steps):
            batch = self.draw(step)
            values = {name: p.detach() for name, p in model.named_parameters()}
            gradients = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(values, x[batch], y[batch])
            sums = (private or self).clip(list(gradients.values()), CLIP)
            noisy = (private or self).add_noise(sums, SIGMA * CLIP)
            for p, one in zip(parameters, noisy, strict=True):
                p.grad = one / (RATE * RECORDS)
            self.before_step(parameters, sums)
            optimizer.step()
            if self.accounted(step):
                self.accountant.step(noise_multiplier=SIGMA, sample_rate=RATE)
            if private is not None:
                private.stepped()
        return torch.cat([p.detach().reshape(-1) for p in parameters])


def watched(loop: Loop) -> Any:
    watch = Watch(seed=1, quiet=True)
    loop.train(watch)
    watch.finish()
    (training,) = watch.trainings
    return training


def test_the_loop_is_the_same_bit_for_bit_and_its_checks_answer() -> None:
    watch = Watch(seed=1, quiet=True)
    assert torch.equal(Loop().train(), Loop().train(watch))
    watch.finish()
    (seen,) = watch.trainings
    assert seen.not_audited == ""
    assert seen.process.steps == STEPS
    status = {one.name: one.status for one in seen.checks}
    assert "failed" not in status.values(), seen.checks
    assert len(status) == 16
    answered = {name for name, found in status.items() if found == "passed"}
    assert answered >= {
        "sampler", "sample-rate", "steps", "multiplier", "accountant", "noise-scale", "noise-kept", "independent-noise",
        "huge-record", "nonfinite-record", "weights-moved", "only-private-steps", "buffers",
    }  # fmt: skip
    assert watch.verdict.outcome == "consistent"
    assert "training 1: consistent: held: clipping, noise, sampling, accounting" in str(watch)
    epsilon = seen.epsilon()
    assert epsilon.lower.epsilon < epsilon.upper.epsilon


def half(sums: Tensors, deviation: float) -> Tensors:
    return add_noise(sums, deviation / 2)


def one_tensor_without(sums: Tensors, deviation: float) -> Tensors:
    noisy = add_noise(sums, deviation)
    return [*noisy[:-1], sums[-1]] if len(sums) > 1 else noisy


def repeated(sums: Tensors, deviation: float) -> Tensors:
    same = torch.Generator().manual_seed(len(sums))
    return [one + deviation * torch.randn(one.shape, generator=same) for one in sums]


def unclipped(gradients: Tensors, clip_norm: float) -> Tensors:
    return [one.sum(0) for one in gradients]


def without_noise(parameters: list[Any], sums: Tensors) -> None:
    for p, one in zip(parameters, sums, strict=True):
        p.grad = one / (RATE * RECORDS)


def shuffled(step: int) -> torch.Tensor:
    return torch.randperm(RECORDS)[: int(RATE * RECORDS)]


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ({"add_noise": half}, "noise-scale"),
        ({"add_noise": one_tensor_without}, "noise-scale"),
        ({"add_noise": repeated}, "independent-noise"),
        ({"clip": unclipped}, "huge-record"),
        ({"accounted": lambda step: step % 2 == 0}, "steps"),
        ({"draw": shuffled}, "sampler"),
        ({"before_step": without_noise}, "noise-kept"),
    ],
    ids=["half", "one tensor without noise", "repeated", "unclipped", "not accounted", "shuffled", "undone"],
)
def test_faults_are_found_by_checks_that_exist(fault: dict[str, Any], found: str) -> None:
    seen = watched(Loop(**fault))
    failed = {one.name: one.reason for one in seen.checks if one.status == "failed"}
    assert found in failed, failed
    expected = "inconclusive" if found == "noise-kept" else "violated"  # what replaces a noisy gradient may be meant
    assert seen.verdict().outcome == expected, seen.verdict()


def test_half_of_the_noise_is_refuted_by_canaries_within_a_few_steps() -> None:
    assert watched(Loop(add_noise=half)).refuted_at <= 8


def test_what_fails_in_the_privatizer_never_reaches_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HandWritten, "insert", lambda *_: 1 / 0)
    monkeypatch.setattr(HandWritten, "facts", lambda *_, **__: 1 / 0)
    seen = watched(Loop())
    assert "the canaries failed (ZeroDivisionError: division by zero)" in seen.verdict().reason
    assert {one.status for one in seen.checks} == {"not applicable"}
