"""The trial engine: many independent DP-SGD trainings, each a pure function of its seed."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable, Sequence

import numpy as np

from epsilometer.data import Dataset
from epsilometer.errors import EpsilometerError, InvalidInput
from epsilometer.training import threefry
from epsilometer.training.models import Array, Network
from epsilometer.training.modules import ModuleNetwork, is_module, module_network
from epsilometer.training.portable import PortableTrainer
from epsilometer.training.recipe import Recipe
from epsilometer.training.side_by_side import MOST_WAITING, Trainer, Training, run_together
from epsilometer.training.watchers import Watcher

BACKENDS = ("auto", "compiled", "portable")


class TrainingDiverged(EpsilometerError):
    """Parameters are no longer finite."""


def network_for(recipe: Recipe, data: Dataset) -> Network | ModuleNetwork:
    """The recipe's model for this data."""
    if is_module(recipe.model):
        return _module_for(recipe.model, data.x.shape[1], data.classes, recipe.loss)
    hidden = recipe.hidden if recipe.model == "mlp" else ()
    return Network((data.x.shape[1], *hidden, data.classes), recipe.activation, recipe.loss)


@functools.lru_cache(maxsize=8)
def _module_for(name: str, features: int, classes: int, loss: str) -> ModuleNetwork:
    return module_network(name, features, classes, loss)


def initial_parameters(recipe: Recipe, network: Network | ModuleNetwork, key: threefry.Words) -> Array:
    """Where a training starts: the same for every trial, or drawn from the trial's own key."""
    seed = [recipe.init_seed] if recipe.initialisation == "fixed" else [*key.tolist(), threefry.INIT]
    drawn = network.initial(np.random.default_rng(seed), recipe.init_scale)
    return drawn.astype(recipe.precision)


def train_many(
    recipe: Recipe,
    datasets: Sequence[Dataset],
    seeds: Sequence[np.random.SeedSequence],
    watchers: Sequence[Watcher] | None = None,
    *,
    noise_scale: float = 1.0,
    backend: str = "auto",
) -> Array:
    """Train one model for each (data set, seed, watcher); returns their parameters, a row each.

    Models share nothing: each has its own batches and its own noise, and is the same whatever stands beside it
    and wherever it runs (where numpy or torch multiply matrices: with the same number of threads; audits have one).
    So must its watcher be, which is its own. `noise_scale` is a fault to inject: it multiplies the noise that is
    really added, and nothing else. `backend` changes speed only, up to rounding.
    """
    watchers = [Watcher() for _ in datasets] if watchers is None else watchers
    if not len(datasets) == len(seeds) == len(watchers):
        lengths = (len(datasets), len(seeds), len(watchers))
        raise InvalidInput("datasets, seeds, watchers", lengths, "sequences of one length")
    trainer = _trainer("portable" if is_module(recipe.model) and backend == "auto" else backend)(recipe, noise_scale)
    together = 1 if is_module(recipe.model) else MOST_WAITING  # modules are handled one by one in any case
    trained = []
    for begin in range(0, len(datasets), together):
        part = slice(begin, begin + together)
        with np.errstate(over="ignore", invalid="ignore"):  # divergence is looked for just below
            trainings = [
                _begin(trainer, recipe, data, seed, watcher, backend)
                for data, seed, watcher in zip(datasets[part], seeds[part], watchers[part], strict=True)
            ]
            results = run_together(trainings, datasets[part], watchers[part])
        for (parameters, projections), watcher in zip(results, watchers[part], strict=True):
            if not np.isfinite(parameters).all():
                raise TrainingDiverged(
                    f"learning_rate = {recipe.learning_rate:g}: the training diverged; lower the learning rate"
                )
            watcher.finish(parameters, projections)
            trained.append(parameters)
    return np.array(trained)


def train(
    recipe: Recipe,
    data: Dataset,
    seed: np.random.SeedSequence,
    watcher: Watcher | None = None,
    noise_scale: float = 1.0,
    backend: str = "auto",
) -> Array:
    """Train once; see `train_many`."""
    watchers = None if watcher is None else [watcher]
    parameters: Array = train_many(recipe, [data], [seed], watchers, noise_scale=noise_scale, backend=backend)[0]
    return parameters


def engine_of(recipe: Recipe) -> str:
    """What trains a recipe in this process: compiled, portable or torch. They round differently."""
    if is_module(recipe.model):
        return "torch"
    return "compiled" if importlib.util.find_spec("numba") is not None else "portable"


@functools.cache
def _trainer(backend: str) -> Callable[[Recipe, float], Trainer]:
    if backend not in BACKENDS:
        raise InvalidInput("backend", backend, "one of " + ", ".join(BACKENDS))
    if backend == "compiled" or (backend == "auto" and importlib.util.find_spec("numba") is not None):
        from epsilometer.training.compiled_trainer import CompiledTrainer

        return CompiledTrainer
    return PortableTrainer


def _begin(
    trainer: Trainer, recipe: Recipe, data: Dataset, seed: np.random.SeedSequence, watcher: Watcher, backend: str
) -> Training:
    network, key = network_for(recipe, data), threefry.trial_key(seed)
    _check_trial(recipe, data, network, watcher, backend)
    start = watcher.start if watcher.start is not None else initial_parameters(recipe, network, key)
    return trainer.train(network, data, key, start.astype(recipe.precision), watcher)


def _check_trial(
    recipe: Recipe, data: Dataset, network: Network | ModuleNetwork, watcher: Watcher, backend: str
) -> None:
    if not recipe.is_accounted and watcher.inserted is not None:
        raise InvalidInput("sampling", recipe.sampling, "poisson or full for an inserted gradient, which tosses a coin")
    if backend == "compiled" and not network.fully_connected:
        raise InvalidInput("backend", backend, "auto or portable for a torch module")
    records = len(data)
    if watcher.rows is not None:
        rows, records = watcher.rows, len(watcher.rows)
        if rows.ndim != 1 or rows.dtype.kind not in "iu" or not ((rows >= 0) & (rows < len(data))).all():
            raise InvalidInput("rows", f"shape {rows.shape}", f"row numbers from 0 to {len(data) - 1}")
    if recipe.sampling == "fixed-size" and recipe.batch_size > records:
        raise InvalidInput("sample_rate", recipe.sample_rate, f"a batch of at most the {records} records")
    if watcher.poisoner is not None and not (watcher.stepwise and 0 <= watcher.poisoner.row < len(data)):
        expected = f"a row of the {len(data)} records, and a stepwise watcher"
        raise InvalidInput("poisoner", f"row {watcher.poisoner.row}", expected)
    for name in ("inserted", "probe", "start"):
        vector = getattr(watcher, name)
        if vector is not None and vector.shape != (network.parameters,):
            raise InvalidInput(name, f"shape {vector.shape}", f"one value for each of {network.parameters} parameters")
