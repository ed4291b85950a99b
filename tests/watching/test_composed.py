"""Trainings on the same records, in whichever process: what they spend adds up, and it is said how much that is."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.utils.data import ConcatDataset, Subset, TensorDataset

from epsilometer.watching.collect.records import SAMPLE, sample_of
from epsilometer.watching.facts import Facts
from epsilometer.watching.facts_together import Spent, shared_records
from epsilometer.watching.monitor import Monitor
from epsilometer.watching.recording import Ended, MadePrivate, Told

HISTORY = [[1.0, 0.125, 24]]


def data(records: int = 100, seed: int = 0) -> TensorDataset:
    own = torch.Generator().manual_seed(seed)
    return TensorDataset(torch.randn(records, 3, generator=own), torch.zeros(records))


class Kept(torch.utils.data.Dataset[Any]):
    """As torchvision's keep theirs."""

    def __init__(self, values: torch.Tensor) -> None:
        self.data = values.numpy()

    def __len__(self) -> int:
        return len(self.data)


@pytest.mark.parametrize("records", [100, 20 * SAMPLE])
def test_samples_say_how_many_records_two_data_sets_share(records: int) -> None:
    whole = data(records)
    half, other = Subset(whole, range(records // 2)), Subset(whole, range(records // 2, records))
    assert sample_of(whole) == sample_of(ConcatDataset([half, other])) == sample_of(Kept(whole.tensors[0]))

    def shared(one: Any, another: Any) -> int:
        return shared_records(sample_of(one), len(one), sample_of(another), len(another))

    assert shared(whole, whole) == records
    assert shared(half, other) == shared(whole, data(records, seed=1)) == 0
    assert shared(whole, half) == pytest.approx(records / 2, rel=0 if records < SAMPLE else 0.2)


def test_records_that_cannot_be_told_apart_have_no_sample() -> None:
    class Own(torch.utils.data.Dataset[Any]):
        def __len__(self) -> int:
            return 3

    assert sample_of(Own()) == sample_of(None) == []


def monitored(*spent: tuple[str, Spent], several: bool = False) -> Monitor:
    """Trainings of these processes."""
    monitor = Monitor()
    for source, one in spent:
        number = 1 + sum(key[0] == source for key in monitor.trainings)
        monitor.take(MadePrivate(number, "DPOptimizer", 1.0, 1.0, 0, "extra", {}), source)
        monitor.take(Told(number, Facts(spent=one, several_processes=several)), source)
        monitor.take(Ended(number, 0, one.history), source)
    monitor.ended()
    return monitor


def composition(monitor: Monitor) -> list[str]:
    return [check.reason for one in monitor for check in one.checks if check.name == "composition"]


def test_trainings_of_several_processes_are_composed() -> None:
    own = Spent(1, HISTORY, 24, 100, sample_of(data()))
    for reason in composition(monitored(("a", own), ("b", own), ("c", own))):
        assert "3 accountants for trainings on the same 100 records: each promises ε ≤ 4.685, together 7.559" in reason
    assert len(composition(monitored(("a", own), ("b", own)))) == 2


@pytest.mark.parametrize("why", ["other data", "one accountant", "an accountant that went on", "ranks of one training"])
def test_what_does_not_add_up(why: str) -> None:
    own = Spent(1, HISTORY, 24, 100, sample_of(data()))
    other = ("b", own)
    if why == "other data":
        other = ("b", replace(own, sample=sample_of(data(seed=1))))
    if why == "one accountant":
        twice = replace(own, history=[[1.0, 0.125, 48]])
        own, other = twice, ("a", twice)
    if why == "an accountant that went on":  # of a checkpoint
        other = ("b", replace(own, history=[[1.0, 0.125, 48]]))
    found = composition(monitored(("a", own), other, several=why == "ranks of one training"))
    assert all("passed" in one or "one accountant" in one or "counts all" in one for one in found), found
    assert not any("together" in one for one in found)
