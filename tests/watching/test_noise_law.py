"""The law of the noise, on real Opacus trainings: wrong scales, tails, grids and repeats are found."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from opacus.optimizers import AdaClipDPOptimizer, DPOptimizer
from scipy import stats
from trainings import SIGMA, train

from epsilometer.noise_sample import Counts, NoiseSample
from epsilometer.watching.frameworks.opacus.attach import watch_engine
from epsilometer.watching.monitor import JudgedTraining, Monitor
from epsilometer.watching.recording import MadePrivate, Parameters, Reader, Record, Started, StepNoise, decode, encode
from epsilometer.watching.settings import Settings
from epsilometer.watching.training import Trainings

pytestmark = pytest.mark.filterwarnings("ignore")
RECORDINGS = Path(__file__).parent / "recordings"


def noise_by(draw: Callable[[Any, torch.Tensor], torch.Tensor]) -> type:
    """An optimizer whose noise, in units of what is stated, is drawn by a function of place and sum."""

    class Drawn(DPOptimizer):  # type: ignore[misc]
        def add_noise(self) -> None:
            for place, p in enumerate(self.params):
                noise = draw(place, p.summed_grad) * self.noise_multiplier * self.max_grad_norm
                p.grad = (p.summed_grad + noise).view_as(p)

    return Drawn


def normal(scale: float) -> Callable[[Any, torch.Tensor], torch.Tensor]:
    return lambda _, total: scale * torch.randn_like(total)


def truncated(_: Any, total: torch.Tensor) -> torch.Tensor:
    """Cut off at two deviations, and brought back to variance 1."""
    low, high = stats.norm.cdf([-2, 2])
    uniform = torch.rand_like(total.double()) * (high - low) + low
    return (torch.special.ndtri(uniform) / stats.truncnorm(-2, 2).std()).to(total.dtype)


FAULTS = [
    (normal(0.5), 1, "all parameters: noise × 0.49"),
    (normal(0.9), 1, "all parameters: noise × 0.8"),
    (normal(0.98), 16, "all parameters: noise × 0.9"),
    (lambda place, total: torch.randn_like(total) * (place != 1), 1, "0.bias: noise × 0 "),
    (lambda place, total: torch.randn_like(total) * (0.5 if place == 3 else 1.0), 6, "2.bias: noise × 0."),
    (truncated, 16, "of it is beyond"),
    (lambda _, total: (torch.rand_like(total) - 0.5) * 12**0.5, 4, "of it is beyond"),
    (lambda _, total: torch.randn_like(total).bfloat16().to(total.dtype), 1, "lies on a grid"),
]  # fmt: skip


def watched_without_canaries(**given: Any) -> JudgedTraining:
    """As `inspect` watches it: noise is seen all the same."""
    monitor = Monitor()
    hooks = Trainings(monitor, Settings(canaries=0))
    train(before=lambda engine: watch_engine(engine, hooks), **given)
    hooks.finish()
    (found,) = monitor
    return found


@pytest.mark.parametrize(
    ("draw", "most", "said"),
    FAULTS,
    ids=["half", "nine tenths", "almost all", "a bias without", "half in a bias", "cut off", "uniform", "bfloat16"],
)
def test_a_wrong_law_is_refuted(draw: Any, most: int, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opacus.privacy_engine.get_optimizer_class", lambda **_: noise_by(draw))
    found = watched_without_canaries(steps=most)
    assert found.noise_law.steps == most
    assert found.noise_law.refuted_at is not None, str(found.noise_law.leading)
    assert said in str(found.noise_law.leading)
    assert found.law_may_differ == ""


@pytest.mark.parametrize("repeated", [(1, 0), (0, 1)], ids=["of layers", "of steps"])
def test_repeats_are_found_by_a_check_at_its_own_level(
    repeated: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0

    def draw(place: int, total: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += place == 0
        layers, steps = repeated
        own = torch.Generator().manual_seed(100 + (0 if steps else calls) + (0 if layers else 1000 * place))
        return torch.randn(total.shape, generator=own)

    monkeypatch.setattr("opacus.privacy_engine.get_optimizer_class", lambda **_: noise_by(draw))
    found = watched_without_canaries(steps=8)
    failed = {one.name: one.basis for one in found.checks if one.status == "failed"}
    assert failed.get("independent-noise") == "test", failed


def test_a_multiplier_that_is_less_only_while_noise_is_drawn() -> None:
    """What is stated is what is accounted."""

    def alter(optimizer: Any) -> None:
        original = optimizer.add_noise

        def add_noise() -> None:
            optimizer.noise_multiplier = 0.0
            original()
            optimizer.noise_multiplier = SIGMA

        optimizer.add_noise = add_noise

    found = watched_without_canaries(steps=2, alter=alter)
    assert found.noise_law.refuted_at == 1


def test_a_clip_norm_that_is_less_only_while_noise_is_drawn() -> None:
    def alter(optimizer: Any) -> None:
        original = optimizer.add_noise

        def add_noise() -> None:
            optimizer.max_grad_norm = 0.5
            original()

        optimizer.add_noise = add_noise

    assert watched_without_canaries(steps=2, alter=alter).noise_law.refuted_at == 1
    assert watched_without_canaries(steps=2, max_grad_norm=0.5).noise_law.refuted_at is None


RIGHT: dict[str, dict[str, Any]] = {
    "hooks": {},
    "canaries in the model": {"watched": {"place": "model"}},
    "ghost": {"grad_sample_mode": "ghost", "criterion": torch.nn.CrossEntropyLoss()},
    "virtual steps": {"physical": 20},
    "by layer": {"clipping": "per_layer", "max_grad_norm": [0.5] * 4},
    "sums": {"loss_reduction": "sum"},
    "shuffled": {"poisson_sampling": False},
    "a tiny clip norm": {"max_grad_norm": 1e-6},
    "a norm that squares to nothing in float32": {"max_grad_norm": 1e-25},
    "a huge clip norm": {"max_grad_norm": 1e6},
    "little noise": {"noise_multiplier": 1e-3},
    "noise below rounding": {"noise_multiplier": 1e-8},
    "much noise": {"noise_multiplier": 1e3},
}


@pytest.mark.parametrize("given", RIGHT.values(), ids=RIGHT.keys())
def test_right_noise_is_not_accused(given: dict[str, Any]) -> None:
    watch = train({"canaries": 20, **given.pop("watched", {})}, steps=25, **given).watch
    assert watch is not None
    (found,) = watch.trainings
    assert found.noise_law.steps == 25
    assert found.noise_law.seen
    assert found.noise_law.refuted_at is None, str(found.noise_law.leading)


@pytest.mark.parametrize("scale", [1.5, 30.0])
def test_more_noise_is_no_harm(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opacus.privacy_engine.get_optimizer_class", lambda **_: noise_by(normal(scale)))
    assert watched_without_canaries(steps=20).noise_law.refuted_at is None


def test_adaptive_clipping_has_a_law_of_its_own() -> None:
    settings = {
        "clipping": "adaptive", "target_unclipped_quantile": 0.5, "clipbound_learning_rate": 0.2,
        "max_clipbound": 10.0, "min_clipbound": 0.1, "unclipped_num_std": 10.0,
    }  # fmt: skip
    found = watched_without_canaries(steps=3, **settings)
    assert found.made.optimizer == AdaClipDPOptimizer.__name__
    assert (found.noise_law.steps, found.noise_law.seen) == (3, False)
    assert "adaptive clipping" in found.law_may_differ


def test_noise_of_another_place_makes_it_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it is added after `add_noise`, where nobody weighs it: right, and not to be accused."""

    class Later(DPOptimizer):  # type: ignore[misc]
        def add_noise(self) -> None:
            for p in self.params:
                p.grad = p.summed_grad.clone().view_as(p)

        def scale_grad(self) -> None:
            for p in self.params:
                p.grad += self.noise_multiplier * self.max_grad_norm * torch.randn_like(p.grad)
            super().scale_grad()

    monkeypatch.setattr("opacus.privacy_engine.get_optimizer_class", lambda **_: Later)
    found = watched_without_canaries(steps=3)
    assert found.noise_law.refuted_at == 1
    assert "elsewhere" in found.law_may_differ


