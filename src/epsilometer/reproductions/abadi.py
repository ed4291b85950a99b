"""What the experiments of Abadi et al. (2016) have in common: private PCA, DP-SGD until a budget is spent, accuracy by
epoch."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from epsilometer.accounting import Budget, account
from epsilometer.data import Dataset, load
from epsilometer.data import Progress as Download
from epsilometer.figures import Grid, Lines, Series
from epsilometer.mechanisms import DpPca
from epsilometer.reproductions.reproduction import Row, Session
from epsilometer.seeds import Stream, seed_of
from epsilometer.training import (
    Array,
    Every,
    Recipe,
    accuracy,
    median_gradient_norm,
    network_for,
    train,
    within_budget,
)

DELTA = 1e-5
MARKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # epochs that are told, and the last
RATE, FINAL_RATE, FALLING = 0.1, 0.052, 10  # the learning rate falls on a line for ten epochs
UNCLIPPED = 10  # epochs of the training whose gradient norms have the median that may be a clip norm


@dataclass(frozen=True)
class Setting:
    """A training of section 5; `epsilon` is its budget at δ = 1e-5, private PCA included.

    `clip_norm` 0 stands for the median of gradient norms, and `components` 0 for no PCA.
    """

    epsilon: float
    noise_multiplier: float
    pca_noise: float = 0.0
    components: int = 0
    hidden: tuple[int, ...] = (1000,)
    lot: int = 600
    clip_norm: float = 4.0
    learning_rate: float = RATE
    final_learning_rate: float = FINAL_RATE
    model: str = "mlp"


@dataclass(frozen=True)
class Learned:
    """Accuracy and what was spent after some epochs, by the moments accountant (the paper's) and by PLD."""

    epoch: float
    train: float
    test: float
    moments: float
    pld: float


@dataclass(frozen=True)
class Outcome:
    """A training, epoch by epoch, and what it took."""

    learned: tuple[Learned, ...]
    recipe: Recipe
    pca_epsilon: float
    seconds: float
    processor_seconds: float

    @property
    def last(self) -> Learned:
        return self.learned[-1]

    def details(self) -> dict[str, Any]:
        """For a row of a table; by epoch as plain data, so that a stored row can be drawn again."""
        return {
            "epochs": self.last.epoch,
            "moments": self.last.moments,
            "pld": self.last.pld,
            "pca": self.pca_epsilon,
            "train": self.last.train,
            "clip_norm": self.recipe.clip_norm,
            "steps": self.recipe.steps,
            "by_epoch": {f"{one.epoch:g}": asdict(one) for one in self.learned},
            "seconds": self.seconds,
            "processor_seconds": self.processor_seconds,
        }


def learn(setting: Setting, records: Dataset, test: Dataset, *, epochs: int, seed: int) -> Outcome:
    """Train until the budget is spent, or for so many epochs."""
    began, worked = time.perf_counter(), time.process_time()
    budget = Budget(setting.epsilon, DELTA, accountant="moments")
    if setting.components:
        pca = DpPca(setting.components, setting.pca_noise)
        budget.spend(pca.event)
        directions = pca.release(records.x, np.random.default_rng(seed_of(seed, Stream.PREPARING, 0)))
        records, test = (_projected(part, directions) for part in (records, test))
    pca_epsilon = budget.spent.epsilon
    before = budget.booked
    rate = setting.lot / len(records)  # 1/rate steps are an epoch
    recipe = Recipe(
        records=len(records),
        sample_rate=rate,
        steps=_steps(epochs, rate),
        noise_multiplier=setting.noise_multiplier,
        clip_norm=setting.clip_norm or 1.0,
        learning_rate=setting.learning_rate,
        final_learning_rate=setting.final_learning_rate,
        schedule="linear",
        decay_steps=_steps(FALLING, rate),
        model=setting.model,
        hidden=setting.hidden,
    )
    recipe = within_budget(recipe, budget)
    if not setting.clip_norm:
        recipe = _with_median(recipe, records, _steps(UNCLIPPED, rate), seed)
    network, learned = network_for(recipe, records), []
    told = {*(_steps(mark, rate) for mark in MARKS), recipe.steps}

    def look(steps: int, parameters: Array) -> None:
        if steps not in told:
            return
        shares = [accuracy(_outputs(network, parameters, part), part.y) for part in (records, test)]
        spent = before.plus(recipe.mechanism.event, steps)
        costs = [account(spent, DELTA, accountant=name).epsilon for name in ("moments", "pld")]
        learned.append(Learned(round(steps * rate, 2), *shares, *costs))

    train(recipe, records, seed_of(seed, Stream.OUT, 0), Every(1, look))
    took = time.perf_counter() - began, time.process_time() - worked
    return Outcome(tuple(learned), recipe, pca_epsilon, *took)


def _steps(epochs: int, rate: float) -> int:
    return max(1, round(epochs / rate))


def _projected(data: Dataset, directions: Array) -> Dataset:
    x = (data.x @ directions.T).astype(np.float32)
    return Dataset(f"{data.name}, {len(directions)} components", x, data.y, data.classes)


def _outputs(network: Any, parameters: Array, data: Dataset) -> Array:
    """By parts: a convolution of all records at once would fill the memory."""
    return np.concatenate([network.logits(parameters, data.x[i : i + 1000]) for i in range(0, len(data), 1000)])


def _with_median(recipe: Recipe, records: Dataset, steps: int, seed: int) -> Recipe:
    short = replace(recipe, steps=min(steps, recipe.steps))
    return replace(recipe, clip_norm=median_gradient_norm(short, records, seed_of(seed, Stream.CLIP_NORM, 0)))


def both_parts(session: Session, name: str, *per_class: int) -> tuple[Dataset, Dataset]:
    """Training and test records, loaded once; all, or so many of each class."""
    return _loaded(name, session.data_dir, session.download, per_class or (None, None))


@functools.lru_cache(maxsize=1)
def _loaded(
    name: str, directory: Path | None, download: Download | None, sizes: tuple[int | None, ...]
) -> tuple[Dataset, Dataset]:
    records, test = (
        load(name, part=part, per_class=size, directory=directory, progress=download)
        for part, size in zip(("train", "test"), sizes, strict=True)
    )
    return records, test


def by_epoch(title: str, row: Row) -> tuple[Lines, Lines]:
    """Accuracy, and what was spent, by epoch."""
    found: Mapping[str, Mapping[str, float]] = row.details["by_epoch"]
    places = tuple(found)

    def line(label: str, key: str) -> Series:
        return Series(label, tuple((place, one[key]) for place, one in found.items()))

    stated = () if row.paper is None else (Series("paper, test", ((places[-1], row.paper),), reference=True),)
    accuracies = Lines(title, places, (line("test", "test"), line("training", "train"), *stated), "epoch", "accuracy")
    spent = Lines(title, places, (line("moments", "moments"), line("PLD", "pld")), "epoch", f"ε at δ = {DELTA:g}")
    return accuracies, spent


def panels_by_epoch(rows: Sequence[Row], title: str) -> Grid:
    """A picture of all rows: accuracies, and beside them what was spent."""
    pairs = [by_epoch(", ".join(f"{key} = {value}" for key, value in row.cell.items()), row) for row in rows]
    return Grid(title, tuple(part for pair in pairs for part in pair))
