"""What was seen of one private training: what `make_private` got and gave, and every step since."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from epsilometer.watching.checks.inputs import Inputs
from epsilometer.watching.checks.kept import KeptGradients
from epsilometer.watching.checks.movement import Places, StepCounter, count_private
from epsilometer.watching.checks.noise import NoiseTally


class SeenTraining:
    """One call of `make_private` and the steps of the optimizer that it returned."""

    def __init__(self, engine: Any, module: Any, optimizer: Any, loader: Any, settings: Mapping[str, Any]) -> None:
        self.engine, self.module, self.optimizer, self.loader = engine, module, optimizer, loader
        self.settings = dict(settings)
        self.root: Any = settings.get("module", module)
        self.ghost = hasattr(module, "get_clipping_coef") or hasattr(module, "get_coeff")
        self.accounted_before = steps_accounted(engine) or 0
        self.names = {id(p): _plain(name) for name, p in self.root.named_parameters()}
        self.private = {id(p) for p in optimizer.params}
        self.unprotected = Places(lambda: self._trained(private=False))
        self.weights = Places(lambda: self._trained(private=True))
        self.buffers = Places(lambda: {_plain(name): buffer for name, buffer in self.root.named_buffers()})
        self.batch_norms: list[str] | None = None  # that take their statistics from the batch
        self.steps_taken = StepCounter(self.root.parameters())
        self.inputs = Inputs(self.root, bool(settings.get("batch_first", True)))
        self.noise = NoiseTally()
        self.kept = KeptGradients(optimizer, lambda p: self.names.get(id(p), "?"))
        self.drawn: list[float] = []  # σ while noise was drawn / σ that was then accounted, of each step
        self._sigma = 0.0
        self.batch_sizes: list[int] = []
        self.clip_norms: set[tuple[float, float]] = set()  # of the module and of the optimizer, in ghost mode
        self.accounted: list[tuple[float, float]] = []  # σ and sample rate of steps that reached the accountant
        self.followed = 0  # steps that came to their end
        self.seed: int | None = None
        self.own_generator = False
        self.trouble = ""
        self._pending: list[int] | None = None
        self._last = last_accounted(engine)

    def _trained(self, private: bool) -> dict[str, torch.Tensor]:
        trained = ((_plain(name), p) for name, p in self.root.named_parameters() if p.requires_grad)
        return {name: p for name, p in trained if (id(p) in self.private) == private}

    @property
    def records(self) -> int | None:
        """How many records the data set has."""
        try:
            return len(self.settings.get("data_loader", self.loader).dataset)
        except (TypeError, AttributeError):
            return None

    @property
    def poisson(self) -> bool:
        return bool(self.settings.get("poisson_sampling", True))

    @property
    def steps(self) -> int:
        return self.noise.steps

    @property
    def several_processes(self) -> bool:
        distributed = torch.distributed
        return distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1

    def accumulated(self, records: int | None) -> None:
        """One physical batch was clipped; several may make one step."""
        self._pending = self._pending or []
        self._pending.append(rows(self.optimizer) or 0 if records is None else records)

    def noised(self) -> None:
        optimizer = self.optimizer
        self._last = last_accounted(self.engine)
        count_private(optimizer.original_optimizer)
        if self.batch_norms is None:  # a script may switch to evaluation at its end
            self.batch_norms = mixing_batch_norms(self.root)
        if self._pending is not None:
            self.batch_sizes.append(sum(self._pending))
            self._pending = []
        elif not getattr(optimizer, "_is_last_step_skipped", False):  # else parts of the batch went unseen
            found = rows(optimizer)
            if found is not None:
                self.batch_sizes.append(found)
        if self.ghost:
            self.clip_norms.add((float(getattr(self.module, "max_grad_norm", 0.0)), float(optimizer.max_grad_norm)))
        if self.seed is None:
            self.own_generator = optimizer.generator is not None
            self.seed = optimizer.generator.initial_seed() if self.own_generator else torch.initial_seed()
        self._sigma = float(optimizer.noise_multiplier)
        scale = self._multiplier() * float(optimizer.max_grad_norm)
        parameters = optimizer.params
        if not (self.several_processes and torch.distributed.get_rank() > 0):  # only the first process adds noise
            self.noise.add(parameters, [self.names.get(id(p), "?") for p in parameters], scale)

    @property
    def adaptive(self) -> bool:
        """Does clipping adapt, so that the noise of gradients is another one than the accounted?"""
        return any(hasattr(self.optimizer, name) for name in ("unclipped_num_std", "_adjusted_noise_multiplier"))

    def _multiplier(self) -> float:
        """The noise multiplier that gradients need; adaptive clipping spends a part of the budget on its counts."""
        optimizer = self.optimizer
        multiplier = float(optimizer.noise_multiplier)
        if hasattr(optimizer, "unclipped_num_std"):  # up to Opacus 1.5.4 it overwrites its own multiplier
            stated = min(multiplier, float(self.settings.get("noise_multiplier", multiplier)))
            counts = 2 * float(optimizer.unclipped_num_std)
            return (stated**-2 - counts**-2) ** -0.5 if 0 < stated < counts else stated
        return float(getattr(optimizer, "_adjusted_noise_multiplier", multiplier))

    def stepped(self) -> None:
        self.followed += 1
        if self.steps < self.followed and not self.several_processes:
            self.trouble = "its add_noise was replaced, so that the noise of a step was not seen"
        last = last_accounted(self.engine)
        if last is not None and last != self._last:
            self.accounted.append((float(last[1][0]), float(last[1][1])))
            self.drawn.append(self._sigma / self.accounted[-1][0] if self.accounted[-1][0] > 0 else 1.0)
        self.kept.leave()

    def close(self) -> None:
        self.kept.close()
        self.steps_taken.close()
        self.inputs.close()


def mixing_batch_norms(root: Any) -> list[str]:
    """Layers of batch normalisation that are not frozen."""
    kind = torch.nn.modules.batchnorm._BatchNorm
    layers = ((_plain(name), layer) for name, layer in root.named_modules() if isinstance(layer, kind))
    return [name for name, layer in layers if layer.training or layer.running_mean is None]


def rows(optimizer: Any) -> int | None:
    """Records in the batch that was just processed."""
    for p in optimizer.params:
        for kept in (getattr(p, "grad_sample", None), getattr(p, "_norm_sample", None)):
            if isinstance(kept, torch.Tensor):
                return len(kept)
            if isinstance(kept, list):
                return sum(len(part) for part in kept)
    return None


def steps_accounted(engine: Any) -> int | None:
    try:
        return sum(int(entry[2]) for entry in engine.accountant.history)
    except (AttributeError, TypeError, IndexError):
        return None


def last_accounted(engine: Any) -> tuple[int, Any] | None:
    """Enough of an accountant's history to see that a step was added."""
    history = getattr(engine.accountant, "history", None)
    return (len(history), tuple(history[-1])) if history else None


def _plain(name: str) -> str:
    return name.replace("_module.", "")
