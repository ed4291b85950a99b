"""The divisor of a step, weights that are moved between two steps, and an optimizer that reads sums before noise."""

from typing import Any

import pytest
import torch

pytestmark = pytest.mark.filterwarnings("ignore")


def over(made: Any, epochs: int, before: Any = None, between: Any = None) -> None:
    for _ in range(epochs):
        for x, y in made.loader:
            made.optimizer.zero_grad()
            made.criterion(made.module(x), y).backward()
            if before:
                before(made, len(x))
            made.optimizer.step()
            if between:
                between(made)


def by_hand(made: Any, records: int) -> None:
    """`p.grad = noisy / len(batch)`."""
    made.optimizer.loss_reduction = "sum"
    made.divide = records


def divided_by_hand(made: Any, epochs: int) -> None:
    right = made.optimizer.scale_grad

    def scale_grad() -> None:
        right()
        for p in made.optimizer.params:
            p.grad /= max(made.divide, 1)

    made.optimizer.scale_grad = scale_grad
    over(made, epochs, by_hand)


def by_attribute(made: Any, records: int) -> None:
    made.optimizer.expected_batch_size = max(records, 1)


def by_rate(made: Any, records: int) -> None:
    made.optimizer.param_groups[0]["lr"] = 1.0 / max(records, 1)


@pytest.mark.parametrize(
    "loop",
    [
        divided_by_hand,
        lambda made, epochs: over(made, epochs, by_attribute),
        lambda made, epochs: over(made, epochs, by_rate),
    ],
    ids=["by-hand", "by-attribute", "by-learning-rate"],
)
def test_a_divisor_that_is_the_size_of_the_batch(trained: Any, loop: Any) -> None:
    found = trained(loop=loop)
    assert found.failed == {"divisor", "nonfinite-record"}, found.failed
    check = found.checks["divisor"]
    assert (check.statement.value, check.basis.value) == ("nothing else", "counterexample")


def scheduled(made: Any, _: int) -> None:
    made.optimizer.param_groups[0]["lr"] *= 0.97


def clipped_after_the_noise(made: Any, epochs: int) -> None:
    for _ in range(epochs):
        for x, y in made.loader:
            made.optimizer.zero_grad()
            made.criterion(made.module(x), y).backward()
            if made.optimizer.pre_step():
                torch.nn.utils.clip_grad_norm_(made.module.parameters(), 0.01)
                made.optimizer.original_optimizer.step()


@pytest.mark.parametrize(
    "loop",
    [
        over,
        lambda made, epochs: over(made, epochs, scheduled),
        clipped_after_the_noise,
    ],
    ids=["constant", "schedule", "clipped"],
)
def test_other_divisors_are_no_harm(trained: Any, loop: Any) -> None:
    assert trained(loop=loop).status("divisor") == "passed"


def test_virtual_steps_are_divided_by_one_number(trained: Any) -> None:
    from opacus.utils.batch_memory_manager import BatchMemoryManager

    def loop(made: Any, _: int) -> None:
        loader = made.loader
        with BatchMemoryManager(data_loader=loader, max_physical_batch_size=4, optimizer=made.optimizer) as made.loader:
            over(made, 3)

    assert trained(loop=loop).status("divisor") == "passed"


def decayed(made: Any) -> None:
    """By `.data`, which no counter of versions notices."""
    for p in made.module.parameters():
        p.data.mul_(0.99)


def test_weights_that_move_between_two_steps_are_a_hint(trained: Any) -> None:
    found = trained(loop=lambda made, epochs: over(made, epochs, between=decayed))
    check = found.checks["between-steps"]
    assert check.status == "failed"
    assert check.basis == "hint"
    assert check.reason.startswith("0.weight was moved between private steps 1 and 2")
    assert trained().reason("between-steps").startswith("weights rested between private steps (")


class FeedsMomentum(torch.optim.SGD):
    """Momentum of clipped sums, before noise."""

    def step(self, closure: Any = None) -> Any:
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                state["momentum"] = 0.9 * state.get("momentum", 0.0) + getattr(p, "summed_grad", p.grad)
        return super().step(closure)


def test_an_optimizer_that_reads_sums_before_noise_is_a_hint(trained: Any) -> None:
    found = trained(optimizer=lambda model: FeedsMomentum(model.parameters(), lr=0.1))
    check = found.checks["inner-optimizer"]
    assert (check.status, check.basis) == ("failed", "hint")
    assert "FeedsMomentum.step reads summed_grad" in check.reason

    class Own(torch.optim.SGD):
        def step(self, closure: Any = None) -> Any:
            return super().step(closure)

    assert trained(optimizer=lambda model: Own(model.parameters(), lr=0.1)).status("inner-optimizer") == "passed"