def test_noise_is_seen_where_canaries_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []

    class Counting(DPOptimizer):  # type: ignore[misc]
        def add_noise(self) -> None:
            taken.append(1)
            super().add_noise()

    monkeypatch.setattr("opacus.privacy_engine.get_optimizer_class", lambda **_: Counting)
    watch = train({}, steps=4).watch
    assert watch is not None
    (found,) = watch.trainings
    assert "outside of the optimizer" in found.not_audited
    assert (found.process.steps, found.noise_law.steps, found.noise_law.seen) == (0, 4, True)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_types_of_numbers(dtype: torch.dtype) -> None:
    """Sums and noise in half precision, of any size against each other, are on the grids of their own type."""
    from epsilometer.watching.collect.drawn import NoisySum
    from epsilometer.watching.collect.noise import NoiseTally

    for size in (0.0, 1.0, 40.0, 3000.0):
        tally, law = NoiseTally(), Monitor()
        made = MadePrivate(1, "any", 1.0, 1.0, 0, "extra", {}, own_noise=True)
        law.take(Started(1, [], ""), "")
        training = law.take(made)
        assert training is not None
        torch.manual_seed(1)
        parameters = [torch.nn.Parameter(torch.zeros(n)) for n in (5, 300, 20_000)]
        for _ in range(15):
            sums = [(size * torch.rand(p.shape)).to(dtype) for p in parameters]
            noisy = [total + torch.randn(total.shape).to(dtype) for total in sums]
            tally.add(
                [NoisySum(p, str(n), s, z) for n, (p, s, z) in enumerate(zip(parameters, sums, noisy, strict=True))],
                1.0,
            )
            training.noise_law.add(tally.drawn.sample(1.0))
        assert training.noise_law.refuted_at is None, (size, str(training.noise_law.leading))


