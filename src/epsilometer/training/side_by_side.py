"""Trainings side by side: each goes on by itself until a batch has a poisoned record, which is then made for all that
wait for one."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Protocol

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.training.models import Array
from epsilometer.training.threefry import Words
from epsilometer.training.watchers import Poisoner, Watcher

Trained = tuple[Array, Floats]  # final parameters, and projections of the noisy sums
Training = Generator[tuple[int, Array], tuple[Array, int], Trained]  # asks with a step and a model, is told a record
MOST_WAITING = 32  # at once: more would save little, and take memory


class Trainer(Protocol):
    """A backend, for one recipe."""

    def train(self, network: Any, data: Dataset, key: Words, start: Array, watcher: Watcher) -> Training: ...


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
        classes = min(datasets[i].classes for i in asking)
        records = _made(poisoner, [waiting[i] for i in asking], datasets[asking[0]].x.shape[1], classes)
        for i, record in zip(asking, records, strict=True):
            go_on(i, record)
    return [results[i] for i in range(len(trainings))]


def _made(
    poisoner: Poisoner, asked: Sequence[tuple[int, Array]], features: int, classes: int
) -> list[tuple[Array, int]]:
    """What the poisoner answers, checked: compiled code would not notice."""
    steps, parameters = np.array([step for step, _ in asked]), np.stack([parameters for _, parameters in asked])
    x, y = (np.asarray(part) for part in poisoner.records(steps, parameters))
    if x.shape != (expected := (len(asked), features)) or not np.isfinite(x).all():
        raise InvalidInput("records of a poisoner", f"shape {x.shape}", f"finite features of shape {expected}")
    if y.shape != (len(asked),) or y.dtype.kind not in "iu" or not ((y >= 0) & (y < classes)).all():
        raise InvalidInput("labels of a poisoner", y.tolist(), f"{len(asked)} classes, 0 to {classes - 1}")
    return [(record, int(label)) for record, label in zip(x, y, strict=True)]
