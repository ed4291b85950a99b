"""Watching Opacus from inside changes nothing, accuses nobody who adds the stated noise, and sees who does not."""

import statistics
from typing import Any

import numpy as np
import opacus.optimizers.optimizer as inner
import opacus.optimizers.optimizer_fast_gradient_clipping as ghost
import pytest
import torch
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer
from opacus.schedulers import ExponentialNoise
from torch.utils.data import DataLoader, TensorDataset
from trainings import SIGMA, train

import epsilometer.opacus
from epsilometer.accounting import DpSgd, account, epsilon_floor
from epsilometer.bounds import Kind
from epsilometer.claims import Relation
from epsilometer.errors import InvalidInput
from epsilometer.rounding import down
from epsilometer.statements import Basis, Statement
from epsilometer.watching.checks import Check, Status
from epsilometer.watching.collect.randomness import apart
from epsilometer.watching.epsilon import epsilon_of_training

pytestmark = pytest.mark.filterwarnings("ignore")
KINDS: dict[str, dict[str, Any]] = {
    "hooks": {},
    "ghost": {"grad_sample_mode": "ghost"},
    "functorch": {"grad_sample_mode": "functorch"},
    "ew": {"grad_sample_mode": "ew"},
    "virtual": {"physical": 16},
    "virtual ghost": {"physical": 16, "grad_sample_mode": "ghost"},
    "adam": {"optimizer": "Adam"},
    "by layer": {"clipping": "per_layer", "max_grad_norm": [0.5] * 4},
    "sum": {"loss_reduction": "sum"},
    "shuffled": {"poisson_sampling": False},
}


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(5)


def scaled(scale: float, monkeypatch: pytest.MonkeyPatch, only: tuple[int, ...] | None = None) -> None:
    """Somebody's patch: less noise than is stated, everywhere or for tensors of one shape."""
    right = inner._generate_noise

    def faulty(std: float, reference: torch.Tensor, **others: Any) -> torch.Tensor:
        hit = only is None or tuple(reference.shape) == only
        return right(std=std * (scale if hit else 1.0), reference=reference, **others)

    monkeypatch.setattr(inner, "_generate_noise", faulty)
    monkeypatch.setattr(ghost, "_generate_noise", faulty)


@pytest.mark.parametrize("kind", KINDS)
def test_the_training_is_the_same_bit_for_bit(kind: str) -> None:
    without, seen = train(**KINDS[kind]), train({}, **KINDS[kind])
    assert torch.equal(without.weights, seen.weights)
    assert without.history == seen.history
    assert without.drawn_next == seen.drawn_next
    assert seen.watch is not None
    (training,) = seen.watch.trainings
    assert training.process.steps == 6  # virtual steps are no steps
    assert not training.process.refuted
    assert training.noise_factor() < 4  # canaries are seen


def test_a_generator_of_the_scripts_own_is_put_back() -> None:
    own = generator()
    without = train(noise_generator=own)
    again = generator()
    seen = train({}, noise_generator=again)
    assert torch.equal(without.weights, seen.weights)
    assert torch.equal(own.get_state(), again.get_state())


def test_secure_noise_is_watched_too() -> None:
    """Without its source of randomness, which is not installed; Opacus then adds up several draws."""

    def secure(optimizer: Any) -> None:
        optimizer.secure_mode = True

    without, seen = train(alter=secure), train({}, alter=secure, steps=6)
    assert torch.equal(without.weights, seen.weights)
    assert not str(seen.watch).startswith("epsilometer: training 1: violated")


@pytest.mark.parametrize("kind", ["hooks", "ghost", "virtual", "virtual ghost"])
def test_canaries_of_the_model_leave_rounding_behind(kind: str) -> None:
    without, seen = train(**KINDS[kind]), train({"place": "model"}, **KINDS[kind])
    assert torch.allclose(without.weights, seen.weights, rtol=0, atol=1e-5)
    assert without.drawn_next == seen.drawn_next
    assert seen.watch is not None
    (training,) = seen.watch.trainings
    assert training.process.steps == 6
    assert not training.process.refuted


