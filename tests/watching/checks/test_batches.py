"""Which records come: shuffled epochs in disguise, batches that come again, and what only looks like that."""

import re
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, DataLoader, Subset, TensorDataset

from epsilometer.watching.checks.batches import batches as batches_check
from epsilometer.watching.collect.copies import copies
from epsilometer.watching.facts import Batches, Copies, Facts, Sampling, Steps

pytestmark = pytest.mark.filterwarnings("ignore")


class RandomCuts(torch.utils.data.Sampler[list[int]]):
    """Shuffled data, cut at random places: sizes vary, and every record comes once an epoch."""

    def __init__(self, records: int, batches: int) -> None:
        self.records, self.batches = records, batches

    def __iter__(self) -> Any:
        order = np.random.default_rng(len(CUT)).permutation(self.records)
        CUT.append(1)
        cuts = np.sort(np.random.default_rng(100 + len(CUT)).choice(self.records - 1, self.batches - 1, False) + 1)
        yield from (part.tolist() for part in np.split(order, cuts))


CUT: list[int] = []


def step(made: Any, x: Any, y: Any) -> None:
    made.optimizer.zero_grad()
    made.criterion(made.module(x), y).backward()
    made.optimizer.step()


def over(made: Any, loader: Any, epochs: int) -> None:
    for _ in range(epochs):
        for x, y in loader:
            step(made, x, y)


@pytest.mark.parametrize("workers", [0, 1])
def test_shuffled_data_with_random_cuts(trained: Any, workers: int) -> None:
    def loop(made: Any, epochs: int) -> None:
        data = made.loader.dataset
        over(made, DataLoader(data, batch_sampler=RandomCuts(len(data), 11), num_workers=workers), epochs)

    found = trained(loop=loop, epochs=1 if workers else 3)
    assert found.status("sampler") == "passed"  # sizes vary
    check = found.checks["batches"]
    assert check.status == "failed"
    assert check.reason.startswith("no record came twice in the first ")
    assert (check.statement.value, check.basis.value) == ("sampling", "test")


def test_the_same_without_a_loader(trained: Any) -> None:
    """The script cuts its arrays itself: only sizes are seen."""

    def loop(made: Any, epochs: int) -> None:
        x, y = made.loader.dataset.tensors
        for _ in range(epochs):
            for part in RandomCuts(len(x), 11):
                step(made, x[part], y[part])

    found = trained(loop=loop, epochs=8)
    assert found.reason("batches").startswith("the sizes of batches add up to the number of records, ")
    assert found.checks["batches"].basis == "test"


def test_a_loader_that_is_never_iterated_over_is_said_at_once(trained: Any) -> None:
    def loop(made: Any, _: int) -> None:
        step(made, *next(iter(made.original_loader)))

    found = trained(loop=loop)
    assert found.reason("batches").startswith("the loader that make_private returned was never iterated over: in 1 ste")
    assert (found.status("batches"), found.checks["batches"].basis) == ("failed", "counterexample")


def test_batches_of_a_generator_that_is_seeded_again(trained: Any) -> None:
    def loop(made: Any, epochs: int) -> None:
        for _ in range(epochs):
            torch.manual_seed(7)
            over(made, made.loader, 1)

    found = trained(loop=loop)
    first, second = re.search(r"steps (\d+) and (\d+) have the same batch", found.reason("batches")).groups()
    assert (int(second) - int(first)) % 11 == 0
    assert found.checks["batches"].basis == "test"


@pytest.mark.parametrize("seed", range(4))
def test_poisson_sampling_with_looks_at_all_the_data_in_between(trained: Any, seed: int) -> None:
    """Passes over the training data in order, which no step is taken on."""

    def loop(made: Any, epochs: int) -> None:
        for _ in range(epochs):
            over(made, made.loader, 1)
            with torch.no_grad():
                for x, _ in DataLoader(made.loader.dataset, batch_size=10):
                    made.module(x)

    found = trained(loop=loop, seed=seed)
    assert found.status("batches") == found.status("record-rows") == "passed", found.reason("batches")


def test_full_batches_come_again(trained: Any) -> None:
    assert trained(batch=104, epochs=8).status("batches") == "passed"


def test_own_poisson_sampling_is_not_accused(trained: Any) -> None:
    def loop(made: Any, epochs: int) -> None:
        x, y = made.loader.dataset.tensors
        for _ in range(11 * epochs):
            chosen = torch.rand(len(x)) < 1 / 11
            step(made, x[chosen], y[chosen])

    found = trained(loop=loop, epochs=8)
    assert (found.status("batches"), found.checks["batches"].basis) == ("failed", "hint")
    assert "came from no loader" in found.reason("batches")


