"""Each check fails on a training that has its fault; `test_right` and twins here show that it passes without."""

import re
from typing import Any

import pytest
import torch

from epsilometer.watching.checks.catalogue import judge
from epsilometer.watching.checks.names import NAMES

ALWAYS = {"nonfinite-record"}  # of Opacus up to 1.6.0


def only(found: Any, name: str) -> str:
    """The reason, if this check fails and no other one does."""
    assert found.failed - ALWAYS == {name}, {k: found.reason(k) for k in found.failed}
    assert "; expected " in found.reason(name)
    return str(found.reason(name))


# Batches


def test_shuffled_batches(trained: Any) -> None:
    reason = only(trained(poisson_sampling=False), "sampler")
    assert reason.startswith("poisson_sampling=False")


def over_the_original_loader(made: Any, epochs: int) -> None:
    for _ in range(epochs):
        for x, y in made.original_loader:
            made.optimizer.zero_grad()
            made.criterion(made.module(x), y).backward()
            made.optimizer.step()


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_the_original_loader(trained: Any, mode: str) -> None:
    found = trained(loop=over_the_original_loader, grad_sample_mode=mode)
    assert found.failed - ALWAYS == {"sampler", "batches"}
    reason = found.reason("sampler")
    assert reason.startswith("30 of 33 batches have exactly 10 records")


def test_too_few_steps_to_tell(trained: Any) -> None:
    def once(made: Any, _: int) -> None:
        x, y = next(iter(made.original_loader))
        made.criterion(made.module(x), y).backward()
        made.optimizer.step()

    found = trained(loop=once)
    assert found.status("sampler") == "not applicable"
    assert "too few" in found.reason("sampler")


def test_a_loader_that_samples_more(trained: Any) -> None:
    def change(made: Any) -> None:
        from opacus.data_loader import DPDataLoader

        made.loader = DPDataLoader(made.loader.dataset, sample_rate=0.2)

    reason = only(trained(change, epochs=6), "sample-rate")
    assert "expected 9.455" in reason


def test_less_than_accounted_is_no_harm(trained: Any) -> None:
    def change(made: Any) -> None:
        from opacus.data_loader import DPDataLoader

        made.loader = DPDataLoader(made.loader.dataset, sample_rate=0.04)

    assert trained(change).failed == ALWAYS


def loop_over_batches(made: Any, epochs: int, least: int) -> None:
    for _ in range(epochs):
        for x, y in made.loader:
            if len(x) < least:
                continue
            made.module.zero_grad()
            made.optimizer.zero_grad()
            made.criterion(made.module(x), y).backward()
            made.optimizer.step()


def test_empty_batches(trained: Any) -> None:
    skipping = trained(batch=1, epochs=1, loop=lambda made, epochs: loop_over_batches(made, epochs, 1))
    assert skipping.failed - ALWAYS == {"empty-batches", "size-dependence"}  # the sample rate is 1/104
    assert skipping.reason("empty-batches").startswith("no empty batch in ")
    taking = trained(batch=1, epochs=1)
    assert taking.status("empty-batches") == "passed"
    assert taking.failed - ALWAYS == {"size-dependence"}


# Accounting


def test_a_hook_in_the_accountants_place(trained: Any) -> None:
    reason = only(trained(lambda made: made.optimizer.attach_step_hook(lambda _: None)), "steps")
    assert reason.startswith("0 steps accounted; expected 33")

    def change(made: Any) -> None:
        former = made.optimizer.step_hook
        made.optimizer.attach_step_hook(lambda optimizer: [former(optimizer), print(end="")])

    assert trained(change).failed == ALWAYS


def test_a_history_that_is_cut(trained: Any) -> None:
    def change(made: Any) -> None:
        step = made.engine.accountant.step

        def forgetful(**given: Any) -> None:
            step(**given)
            made.engine.accountant.history = [(1.1, 1 / 11, 1)]

        made.engine.accountant.step = forgetful

    only(trained(change), "steps")