@pytest.mark.parametrize(
    ("kind", "place"),
    [*((kind, place) for kind in ("hooks", "ghost", "virtual") for place in ("extra", "model")), ("by layer", "extra")],
)
def test_half_of_the_noise_is_seen(kind: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scaled(0.5, monkeypatch)
    steps = []
    for seed in range(3):
        watch = train({"place": place, "seed": seed}, steps=10, **KINDS[kind]).watch
        assert watch is not None
        assert watch.verdict.outcome == "violated"
        steps.append(watch.trainings[0].process.refuted_at)
    assert statistics.median(steps) <= 5


def test_canaries_of_the_model_see_a_bias_without_noise_and_checks_beside_an_extra_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scaled(0.0, monkeypatch, only=(32,))
    beside = train({}, steps=20).watch
    assert beside is not None
    assert beside.trainings[0].refuted_at is None
    assert beside.verdict.refuted == "the stated mechanism: noise"
    watch = train({"place": "model"}, steps=20).watch
    assert watch is not None
    assert watch.trainings[0].refuted_at is not None
    assert watch.verdict.outcome == "violated"


def test_clipping_is_under_test(monkeypatch: pytest.MonkeyPatch) -> None:
    def unclipped(self: Any) -> None:
        for p in self.params:
            p.summed_grad = self._get_flat_grad_sample(p).sum(0)

    watch = train({}, alter=lambda _: monkeypatch.setattr(DPOptimizer, "clip_and_accumulate", unclipped)).watch
    assert watch is not None
    assert watch.verdict.outcome == "violated"


def test_a_ghost_module_that_clips_at_another_norm_is_seen() -> None:
    """Opacus 1.5 to 1.5.2 did so whatever clip norm was asked for."""
    watch = train(
        {},
        max_grad_norm=0.01,
        grad_sample_mode="ghost",
        before=lambda engine: setattr(engine, "_prepare_model", _clipping_at_one(engine._prepare_model)),
    ).watch
    assert watch is not None
    assert watch.verdict.outcome == "violated"


def _clipping_at_one(prepare: Any) -> Any:
    return lambda *arguments, **given: prepare(*arguments, **{**given, "max_grad_norm": 1.0})


def test_what_is_accounted_is_what_is_stated() -> None:
    """The optimizer adds the noise it was asked for, but the accountant is told of twice as much."""

    def tell_more(optimizer: Any) -> None:
        hook = optimizer.step_hook

        def exaggerate(own: Any) -> None:
            own.noise_multiplier *= 2
            hook(own)
            own.noise_multiplier /= 2

        optimizer.attach_step_hook(exaggerate)

    watch = train({}, alter=tell_more).watch
    assert watch is not None
    assert watch.verdict.outcome == "violated"
    assert "2.772" in watch.verdict.reason


def test_a_scheduler_of_noise_is_followed() -> None:
    def shrink(optimizer: Any) -> None:
        schedule, step = ExponentialNoise(optimizer, gamma=0.8), optimizer.original_optimizer.step

        def stepped(*arguments: Any) -> None:
            step(*arguments)
            schedule.step()

        optimizer.original_optimizer.step = stepped

    seen = train({}, alter=shrink, steps=12)
    assert seen.watch is not None
    (training,) = seen.watch.trainings
    assert len(training._stated) == 12
    assert all(0.9 * said < used <= said for said, used in training._stated.items())
    assert not training.process.refuted


def test_what_cannot_be_audited_is_said() -> None:
    adaptive = {
        "clipping": "adaptive", "target_unclipped_quantile": 0.5, "clipbound_learning_rate": 0.2,
        "max_clipbound": 10.0, "min_clipbound": 0.1, "unclipped_num_std": 10.0,
    }  # fmt: skip
    without, seen = train(**adaptive), train({}, **adaptive)
    assert torch.equal(without.weights, seen.weights)
    assert seen.watch is not None
    assert seen.watch.verdict.outcome == "inconclusive"
    assert "adaptive clipping" in seen.watch.verdict.reason


def test_canaries_of_a_model_that_is_clipped_by_layer_would_be_weak() -> None:
    watch = train({"place": "model"}, **KINDS["by layer"]).watch
    assert watch is not None
    assert "clipping by layer" in watch.verdict.reason


class OwnStep(DPOptimizer):
    """It leaves noise for later."""

    def add_noise(self) -> None:
        for p in self.params:
            p.grad = p.summed_grad.clone()

    def step(self, closure: Any = None) -> Any:
        self.pre_step()
        for p in self.params:
            p.grad += torch.randn_like(p) * self.noise_multiplier * self.max_grad_norm / self.expected_batch_size
        return self.original_optimizer.step()


class OwnState(DPOptimizer):
    """Noise with a memory, which a second call would change."""

    def add_noise(self) -> None:
        super().add_noise()
        self.memory = [p.grad.clone() for p in self.params]


class Stateless(DPOptimizer):
    def add_noise(self) -> None:
        self.noise_multiplier, stated = self.noise_multiplier / 2, self.noise_multiplier
        super().add_noise()
        self.noise_multiplier = stated


@pytest.mark.parametrize(
    ("kind", "outcome", "words"),
    [
        (OwnStep, "inconclusive", "OwnStep.step is the script's own"),
        (OwnState, "consistent", "(memory)"),
        (Stateless, "violated", "noise is broken"),
    ],
)
def test_optimizers_of_the_scripts_own(kind: type, outcome: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opacus.privacy_engine.get_optimizer_class", lambda **_: kind)
    without, seen = train(), train({})
    assert torch.equal(without.weights, seen.weights)
    assert seen.watch is not None
    assert seen.watch.verdict.outcome == outcome
    assert words in seen.watch.verdict.reason + seen.watch.trainings[0].not_audited  # the noise itself was seen


@pytest.mark.parametrize("place", ["extra", "model"])
def test_a_failure_of_ours_never_reaches_the_training(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("out of luck")

    name = "privatizer.scores_of_a_step" if place == "extra" else "model.canary_norm"
    monkeypatch.setattr(f"epsilometer.watching.frameworks.opacus.{name}", broken)
    without, seen = train(), train({"place": place})
    assert torch.equal(without.weights, seen.weights)
    assert seen.watch is not None
    assert "out of luck" in seen.watch.trainings[0].not_audited
    assert seen.watch.verdict.outcome == "consistent"  # without canaries: the noise itself was seen


def test_every_call_of_make_private_has_a_verdict_of_its_own() -> None:
    seen = train({})
    assert seen.watch is not None
    model = torch.nn.Linear(4, 2)
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(40, 4)), batch_size=10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen.engine.make_private(
        module=model, optimizer=optimizer, data_loader=data, noise_multiplier=SIGMA, max_grad_norm=1.0
    )
    assert [one["steps"] for one in seen.watch.result()] == [6, 0]
    assert "no step was seen" in seen.watch.verdict.reason


def test_no_noise_promises_nothing() -> None:
    watch = train({}, noise_multiplier=0.0).watch
    assert watch is not None
    assert watch.verdict.outcome == "inconclusive"
    assert "promises nothing" in watch.verdict.reason


def test_random_numbers_apart_are_others_each_time_and_leave_no_trace() -> None:
    draw, device = np.random.default_rng(0), torch.device("cpu")
    torch.manual_seed(3)
    expected = torch.normal(0.0, 1.0, (5,))
    torch.manual_seed(3)
    seen = []
    for _ in range(2):
        with apart(device, None, draw):
            seen.append(torch.normal(0.0, 1.0, (5,)))
    assert torch.equal(torch.normal(0.0, 1.0, (5,)), expected)
    assert not torch.equal(seen[0], seen[1])
    assert not torch.equal(seen[0], expected)


def test_mistakes_are_said() -> None:
    with pytest.raises(InvalidInput, match=r"an opacus\.PrivacyEngine"):
        epsilometer.opacus.watch("engine")
    engine = type("Engine", (), {"make_private": lambda _: None})()
    with pytest.raises(InvalidInput, match="did you mean 'model'"):
        epsilometer.opacus.watch(engine, place="modle")
    with pytest.raises(InvalidInput, match="nothing was made private"):
        _ = epsilometer.opacus.watch(engine, quiet=True).verdict


def test_a_failed_check_is_in_the_verdict() -> None:
    """Batches that are shuffled, say: what is filed must not look like a pass, whatever the noise."""
    watch = train({}, steps=20).watch
    assert watch is not None
    (seen,) = watch.trainings
    limit = Check("nonfinite-record", Status.FAILED, "as every Opacus does", Statement.CLIPPING)
    seen.checks += [limit]
    assert seen.verdict().outcome.value == "consistent"
    seen.checks += [Check("sampler", Status.FAILED, "shuffled", Statement.SAMPLING, Basis.HINT)]
    assert seen.verdict().outcome.value == "inconclusive"
    assert "sampling is untested (sampler: shuffled)" in seen.verdict().reason
    seen.checks += [Check("sample-rate", Status.FAILED, "too many", Statement.SAMPLING, Basis.TEST)]
    assert seen.verdict().outcome.value == "violated"


@pytest.mark.full
@pytest.mark.parametrize("kind", ["hooks", "ghost", "virtual", "virtual ghost"])
@pytest.mark.parametrize(("scale", "within"), [(0.5, 10), (0.8, 60)])
def test_faults_are_found_early(kind: str, scale: float, within: int, monkeypatch: pytest.MonkeyPatch) -> None:
    scaled(scale, monkeypatch)
    found = [train({"seed": seed}, seed=seed, steps=within, **KINDS[kind]).watch for seed in range(20)]
    steps = [watch.trainings[0].process.refuted_at or np.inf for watch in found if watch is not None]
    assert statistics.median(steps) <= within / 2


@pytest.mark.full
@pytest.mark.parametrize("kind", ["hooks", "ghost", "virtual", "virtual ghost"])
def test_the_stated_noise_is_not_accused(kind: str) -> None:
    """100 trainings of 60 steps at 0.95 confidence: if 5 % were accused, over 10 would be with probability .0115."""
    watches = [train({"seed": seed}, seed=seed, steps=60, **KINDS[kind]).watch for seed in range(100)]
    assert sum(watch is not None and watch.trainings[0].process.refuted for watch in watches) <= 10


def ended(watch: Any) -> Any:
    """As at the end of its process, where the accountant's history is read."""
    watch.finish()
    (training,) = watch.trainings
    return training


def test_epsilon_of_the_training_stands_beside_the_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Right noise: below the promise, and not far; half of it: above, and a failed premise: none."""
    right = ended(train({"delta": 1e-4}, steps=20).watch).epsilon()
    assert right.upper.epsilon == pytest.approx(account(DpSgd(0.25, SIGMA, 20), 1e-4).epsilon)
    assert 0.5 * right.upper.epsilon < right.lower.epsilon < right.upper.epsilon
    assert (right.lower.kind, right.strength.kind) == (Kind.FAMILY, Kind.CERTIFIED)
    assert 0.6 / SIGMA < right.strength.mu < 1 / SIGMA
    assert right.lower.epsilon == pytest.approx(
        epsilon_floor(DpSgd(0.25, 1 / right.strength.mu, 20), 1e-4, Relation.ADD_REMOVE)
    )
    shuffled = ended(train({}, steps=20, poisson_sampling=False).watch)
    assert shuffled.epsilon().lower is None
    assert "violated: sampling is broken (by sampler)" in shuffled.headline()
    assert shuffled.epsilon().strength is not None  # of a step it says as much
    scaled(0.5, monkeypatch)
    half = ended(train({}, steps=20).watch)
    assert half.epsilon().lower.epsilon > 1.5 * half.epsilon().upper.epsilon
    assert f"ε ≥ {down(half.epsilon().lower.epsilon)} at δ = 1e-05" in half.headline()


def test_epsilon_of_steps_of_several_kinds_is_a_lower_bound() -> None:
    """Never more than what the steps leak that have the least noise and the largest rate."""

    def found(history: list[list[float]], factor: float = 1.0) -> Any:
        return epsilon_of_training(history, factor, noise_multiplier=2.0, steps=40, scores=1, delta=1e-5, sure=0.95)

    mixed = found([[2.0, 0.1, 20], [1.0, 0.2, 20]])
    alone = account(DpSgd(0.2, 1.0, 20), 1e-5).epsilon
    assert mixed.lower.epsilon <= account(DpSgd(0.1, 2.0, 40), 1e-5).epsilon < alone < mixed.upper.epsilon
    assert mixed.upper.accountant == "rdp"
    for history, factor, why in (
        ([], 1.0, "no accountant's history"),
        ([[2.0, 0.1, 60]], 1.0, "60 steps are accounted, and 40 were seen"),
        ([[2.0, 0.1, 40]], np.inf, "too few steps"),
        ([[0.0, 0.1, 40]], 1.0, "noise multiplier of 0"),
        ([[2.0, 7.0, 40]], 1.0, "makes no sense"),
    ):
        nothing = found(history, factor)
        assert nothing.lower is None
        assert str(nothing).startswith("ε: not measured, because")
        assert why in str(nothing)


@pytest.mark.parametrize(("place", "outcome"), [("extra", "inconclusive"), ("model", "consistent")])
def test_noise_that_no_check_can_follow_is_no_pass(place: str, outcome: str) -> None:
    """A script's own add_noise may leave a layer out, which canaries on a parameter of their own cannot see."""
    watch = train({"place": place}, steps=20).watch
    assert watch is not None
    (seen,) = watch.trainings
    why = Check("noise-scale", Status.NOT_APPLICABLE, "its add_noise was replaced", Statement.NOISE)
    seen.checks = [why if one.name == "noise-scale" else one for one in seen.checks]
    assert seen.verdict().outcome.value == outcome
    if place == "extra":
        expected = "noise is untested (noise-scale: its add_noise was replaced); next: --canaries model"
        assert expected in seen.verdict().reason


@pytest.mark.parametrize(("said", "delta"), [({}, 1e-3), ({"delta": 1e-6}, 1e-6)])
def test_the_target_delta_of_a_script_is_that_of_its_epsilon(said: dict[str, float], delta: float) -> None:
    engine = PrivacyEngine(accountant="rdp")
    audit = epsilometer.opacus.watch(engine, quiet=True, **said)
    data = TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,)))

    def made(make: Any, **given: Any) -> None:
        model = torch.nn.Linear(4, 2)
        optimizer, loader = torch.optim.SGD(model.parameters(), lr=0.1), DataLoader(data, batch_size=16)
        make(module=model, optimizer=optimizer, data_loader=loader, max_grad_norm=1.0, **given)

    made(engine.make_private_with_epsilon, target_epsilon=4.0, target_delta=1e-3, epochs=2)
    made(engine.make_private, noise_multiplier=1.0)  # of another training, which was given no target
    targeted, other = audit.trainings
    assert (targeted.delta, other.delta) == (delta, said.get("delta", 1e-5))
    assert targeted.made.settings["target_epsilon"] == 4.0


def test_what_to_quote(monkeypatch: pytest.MonkeyPatch) -> None:
    right = train({}, steps=20).watch
    assert right is not None
    right.finish()
    (seen,) = right.trainings
    assert seen.quote().startswith(
        "20 steps do not refute the stated noise multiplier 1.386: the noise is at most 1.13 ×"
    )
    assert "what is accounted promises ε ≤ " in seen.quote()
    scaled(0.5, monkeypatch)
    half = train({}, steps=20).watch
    assert half is not None
    assert half.trainings[0].quote().startswith("broken: noise at step ")
    assert half.trainings[0].to_dict()["quote"] == half.trainings[0].quote()
