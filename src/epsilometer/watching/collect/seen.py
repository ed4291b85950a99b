"""What was seen of one private training: what `make_private` got and gave, and every step since."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from typing import Any

import torch

from epsilometer.watching.collect.clipping import clipping
from epsilometer.watching.collect.comparisons import comparisons
from epsilometer.watching.collect.inputs import Inputs
from epsilometer.watching.collect.kept import KeptGradients
from epsilometer.watching.collect.layers import layer_norms
from epsilometer.watching.collect.mixing import mixing, mixing_batch_norms, plain
from epsilometer.watching.collect.movement import Places, StepCounter, count_private
from epsilometer.watching.collect.noise import NoiseTally
from epsilometer.watching.collect.seeds import seeds
from epsilometer.watching.collect.size import size
from epsilometer.watching.facts import (
    PARTS,
    Accounted,
    Facts,
    GhostNorms,
    Kept,
    Moved,
    Noise,
    OtherSteps,
    Sampling,
    Steps,
    Target,
    WeighedNoise,
)


class SeenTraining:
    """One call of `make_private` and the steps of the optimizer that it returned."""

    def __init__(self, engine: Any, module: Any, optimizer: Any, loader: Any, settings: Mapping[str, Any]) -> None:
        self.engine, self.module, self.optimizer, self.loader = engine, module, optimizer, loader
        self.settings = dict(settings)
        self.root: Any = settings.get("module", module)
        self.ghost = hasattr(module, "get_clipping_coef") or hasattr(module, "get_coeff")
        self.accounted_before = steps_accounted(engine) or 0
        self.names = {id(p): plain(name) for name, p in self.root.named_parameters()}
        self.private = {id(p) for p in optimizer.params}
        self.unprotected = Places(lambda: self._trained(private=False))
        self.weights = Places(lambda: self._trained(private=True))
        self.buffers = Places(lambda: {plain(name): buffer for name, buffer in self.root.named_buffers()})
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
        trained = ((plain(name), p) for name, p in self.root.named_parameters() if p.requires_grad)
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
        self.kept.leave()
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

    def facts(self, apart: Callable[[], AbstractContextManager[None]]) -> Facts:
        """All that is known by now. Where crafted records go through the script's code, `apart` is around it."""
        found: dict[str, Any] = {}
        troubles: dict[str, str] = {}
        for part, tell in self._parts().items():
            if self.trouble:
                troubles[part] = f"the training could not be followed ({self.trouble})"
                continue
            try:
                with apart():
                    told = tell()
            except Exception as error:
                told = f"could not be tried ({type(error).__name__}: {error})"
            (troubles if isinstance(told, str) else found)[part] = told
        from epsilometer.watching.opacus.support import another_mechanism

        return Facts(
            several_processes=self.several_processes,
            another_mechanism=another_mechanism(self.optimizer),
            own_optimizer=not type(self.optimizer).__module__.startswith("opacus"),
            troubles=troubles,
            **found,
        )

    def _parts(self) -> dict[str, Callable[[], Any]]:
        """Of each part, who tells it; words in its place say why it is not known."""
        parts: dict[str, Callable[[], Any]] = {
            "steps": lambda: Steps(self.steps, self.followed),
            "sampling": self._sampling,
            "accounted": self._accounted,
            "target": self._target,
            "noise": self._noise,
            "seeds": lambda: seeds(self),
            "kept": lambda: Kept(self.kept.steps, dict(self.kept.changed)),
            "clipping": lambda: clipping(self),
            "ghost": self._ghost,
            "layers": lambda: layer_norms(self),
            "size": lambda: "several processes" if self.several_processes else size(self),
            "mixing": lambda: mixing(self),
            "moved": self._moved,
            "others": self._others,
        }
        assert parts.keys() <= set(PARTS)
        return parts

    def _sampling(self) -> Sampling:
        optimizer, rate = self.optimizer, getattr(self.loader, "sample_rate", None)
        divided = optimizer.loss_reduction == "mean" and optimizer.expected_batch_size is not None
        return Sampling(
            self.poisson,
            self.records,
            None if rate is None else float(rate),
            _length(self.loader),
            list(self.batch_sizes),
            float(optimizer.expected_batch_size) if divided else None,
        )

    def _accounted(self) -> Accounted:
        total, accountant = steps_accounted(self.engine), self.engine.accountant
        history: list[list[float]] = []
        for sigma, rate in self.accounted:
            if history and history[-1][:2] == [sigma, rate]:
                history[-1][2] += 1
            else:
                history.append([sigma, rate, 1])
        mechanism = None
        with suppress(Exception):  # an accountant of the script's own
            mechanism = str(accountant.mechanism())
        asked = self.settings.get("noise_multiplier")
        return Accounted(
            history,
            None if total is None else total - self.accounted_before,
            type(accountant).__name__,
            mechanism,
            None if asked is None else float(asked),
            self.adaptive or "target_unclipped_quantile" in self.settings,
        )

    def _target(self) -> Target | str:
        wanted, delta = (self.settings.get(name) for name in ("target_epsilon", "target_delta"))
        if wanted is None or delta is None:
            return "no ε was asked for: make_private got a noise multiplier"
        if not self.steps:
            return "no private step was taken"
        return Target(float(wanted), float(delta), float(self.engine.get_epsilon(delta)))

    def _noise(self) -> Noise:
        tally = self.noise
        weighed = [WeighedNoise(w.name, w.size, w.steps, w.squares, w.least, w.missing) for w in tally.parameters]
        return Noise(tally.silent, tally.coarse, min(self.drawn, default=1.0), weighed, comparisons(tally))

    def _ghost(self) -> GhostNorms | str:
        if not self.ghost:
            return "no ghost clipping"
        norms = self.clip_norms or {(float(self.module.max_grad_norm), float(self.optimizer.max_grad_norm))}
        return GhostNorms([list(pair) for pair in sorted(norms)])

    def _moved(self) -> Moved:
        # What only counts batches is no statistic of records.
        counters = {name for name, b in self.root.named_buffers() if b.numel() == 1 and not b.is_floating_point()}
        moved = [name for name in self.buffers.moved() if name not in counters]
        unprotected, private = self.unprotected.moved(), len(self.weights.moved())
        return Moved(len(self.weights), private, len(self.unprotected), unprotected, len(self.buffers), moved)

    def _others(self) -> OtherSteps:
        inner = self.optimizer.original_optimizer
        return OtherSteps([[type(one).__name__, one is inner, many] for one, many in self.steps_taken.bare()])

    def close(self) -> None:
        self.kept.close()
        self.steps_taken.close()
        self.inputs.close()


def _length(loader: Any) -> int | None:
    try:
        return len(loader)
    except TypeError:
        return None


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
