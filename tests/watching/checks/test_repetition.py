"""Noise that is the same in another run."""

from typing import Any

import torch

from epsilometer.watching.checks.repetition import compare_runs
from epsilometer.watching.recording import Told, decode, encode


def first(found: Any) -> list[list[float]]:
    """As it comes from another process."""
    record = decode(encode(Told(1, found.inspections[0].facts(end=True))))
    assert isinstance(record, Told)
    assert record.facts.seeds is not None
    return record.facts.seeds.first


def test_other_seeds_other_noise(trained: Any, right: Any) -> None:
    check = compare_runs(first(right), first(trained(seed=1)))
    assert (check.name, check.status) == ("fresh-noise", "passed")


def test_a_generator_of_its_own(trained: Any) -> None:
    runs = [trained(seed=seed, noise_generator=torch.Generator().manual_seed(99)) for seed in (0, 1)]
    check = compare_runs(first(runs[0]), first(runs[1]))
    assert check.status == "failed"
    assert check.reason.startswith("step 1 has the same noise in a second run")
    assert runs[0].status("fresh-noise") == "not applicable"
    assert "of a generator with seed 99, which anybody can take off" in runs[0].reason("fresh-noise")


def test_a_new_generator_in_every_step(trained: Any) -> None:
    def loop(made: Any, epochs: int) -> None:
        for _ in range(epochs):
            for x, y in made.loader:
                made.optimizer.generator = torch.Generator().manual_seed(1234)
                made.optimizer.zero_grad()
                made.criterion(made.module(x), y).backward()
                made.optimizer.step()

    found = trained(loop=loop)
    assert found.failed >= {"fresh-noise", "independent-noise"}
    assert "new generator with seed 1234" in found.reason("fresh-noise")


def test_small_parameters_are_guessed_too(trained: Any) -> None:
    found = trained(
        model=lambda: torch.nn.Sequential(torch.nn.Linear(20, 16)), noise_generator=torch.Generator().manual_seed(7),
        optimizer=lambda model: torch.optim.SGD([model[0].bias, model[0].weight], lr=0.1),
    )  # fmt: skip
    assert "with seed 7," in found.reason("fresh-noise")


def test_seeds_that_nobody_guesses(trained: Any) -> None:
    found = trained(seed=2**52 + 12345678901)
    assert found.reason("fresh-noise") == "needs a second run: epsilometer inspect --second-run"


def test_nothing_to_compare() -> None:
    assert compare_runs([], []).status == "not applicable"


def seeding(seed: Any) -> Any:
    """A loop that seeds torch at the beginning of every epoch."""

    def loop(made: Any, epochs: int) -> None:
        for epoch in range(epochs):
            seed(epoch)
            for x, y in made.loader:
                made.optimizer.zero_grad()
                made.criterion(made.module(x), y).backward()
                made.optimizer.step()

    return loop


def test_a_seed_for_each_epoch(trained: Any) -> None:
    check = trained(loop=seeding(torch.manual_seed)).checks["fresh-noise"]
    assert check.reason.startswith("the generator of the noise was seeded with 1 before step 12, in the middle")
    assert (check.status, check.statement, check.basis) == ("failed", "noise", "counterexample")


def test_a_generator_that_is_seeded_with_the_number_of_the_step(trained: Any) -> None:
    own = torch.Generator().manual_seed(2**60 + 5)

    def change(made: Any) -> None:
        made.optimizer.attach_step_hook(lambda optimizer, former=made.optimizer.step_hook: again(optimizer, former))

    def again(optimizer: Any, former: Any) -> None:
        former(optimizer)
        own.manual_seed(len(taken))
        taken.append(1)

    taken: list[int] = []
    assert "seeded with 0 before step 2" in trained(change, noise_generator=own).reason("fresh-noise")


def test_the_same_seed_for_each_epoch(trained: Any) -> None:
    found = trained(loop=seeding(lambda _: torch.manual_seed(2**60 + 1)), seed=2**60 + 1)
    assert "where it had been at step 1" in found.reason("fresh-noise")


def test_seeds_from_entropy_and_seeds_that_are_put_back_are_no_harm(trained: Any) -> None:
    import secrets

    assert (
        trained(loop=seeding(lambda _: torch.manual_seed(secrets.randbits(62) | 1 << 61))).status("fresh-noise")
        == "not applicable"
    )

    def evaluate(_: int) -> None:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            torch.randn(1000)

    assert trained(loop=seeding(evaluate), seed=0).status("fresh-noise") == "not applicable"