def test_coordinates_are_from_all_over_a_parameter() -> None:
    """Not by a stride that lines up with its shape: noise that misses whole columns is missing in what is looked at."""
    from epsilometer.watching.collect.drawn import DrawnNoise, NoisySum

    parameter, drawn = torch.nn.Parameter(torch.zeros(512, 512)), DrawnNoise()
    noise = torch.randn(512, 512)
    noise[:, 64:] = 0.0
    (part,) = drawn.keep([NoisySum(parameter, "weight", torch.zeros(512, 512), noise)], 1.0)
    assert len(part.noise) == 1024
    assert 0.08 < np.mean(part.noise != 0) < 0.17
    sample = drawn.sample(1.0)
    assert sample is not None
    assert sample.squares[0] == pytest.approx(float(noise.square().sum()), rel=1e-5)  # all of them
    assert drawn.sample(1.0) is None  # once a step


def test_recordings_hold_sums_and_counts_only() -> None:
    sample = NoiseSample(("a", "b"), (3, 0), (2.5, 0.0), Counts.of([0.3, -1.7, 5.0]))
    record = StepNoise.of(1, 1.1, ["b", "a"], sample)
    again = decode(encode(record))
    assert again == record
    assert isinstance(again, StepNoise)
    assert again.sample(["b", "a"]) == NoiseSample(("b", "a"), (0, 3), (0.0, 2.5), sample.counts)
    assert again.sample(["b"]) == NoiseSample(("b", "parameter 2"), (0, 3), (0.0, 2.5), sample.counts)
    assert decode(encode(Parameters(1, ["b", "a"]))) == Parameters(1, ["b", "a"])
    assert StepNoise.of(1, 1.1, [], None).sample([]) is None
    assert len(encode(record)) < 250


@pytest.mark.parametrize("what", [{"squares": [float("nan"), 1.0]}, {"beyond": [99] * 9}, {"on_grid": [1]}])
def test_counts_that_make_no_sense_count_for_nothing(what: dict[str, Any]) -> None:
    monitor = Monitor()
    training = monitor.take(MadePrivate(1, "any", 1.0, 1.0, 0, "extra", {}, own_noise=True))
    assert training is not None
    sizes: dict[str, Any] = {"sizes": [3, 4], "squares": [3.0, 4.0], "counted": 7, "fine": 0}
    monitor.take(StepNoise(1, 1.0, **{**sizes, **what}))
    assert training.noise_law.steps == 0
    assert training.noise_law.log_e_value <= 0.0


def test_old_recordings_show_noise_of_some_coordinates() -> None:
    monitor = Monitor()
    for record in Reader(RECORDINGS / "opacus-0.1.0.jsonl").new():
        monitor.take(record)
    (found,) = monitor
    assert found.noise_law.steps == found.process.steps == 8
    assert str(found.noise_law.leading) == "all parameters: noise × 0.519 of what is stated"  # it was half of it


class Highest(Monitor):
    """Remembers the largest e-value of the law, whatever its level is."""

    log_e_value = 0.0

    def take(self, record: Record, source: str = "") -> JudgedTraining | None:
        watched = super().take(record, source)
        self.log_e_value = max(self.log_e_value, watched.noise_law.log_e_value if watched else 0.0)
        return watched


@pytest.mark.full
def test_right_trainings_are_refuted_as_rarely_as_stated() -> None:
    """400 of 20 steps, at a whole α."""
    found = []
    for seed in range(400):
        monitor = Highest()
        hooks = Trainings(monitor, Settings(canaries=0))
        train(before=lambda engine, hooks=hooks: watch_engine(engine, hooks), steps=20, seed=seed)
        (training,) = monitor
        assert (training.noise_law.steps, training.noise_law.seen) == (20, True)
        found.append(monitor.log_e_value)
    refuted = sum(value >= np.log(20) for value in found)
    print(f"{refuted} of {len(found)} refuted at a whole α")
    assert refuted <= 400 * 0.05
    assert max(found) > 0.0  # some evidence, at least: it was looked at
