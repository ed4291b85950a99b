"""What somebody found who had not read the code: noise that is undone once it was weighed, right scripts accused."""

from pathlib import Path
from typing import Any

import pytest
import torch
from opacus.optimizers import DPOptimizer
from opacus.schedulers import ExponentialNoise
from test_watch import PRIVATE, script, watch
from trainings import SIGMA, train

pytestmark = pytest.mark.filterwarnings("ignore")


def outcome(monkeypatch: pytest.MonkeyPatch, kind: type | None = None, **given: Any) -> tuple[str, dict[str, str]]:
    """The verdict on a training by such an optimizer, and its checks."""
    if kind is not None:
        monkeypatch.setattr("opacus.privacy_engine.get_optimizer_class", lambda **_: kind)
    seen = train({}, steps=given.pop("steps", 20), **given).watch
    assert seen is not None
    (training,) = seen.trainings
    return str(training.verdict().outcome), {one.name: one.status for one in training.checks}


# Noise that is undone


def undone_by_a_hook(optimizer: Any) -> None:
    def clean(inner: Any, *_: Any) -> None:
        for p in optimizer.params:
            p.grad = p.summed_grad / optimizer.expected_batch_size

    optimizer.original_optimizer.register_step_pre_hook(clean)


def undone_on_the_object(optimizer: Any) -> None:
    right = optimizer.add_noise

    def add_noise() -> None:
        right()
        if len(optimizer.params) == 4:  # the model, not canaries
            optimizer.params[-1].grad = optimizer.params[-1].summed_grad.clone()

    optimizer.add_noise = add_noise


def undone_in_scaling(optimizer: Any) -> None:
    right = optimizer.scale_grad

    def scale_grad() -> None:
        if len(optimizer.params) == 4:
            optimizer.params[-1].grad = optimizer.params[-1].summed_grad.clone()
        right()

    optimizer.scale_grad = scale_grad


@pytest.mark.parametrize("alter", [undone_by_a_hook, undone_on_the_object, undone_in_scaling])
@pytest.mark.parametrize("place", ["extra", "model"])
def test_noise_that_is_undone_is_not_consistent(alter: Any, place: str) -> None:
    seen = train({"place": place}, steps=20, alter=alter).watch
    assert seen is not None
    assert seen.verdict.outcome != "consistent"
    if alter is undone_on_the_object:  # what is left after its add_noise is the noise of the step
        assert seen.verdict.refuted == "the stated mechanism: noise"
    else:
        assert {one.name: one.status for one in seen.trainings[0].checks}["noise-kept"] == "failed"


def test_canaries_of_the_model_do_not_look_like_that() -> None:
    seen = train({"place": "model"}, steps=20).watch
    assert seen is not None
    assert {one.name: one.status for one in seen.trainings[0].checks}["noise-kept"] == "passed"
    assert seen.verdict.outcome == "consistent"


@pytest.mark.full
def test_a_private_optimizer_beside_those_of_engines_is_watched(tmp_path: Path) -> None:
    text = PRIVATE + (
        "from opacus import GradSampleModule\nfrom opacus.optimizers import DPOptimizer\n"
        "train(private(), 25)\n"
        "module = GradSampleModule(torch.nn.Linear(3, 2))\n"
        "own = DPOptimizer(torch.optim.SGD(module.parameters(), lr=0.1), noise_multiplier=0.0, max_grad_norm=1.0,"
        " expected_batch_size=4)\n"
        "module(torch.randn(4, 3)).sum().backward()\nown.step()\n"
    )
    seen = watch("--require", "consistent", "--", *script(tmp_path, text))
    assert seen.returncode == 4
    assert "training 2: inconclusive: 1 steps state a noise multiplier of 0, which promises nothing" in seen.stderr


# Right ones