def test_adaptive_clipping_with_the_wrong_multiplier(trained: Any) -> None:
    options = {
        "clipping": "adaptive", "target_unclipped_quantile": 0.5, "clipbound_learning_rate": 0.2, "max_clipbound": 10.0,
        "min_clipbound": 0.01, "unclipped_num_std": 1.0,
    }  # fmt: skip

    def change(made: Any) -> None:  # as Opacus up to 1.5.4 did
        made.optimizer.noise_multiplier = (1.1**-2 - 2.0**-2) ** -0.5

    reason = only(trained(change, **options), "multiplier")
    assert "noise multiplier 1.317 accounted" in reason


def test_an_approximate_accountant(trained: Any) -> None:
    only(trained(accountant="gdp"), "accountant")
    assert trained(accountant="rdp").failed == ALWAYS


# Noise


def noise_changed(monkeypatch: pytest.MonkeyPatch, change: Any) -> None:
    """`change` gets the noise, its number among all of the training, and gives another."""
    from opacus.optimizers import optimizer, optimizer_fast_gradient_clipping

    original, count = optimizer._generate_noise, [0]

    def generate(std: float, reference: torch.Tensor, **given: Any) -> torch.Tensor:
        count[0] += 1
        return change(original(std=std, reference=reference, **given), count[0] - 1, std)

    monkeypatch.setattr(optimizer, "_generate_noise", generate)
    monkeypatch.setattr(optimizer_fast_gradient_clipping, "_generate_noise", generate)


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_a_bias_with_less_noise(trained: Any, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    noise_changed(monkeypatch, lambda noise, i, _: noise * (0.7 if i % 4 == 3 else 1))
    reason = only(trained(grad_sample_mode=mode), "noise-scale")
    assert reason.startswith("2.bias has noise × 0.")
    assert "(1 parameter)" in reason


def test_a_bias_without_noise(trained: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    noise_changed(monkeypatch, lambda noise, i, _: noise * (i % 4 != 1))
    assert only(trained(), "noise-scale").startswith("0.bias has no noise in 33 of 33 steps")


def test_one_step_with_a_tenth_of_the_noise(trained: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    noise_changed(monkeypatch, lambda noise, i, _: noise * (0.1 if i == 40 else 1))
    assert "× 0.104 in one" in only(trained(), "noise-scale")


def test_more_noise_is_no_harm(trained: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    noise_changed(monkeypatch, lambda noise, *_: noise * 1.5)
    found = trained()
    assert found.failed == ALWAYS
    assert "more than is accounted" in found.reason("noise-scale")


def test_no_noise_promises_nothing(trained: Any) -> None:
    found = trained(noise_multiplier=0.0)
    assert found.status("noise-scale") == found.status("independent-noise") == "not applicable"


def test_one_seed_for_all_layers(trained: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def same(noise: torch.Tensor, i: int, std: float) -> torch.Tensor:
        return torch.normal(0.0, std, noise.shape, generator=torch.Generator().manual_seed(10**9 + i // 4))

    noise_changed(monkeypatch, same)
    assert "0.weight and 2.weight (correlation 1.000)" in only(trained(), "independent-noise")


@pytest.mark.parametrize("period", [1, 11], ids=["step", "epoch"])
def test_one_seed_for_all_steps(trained: Any, monkeypatch: pytest.MonkeyPatch, period: int) -> None:
    def same(noise: torch.Tensor, i: int, std: float) -> torch.Tensor:
        own = torch.Generator().manual_seed(10**9 + i % (4 * period))
        return torch.normal(0.0, std, noise.shape, generator=own)

    noise_changed(monkeypatch, same)
    found = trained()
    assert found.failed >= {"independent-noise"}
    first, second = re.search(r"all parameters in steps (\d+) and (\d+) ", found.reason("independent-noise")).groups()
    assert (int(second) - int(first)) % period == 0


@pytest.mark.parametrize("outputs", [16, 1])
def test_one_bias_repeats_its_noise(trained: Any, monkeypatch: pytest.MonkeyPatch, outputs: int) -> None:
    def same(noise: torch.Tensor, i: int, std: float) -> torch.Tensor:
        if i % 4 != 1:
            return noise
        return torch.normal(0.0, std, noise.shape, generator=torch.Generator().manual_seed(10**9 + 3))

    def model() -> torch.nn.Module:
        return torch.nn.Sequential(torch.nn.Linear(20, outputs), torch.nn.ReLU(), torch.nn.Linear(outputs, 16))

    noise_changed(monkeypatch, same)
    found = trained(model=model, epochs=6)
    assert "0.bias " in found.reason("independent-noise")
    assert found.status("independent-noise") == "failed"


def test_noise_that_is_taken_back_in_part(trained: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    last: dict[int, torch.Tensor] = {}

    def correlated(noise: torch.Tensor, i: int, std: float) -> torch.Tensor:
        former = last.get(i % 4)
        last[i % 4] = noise
        return noise if former is None else (noise - 0.9 * former) / (1 + 0.9**2) ** 0.5

    noise_changed(monkeypatch, correlated)
    assert "all parameters and 1 step before" in only(trained(), "independent-noise")


# Clipping


def test_clipping_that_forgets_biases(trained: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from opacus.optimizers import DPOptimizer

    def clip(self: Any) -> None:
        norms = torch.stack([g.reshape(len(g), -1).norm(dim=1) for g in self.grad_samples if g.dim() > 2], 1).norm(
            dim=1
        )
        factor = (self.max_grad_norm / (norms + 1e-6)).clamp(max=1)
        for p, g in zip(self.params, self.grad_samples, strict=True):
            p.summed_grad = torch.einsum("i,i...", factor, g)

    monkeypatch.setattr(DPOptimizer, "clip_and_accumulate", clip)
    found = trained()
    assert found.failed - ALWAYS == {"huge-record", "record-shares"}  # made up and real ones
    reason = found.reason("huge-record")
    assert reason.startswith("a record with gradient norm 500 adds 500; expected at most C = 0.5")


def test_clipping_of_single_parameters_only(trained: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from opacus.optimizers import DPOptimizer

    def clip(self: Any) -> None:
        for p, g in zip(self.params, self.grad_samples, strict=True):
            factor = (self.max_grad_norm / (g.reshape(len(g), -1).norm(dim=1) + 1e-6)).clamp(max=1)
            p.summed_grad = torch.einsum("i,i...", factor, g)

    monkeypatch.setattr(DPOptimizer, "clip_and_accumulate", clip)
    assert " adds 1; expected at most C = 0.5" in only(trained(), "huge-record")


def test_ghost_clipping_that_does_not_clip(trained: Any) -> None:
    def change(made: Any) -> None:
        made.module.get_clipping_coef = lambda: torch.ones_like(made.module.get_norm_sample())

    only(trained(change, grad_sample_mode="ghost"), "huge-record")


def test_ghost_clipping_at_another_norm(trained: Any) -> None:
    def change(made: Any) -> None:  # as Opacus 1.5 to 1.5.2 did
        made.module.max_grad_norm = 1.0

    found = trained(change, grad_sample_mode="ghost")
    assert found.failed - ALWAYS == {"ghost-clip-norm", "huge-record"}
    assert found.reason("ghost-clip-norm").startswith("records are clipped at 1; expected C = 0.5")
    assert trained(grad_sample_mode="ghost").status("ghost-clip-norm") == "passed"


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_a_layers_norms_too_small(trained: Any, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    from opacus.grad_sample import GradSampleModule, GradSampleModuleFastGradientClipping

    kind = GradSampleModule.GRAD_SAMPLERS if mode == "hooks" else GradSampleModuleFastGradientClipping.NORM_SAMPLERS
    original = kind[torch.nn.Linear]

    def small(layer: Any, activations: Any, backprops: Any) -> Any:
        return {p: value / (3 if p.dim() == 1 else 1) for p, value in original(layer, activations, backprops).items()}

    monkeypatch.setitem(kind, torch.nn.Linear, small)
    reason = only(trained(grad_sample_mode=mode), "record-norms")
    assert reason.startswith("0.bias (Linear with 2-d input): norms of records are 3 times too small")


def test_records_that_are_no_numbers(trained: Any, right: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from opacus.optimizers import DPOptimizer

    assert right.reason("nonfinite-record").startswith("one record with NaN or infinity")
    original = DPOptimizer.clip_and_accumulate

    def clip(self: Any) -> None:
        good = torch.stack([g.reshape(len(g), -1).isfinite().all(1) for g in self.grad_samples]).all(0)
        for p in self.params:
            p.grad_sample = torch.where(good.reshape(-1, *(1 for _ in p.shape)), p.grad_sample, 0.0)
        original(self)

    monkeypatch.setattr(DPOptimizer, "clip_and_accumulate", clip)
    assert not trained().failed


# Data and model


def test_settings_that_follow_from_the_number_of_records(trained: Any) -> None:
    own = torch.Generator().manual_seed(5)
    data = torch.utils.data.TensorDataset(torch.randn(100, 20, generator=own), torch.randint(16, (100,), generator=own))
    reason = only(trained(data=data), "size-dependence")
    assert reason.startswith("with 101 records instead of 100 the sample rate would be 1/11 instead of 1/10")
    near = torch.utils.data.TensorDataset(torch.randn(109, 20, generator=own), torch.randint(16, (109,), generator=own))
    reason = only(trained(data=near), "size-dependence")
    assert reason.startswith("with 110 records instead of 109 sums would be divided by 10 instead of 9")

    def change(made: Any) -> None:
        made.optimizer.expected_batch_size = 12

    assert trained(change, data=near).failed == ALWAYS


class Centred(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x - x.mean(0, keepdim=True) if self.training else x


def test_statistics_over_the_batch(trained: Any) -> None:
    def model() -> torch.nn.Module:
        return torch.nn.Sequential(torch.nn.Linear(20, 16), Centred(), torch.nn.Linear(16, 16))

    def loop(made: Any, epochs: int) -> None:
        loop_over_batches(made, epochs, 0)
        made.module.eval()

    found = trained(model=model, loop=loop)
    assert "with the other records of the batch" in only(found, "mixing")
    assert not any(module.training for module in found.made.module.modules())  # as the script left it


class StandardisedIfLarge(torch.nn.Module):
    """Batch statistics by hand, behind a guard that a probe of two records does not pass."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training or len(x) <= 2:
            return x
        return (x - x.mean(0, keepdim=True)) / (x.std(0, keepdim=True) + 1e-5)


def test_statistics_over_batches_of_more_than_two_records(trained: Any) -> None:
    def model() -> torch.nn.Module:
        return torch.nn.Sequential(torch.nn.Linear(20, 16), StandardisedIfLarge(), torch.nn.Linear(16, 16))

    assert "with the other records of the batch" in only(trained(model=model), "mixing")


def test_batch_normalisation(trained: Any) -> None:
    def change(made: Any) -> None:  # Opacus refuses it, but only in make_private
        made.module._module[1] = torch.nn.BatchNorm1d(16, affine=False)

    def loop(made: Any, epochs: int) -> None:
        loop_over_batches(made, epochs, 2)
        made.module.eval()

    found = trained(change, loop=loop)
    assert found.failed - ALWAYS == {"mixing"}
    assert found.reason("mixing").startswith("batch normalisation in 1;")


class Remembers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(20))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training and len(x):
            self.mean = 0.9 * self.mean + x.detach().mean(0)
        return x


def test_buffers_that_records_change(trained: Any) -> None:
    found = trained(model=lambda: torch.nn.Sequential(Remembers(), torch.nn.Linear(20, 16)))
    assert only(found, "buffers").startswith("buffer 0.mean changed")


# Weights


def test_weights_that_never_move(trained: Any) -> None:
    found = trained(optimizer=lambda model: torch.optim.SGD(model.parameters(), lr=0.0))
    assert only(found, "weights-moved").startswith("none of 4 parameters moved in 33 private steps")


def test_steps_of_the_original_optimizer(trained: Any) -> None:
    def loop(made: Any, _: int) -> None:
        for x, y in made.loader:
            made.optimizer.zero_grad()
            made.criterion(made.module(x), y).backward()
            made.optimizer.original_optimizer.step()

    found = trained(loop=loop)
    assert only(found, "only-private-steps").startswith("11 of 11 steps went to the original optimizer")
    assert found.status("noise-scale") == "not applicable"


def test_a_second_optimizer(trained: Any) -> None:
    def loop(made: Any, epochs: int) -> None:
        second = torch.optim.Adam([made.module._module[2].bias], lr=0.01)
        for _ in range(epochs):
            for x, y in made.loader:
                made.module.zero_grad()
                made.optimizer.zero_grad()
                made.criterion(made.module(x), y).backward()
                made.optimizer.step()
                second.step()

    def first(model: Any) -> Any:
        return torch.optim.SGD([model[0].weight, model[0].bias, model[2].weight], lr=0.1)

    found = trained(loop=loop, optimizer=first)
    assert only(found, "only-private-steps").startswith("another optimizer (Adam) took 33 steps")
    idle = trained(optimizer=first, loop=lambda made, epochs: loop_over_batches(made, epochs, 0))
    assert idle.failed == ALWAYS
    assert "1 parameters are trainable, not in the optimizer" in idle.reason("only-private-steps")


def test_weights_moved_by_hand(trained: Any) -> None:
    def loop(made: Any, epochs: int) -> None:
        loop_over_batches(made, epochs, 0)
        with torch.no_grad():
            made.module._module[2].bias -= 0.1

    def first(model: Any) -> Any:
        return torch.optim.SGD([model[0].weight, model[0].bias, model[2].weight], lr=0.1)

    assert only(trained(loop=loop, optimizer=first), "only-private-steps").startswith("2.bias moved")


def test_other_models_have_optimizers_of_their_own(trained: Any) -> None:
    def change(_: Any) -> None:
        other = torch.nn.Linear(2, 1)
        second = torch.optim.SGD(other.parameters(), lr=0.1)
        other(torch.ones(1, 2)).sum().backward()
        second.step()

    assert trained(change).failed == ALWAYS


def test_a_second_private_training_of_the_same_model(trained: Any) -> None:
    """Steps of both are private: neither accuses the other, with a new optimizer or with the old one."""

    def again(new: bool) -> Any:
        def loop(made: Any, epochs: int) -> None:
            loop_over_batches(made, epochs, 0)
            module = made.module._module
            made.module.remove_hooks()
            optimizer = torch.optim.Adam(module.parameters()) if new else made.optimizer
            made.module, made.optimizer, made.loader = made.engine.make_private(
                module=module, optimizer=optimizer, data_loader=made.original_loader, noise_multiplier=1.1,
                max_grad_norm=0.5,
            )  # fmt: skip
            loop_over_batches(made, epochs, 0)

        return loop

    for new in (False, True):
        found = trained(loop=again(new))
        every = [judge(one.facts()) for one in found.inspections]
        answers = [check for checks in every for check in checks if check.name == "only-private-steps"]
        assert [check.status.value for check in answers] == ["passed", "passed"], answers
        assert answers[0].reason.startswith("33 private steps and no others")


def test_full_batches(trained: Any) -> None:
    found = trained(batch=104, epochs=8)
    assert found.status("sampler") == "passed"


def test_coarse_numbers_are_not_weighed(trained: Any) -> None:
    own = torch.Generator().manual_seed(5)
    data = torch.utils.data.TensorDataset(
        torch.randn(104, 20, generator=own).bfloat16(), torch.randint(16, (104,), generator=own)
    )
    found = trained(model=lambda: torch.nn.Sequential(torch.nn.Linear(20, 16)).bfloat16(), data=data)
    assert found.status("noise-scale") == "not applicable"
    assert "bfloat16" in found.reason("noise-scale")


@pytest.mark.full
def test_many_trainings_do_not_stay_in_memory(trained: Any) -> None:
    import gc
    import weakref

    first = trained(epochs=1)
    answers, module = {name: check.status for name, check in first.checks.items()}, weakref.ref(first.made.module)
    inspection, first.made = first.inspections[0], None
    del first
    for _ in range(8):
        trained(epochs=1)
    gc.collect()
    assert module() is None
    assert {check.name: check.status for check in judge(inspection.facts())} == answers
    assert inspection.facts().seeds.first


def test_each_check_is_shown_to_fail_here() -> None:
    from pathlib import Path

    here = Path(__file__).parent
    names = ("faults", "repetition", "target", "shares", "batches", "stepping")
    others = [*(here / f"test_{name}.py" for name in names), *(here.parent / "replay").glob("test_*.py")]
    text = "".join(path.read_text() for path in others)
    assert [name for name in NAMES if f'"{name}"' not in text] == []


def test_less_noise_from_the_start_is_accounted_and_yet_not_what_was_asked(trained: Any) -> None:
    def change(made: Any) -> None:
        made.optimizer.noise_multiplier /= 2

    reason = only(trained(change), "multiplier")
    assert "noise multiplier 0.55 accounted from the first step, 1.1 asked" in reason


def test_noise_of_a_scripts_own_that_checks_cannot_see_accuses_nobody(trained: Any) -> None:
    """An add_noise on the optimizer itself: its steps are private, whoever adds the noise."""

    def change(made: Any) -> None:
        def add_noise() -> None:
            for p in made.optimizer.params:
                scale = made.optimizer.noise_multiplier * made.optimizer.max_grad_norm
                p.grad = p.summed_grad + torch.randn_like(p) * scale

        made.optimizer.add_noise = add_noise

    found = trained(change)
    assert not found.failed
    assert "its add_noise was replaced" in found.reason("only-private-steps")


def by_hand(change: Any) -> Any:
    """The two halves of `step`, and what a script does between them."""

    def loop(made: Any, epochs: int) -> None:
        for _ in range(epochs):
            for x, y in made.loader:
                made.optimizer.zero_grad()
                made.criterion(made.module(x), y).backward()
                if made.optimizer.pre_step():
                    change(made)
                    made.optimizer.original_optimizer.step()

    return loop


def test_a_gradient_that_loses_its_noise_before_the_step(trained: Any) -> None:
    def clean(made: Any) -> None:
        last = made.optimizer.params[-1]
        last.grad = last.summed_grad.view_as(last) / made.optimizer.expected_batch_size

    assert only(trained(loop=by_hand(clean)), "noise-kept").startswith("the gradient of 2.bias was another one in 33 ")


def test_gradients_that_are_scaled_after_the_noise_are_no_harm(trained: Any) -> None:
    def clipped(made: Any) -> None:
        torch.nn.utils.clip_grad_norm_(made.module.parameters(), 0.01)

    found = trained(loop=by_hand(clipped))
    assert not found.failed - ALWAYS
    assert found.status("noise-kept") == "passed"


def test_noise_drawn_for_less_than_is_accounted(trained: Any) -> None:
    """The multiplier is lowered while noise is drawn, so that it fits the noise at that moment."""

    def change(made: Any) -> None:
        usual = made.optimizer.add_noise

        def add_noise() -> None:
            made.optimizer.noise_multiplier /= 2
            usual()
            made.optimizer.noise_multiplier *= 2

        made.optimizer.add_noise = add_noise

    assert "drawn with × 0.5 of the noise multiplier" in only(trained(change), "noise-scale")
