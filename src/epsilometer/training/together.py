"""Trainings side by side: each goes on by itself until a batch has a poisoned record, which is then made for all that
wait for one."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np

from epsilometer.claims import Floats
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.training.models import Array
from epsilometer.training.watchers import Poisoner, Watcher

Trained = tuple[Array, Floats]  # final parameters, and projections of the noisy sums
Training = Generator[tuple[int, Array], tuple[Array, int], Trained]  # asks with a step and a model, is told a record
MOST = 32  # that wait at once: more would save little, and take memory


def run_together(
    trainings: Sequence[Training], datasets: Sequence[Dataset], watchers: Sequence[Watcher]
) -> list[Trained]:
    """The results of trainings, which share nothing but the work on poisoned records."""
    results: dict[int, Trained] = {}
    waiting: dict[int, tuple[int, Array]] = {}

    def go_on(i: int, record: tuple[Array, int] | None) -> None:
        try:
            waiting[i] = next(trainings[i]) if record is None else trainings[i].send(record)
        except StopIteration as end:
            waiting.pop(i, None)
            results[i] = end.value

    for i in range(len(trainings)):
        go_on(i, None)
    while waiting:
        poisoner = watchers[next(iter(waiting))].poisoner
        assert poisoner is not None  # others never wait
        asking = [i for i in waiting if watchers[i].poisoner is poisoner]
        for i, record in zip(asking, _records(poisoner, [waiting[i] for i in asking]), strict=True):
            _check_record(record, datasets[i])
            go_on(i, record)
    return [results[i] for i in range(len(trainings))]


def _records(poisoner: Poisoner, asked: Sequence[tuple[int, Array]]) -> list[tuple[Array, int]]:
    x, y = poisoner.records(np.array([step for step, _ in asked]), np.stack([parameters for _, parameters in asked]))
    return [(record, int(label)) for record, label in zip(x, y, strict=True)]


def _check_record(record: tuple[Array, int], data: Dataset) -> None:
    x, label = record
    if x.shape != data.x.shape[1:]:
        raise InvalidInput("record of a poisoner", f"shape {x.shape}", f"{data.x.shape[1]} features")
    if not 0 <= label < data.classes:
        raise InvalidInput("label of a poisoner", label, f"a class, 0 to {data.classes - 1}")