class LessOfBoth(DPOptimizer):  # type: ignore[misc]
    """Clips to C/2 and adds σ·C/2."""

    def clip_and_accumulate(self) -> None:
        full, self.max_grad_norm = self.max_grad_norm, self.max_grad_norm / 2
        super().clip_and_accumulate()
        self.max_grad_norm = full

    def add_noise(self) -> None:
        full, self.max_grad_norm = self.max_grad_norm, self.max_grad_norm / 2
        super().add_noise()
        self.max_grad_norm = full


class InTwoParts(DPOptimizer):  # type: ignore[misc]
    """Half of the variance with the sum, half as usual."""

    def clip_and_accumulate(self) -> None:
        super().clip_and_accumulate()
        for p in self.params:
            p.summed_grad = p.summed_grad + torch.randn_like(p.summed_grad) * (SIGMA * self.max_grad_norm * 0.5**0.5)

    def add_noise(self) -> None:
        for p in self.params:
            noise = torch.randn_like(p.summed_grad) * (SIGMA * self.max_grad_norm * 0.5**0.5)
            p.grad = (p.summed_grad + noise).view_as(p)


class InScaling(DPOptimizer):  # type: ignore[misc]
    """All of it a moment later."""

    def add_noise(self) -> None:
        for p in self.params:
            p.grad = p.summed_grad.clone().view_as(p)

    def scale_grad(self) -> None:
        for p in self.params:
            p.grad = p.grad + torch.randn_like(p.grad) * SIGMA * self.max_grad_norm
        super().scale_grad()