def test_several_rows_a_record_and_several_records_a_row(trained: Any) -> None:
    def augmented(made: Any, epochs: int) -> None:
        for _ in range(epochs):
            for x, y in made.loader:
                step(made, torch.cat([x, x + 0.1]), torch.cat([y, y]))

    def microbatches(made: Any, epochs: int) -> None:
        for _ in range(epochs):
            for x, y in made.loader:
                made.optimizer.zero_grad()
                made.criterion(made.module(x), y).backward()
                for p in made.optimizer.params:
                    pairs = p.grad_sample[: len(x) // 2 * 2]
                    p.grad_sample = pairs.reshape(-1, 2, *p.shape).mean(1)
                made.optimizer.step()

    found = trained(loop=augmented)
    assert (found.status("record-rows"), found.checks["record-rows"].basis) == ("failed", "hint")
    assert "there were 2 gradients to clip for every record" in found.reason("record-rows")
    assert found.status("sample-rate") == "passed"  # records are counted, not their gradients
    assert "fewer gradients to clip than records" in trained(loop=microbatches).reason("record-rows")


def test_accumulated_and_virtual_batches_are_one(trained: Any) -> None:
    from opacus.utils.batch_memory_manager import BatchMemoryManager

    def virtual(made: Any, epochs: int) -> None:
        with BatchMemoryManager(data_loader=made.loader, max_physical_batch_size=4, optimizer=made.optimizer) as split:
            over(made, split, epochs)

    found = trained(loop=virtual)
    assert found.reason("batches").startswith("33 batches of a Poisson sampler")
    assert found.status("record-rows") == "passed"

    def accumulating(made: Any, _: int) -> None:
        for i, (x, y) in enumerate(made.loader):
            made.criterion(made.module(x), y).backward()
            if i % 2:
                made.optimizer.step()
                made.optimizer.zero_grad()

    assert trained(loop=accumulating, poisson_sampling=False).status("record-rows") == "passed"


def again(sizes: Any, records: int, batches: int) -> str:
    seen = Sampling(True, records, 1 / batches, batches, [int(size) for size in sizes], None)
    facts = Facts(sampling=seen, batches=Batches(0, 0, 0, 0, 0.0, [], 0, 0), steps=Steps(len(sizes), len(sizes)))
    found = batches_check(facts)
    return found.reason if found.status == "failed" and found.basis is None else ""


def test_sizes_that_come_again() -> None:
    """Batches that are kept, cycled or used twice come from no loader the second time."""
    draw = np.random.default_rng(3)
    some = draw.binomial(1500, 1 / 25, 30)
    assert "90 of 90 batches have the size of that 30 before" in again(np.tile(some, 4), 1500, 25)
    assert "31 of 59 batches have the size of that 1 before" in again(np.repeat(some, 2), 1500, 25)
    others = [draw.binomial(1500, 1 / 25, 100) for _ in range(2)]
    assert "have the size of that 130 before" in again(np.concatenate([others[0], some, others[1], some]), 1500, 25)


def test_sizes_that_come_again_in_another_order() -> None:
    draw = np.random.default_rng(3)
    some = draw.binomial(1500, 1 / 25, 20)
    shuffled = np.concatenate([draw.permutation(some) for _ in range(4)])
    assert "each 20 batches have the sizes of the 20 before, in another order" in again(shuffled, 1500, 25)
    assert not again(shuffled[:39], 1500, 25)


@pytest.mark.parametrize(("records", "batches", "steps"), [(1500, 25, 200), (20, 100, 500), (100, 2, 300)])
def test_sizes_that_are_the_same_by_chance(records: int, batches: int, steps: int) -> None:
    draw = np.random.default_rng(4)
    assert not any(again(draw.binomial(records, 1 / batches, steps), records, batches) for _ in range(40))


def test_records_that_are_in_a_data_set_several_times(trained: Any) -> None:
    base = TensorDataset(torch.randn(40, 2))
    rare = Subset(base, [3, 5])
    assert copies(ConcatDataset([base, rare, rare])) == Copies(40, 2, 3)
    assert copies(Subset(ConcatDataset([base, rare]), [0, 3, 40, 41])) == Copies(3, 1, 2)
    assert copies(ConcatDataset([Subset(base, range(20)), Subset(base, range(20, 40))])) == Copies(40, 0, 1)
    assert isinstance(copies(base), str)
    data = TensorDataset(torch.randn(100, 20), torch.randint(16, (100,)))
    found = trained(data=Subset(data, [*range(100), *range(10)]))
    assert found.status("copies") == "failed"
    assert found.reason("copies").startswith("10 of 100 records are in the data set up to 2 times")
    assert (found.checks["copies"].statement.value, found.checks["copies"].basis.value) == (
        "sampling",
        "counterexample",
    )