@pytest.mark.parametrize("kind", [LessOfBoth, InTwoParts, InScaling])
def test_noise_that_is_right_in_another_place_is_not_accused(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    found, checks = outcome(monkeypatch, kind)
    assert found == "inconclusive", checks


def test_schedules_and_more_noise_than_is_accounted_are_not_accused(monkeypatch: pytest.MonkeyPatch) -> None:
    def before_the_step(optimizer: Any) -> None:
        schedule, step = ExponentialNoise(optimizer, gamma=0.97), optimizer.step

        def scheduled(closure: Any = None) -> Any:
            schedule.step()
            return step(closure)

        optimizer.step = scheduled

    assert outcome(monkeypatch, alter=before_the_step)[0] == "consistent"

    def told_less(optimizer: Any) -> None:
        hook = optimizer.step_hook

        def lowered(one: Any) -> None:
            kept, one.noise_multiplier = one.noise_multiplier, one.noise_multiplier / 2
            hook(one)
            one.noise_multiplier = kept

        optimizer.step_hook = lowered

    found, checks = outcome(monkeypatch, alter=told_less)
    assert checks["multiplier"] == "passed"
    assert found != "violated"


def test_steps_that_are_accounted_at_the_end_are_not_accused() -> None:
    def alter(optimizer: Any) -> None:
        optimizer.step_hook = None

    trained = train({}, steps=20, alter=alter)
    assert trained.watch is not None
    for _ in range(20):
        trained.engine.accountant.step(noise_multiplier=SIGMA, sample_rate=0.25)
    assert trained.watch.verdict.outcome == "inconclusive"
    assert "0 steps accounted as they were taken, 20 in the end" in trained.watch.verdict.reason


# State that is not the optimizer's

BEFORE: list[torch.Tensor] = []


class Remembers(DPOptimizer):  # type: ignore[misc]
    """Keeps the last noise in a global list; a canary's part there would break the next step."""

    def add_noise(self) -> None:
        super().add_noise()
        noise = [p.grad - p.summed_grad for p in self.params]
        for p, old in zip(self.params, BEFORE, strict=False):
            p.grad = p.grad + 0.0 * old
        BEFORE[:] = noise


def test_state_outside_of_the_optimizer_is_not_disturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    BEFORE.clear()
    monkeypatch.setattr("opacus.privacy_engine.get_optimizer_class", lambda **_: Remembers)
    seen = train({}, steps=4)
    assert [len(one.shape) for one in BEFORE] == [2, 1, 2, 1]
    assert seen.watch is not None
    (training,) = seen.watch.trainings
    assert "Remembers.add_noise keeps 'BEFORE' outside of the optimizer" in training.not_audited
    BEFORE.clear()
    inside = train({"place": "model"}, steps=20)  # as the reason says: only clipping is asked once more there
    assert inside.watch is not None
    assert inside.watch.verdict.outcome == "consistent"


# Recordings


@pytest.mark.full
def test_files_that_are_no_recordings_keep_nobody_waiting(tmp_path: Path) -> None:
    ended = '{"kind": "ended", "training": 1, "unseen": 0, "history": [[1, 1, 1'
    spoil = (
        "import os\nplace = os.environ['EPSILOMETER_WATCH']\n"
        "os.mkfifo(place + '/9-1.jsonl')\nos.mkdir(place + '/9-2.jsonl')\nos.symlink('nothing', place + '/9-3.jsonl')\n"
        "with open(place + '/9-4.jsonl', 'w') as file:\n"
        f"    print('[' * 100_000, {ended!r} + '0' * 400 + ']]}}', sep=chr(10), file=file)\n"
    )
    seen = watch(
        "--seed", "1", "--require", "not-violated", "--", *script(tmp_path, PRIVATE + spoil + "train(private(), 25)\n")
    )
    assert seen.returncode == 0, seen.stderr
    assert "2 lines of the recordings make no sense, and were left out; 3 recordings cannot be read" in seen.stderr
    assert ": consistent: " in seen.stderr


@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize("where", ["object", "class"])
def test_add_noise_that_is_replaced_after_make_private_is_followed(
    where: str, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever patches it may do so late, on the object or in its class; it was "not seen" then."""

    def own(optimizer: Any) -> None:
        for p in optimizer.params:
            deviation = share * optimizer.noise_multiplier * optimizer.max_grad_norm
            p.grad = (p.summed_grad + deviation * torch.randn_like(p)).view_as(p)

    def replace(optimizer: Any) -> None:
        if where == "object":
            optimizer.add_noise = lambda: own(optimizer)
        else:
            monkeypatch.setattr(type(optimizer), "add_noise", own)

    watch = train({}, steps=20, alter=replace).watch
    assert watch is not None
    (seen,) = watch.trainings
    assert seen.noise_law.seen
    assert str(seen.verdict().outcome) == ("violated" if share < 1 else "consistent"), seen.verdict()
    if share < 1:
        assert seen.verdict().refuted.endswith(": noise")


class EverySecond:
    """Adds noise in every second step."""

    def __init__(self, optimizer: Any) -> None:
        self.optimizer, self.steps, self.right = optimizer, 0, optimizer.add_noise

    def __call__(self) -> None:
        self.steps += 1
        if self.steps % 2:
            return self.right()
        for p in self.optimizer.params:
            p.grad = p.summed_grad.clone().view_as(p)
        return None


class EverySecondItself(DPOptimizer):  # type: ignore[misc]
    def add_noise(self) -> None:
        self.taken = getattr(self, "taken", 0) + 1
        super().add_noise()
        if self.taken % 2 == 0:
            for p in self.params:
                p.grad = p.summed_grad.clone().view_as(p)


@pytest.mark.parametrize("how", ["object", "its method", "subclass"])
def test_canaries_do_not_mend_noise_that_counts_steps(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second call for canaries would take the step without noise, so that the model always had it."""

    def replace(optimizer: Any) -> None:
        every = EverySecond(optimizer)
        if how != "subclass":
            optimizer.add_noise = every if how == "object" else every.__call__

    if how == "subclass":
        monkeypatch.setattr("opacus.privacy_engine.get_optimizer_class", lambda **_: EverySecondItself)
    without, seen = train(alter=replace), train({}, alter=replace)
    assert torch.equal(without.weights, seen.weights)
    assert seen.watch is not None
    assert str(seen.watch.verdict.outcome) == "violated"
