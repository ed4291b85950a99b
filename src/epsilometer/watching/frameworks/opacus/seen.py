"""What was seen of one private training: what `make_private` got and gave, and every step since."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import torch

from epsilometer.noise_sample import NoiseSample
from epsilometer.watching.collect.batches import DrawnBatches, sampled_by
from epsilometer.watching.collect.copies import copies
from epsilometer.watching.collect.drawn import NoisySum
from epsilometer.watching.collect.layers import layer_norms
from epsilometer.watching.collect.ranks import Given, RankShares, local
from epsilometer.watching.collect.records import sample_of
from epsilometer.watching.collect.seen import SeenTraining
from epsilometer.watching.collect.stepping import Stepping
from epsilometer.watching.facts import Accounted, Clipping, GhostNorms, LayerNorms, Sampling, Target
from epsilometer.watching.frameworks.opacus.accountants import history_of, last_accounted, steps_accounted
from epsilometer.watching.frameworks.opacus.by_hand import NoEngine
from epsilometer.watching.frameworks.opacus.by_hand import stepped as took_a_step
from epsilometer.watching.frameworks.opacus.crafted import through_module, through_optimizer
from epsilometer.watching.frameworks.opacus.shares import SeenShares
from epsilometer.watching.frameworks.opacus.size import size
from epsilometer.watching.frameworks.opacus.spending import note, spent, together
from epsilometer.watching.frameworks.opacus.support import (
    another_mechanism,
    communicates,
    is_sharded,
    own_clipping,
    skips,
)

_RECORDS = 512  # in a crafted batch, at most


class SeenOpacus(SeenTraining):
    """One call of `make_private` and the steps of the optimizer that it returned."""

    noise_unseen = "its add_noise was replaced, so that the noise of a step was not seen"

    def __init__(self, engine: Any, module: Any, optimizer: Any, loader: Any, settings: Mapping[str, Any]) -> None:
        self.engine, self.module, self.optimizer, self.loader = engine, module, optimizer, loader
        self.settings = dict(settings)
        super().__init__(
            settings.get("module", module),
            lambda: optimizer.params,
            lambda: optimizer.original_optimizer,
            batch_first=bool(settings.get("batch_first", True)),
        )
        self.ghost = hasattr(module, "get_clipping_coef") or hasattr(module, "get_coeff")
        self._before = steps_accounted(engine.accountant) or 0
        self.clip_norms: set[tuple[float, float]] = set()  # of the module and of the optimizer, in ghost mode
        self.shares = SeenShares()
        self.drawn_batches = DrawnBatches(self.records)
        self.stepping = Stepping(lambda: optimizer.original_optimizer, self.name_of)
        self.clipped_to = 0.0  # in the step under way
        self._pending: list[int] | None = None
        self._last = last_accounted(engine.accountant)
        self.number = note(self)
        self._limit = 0.0  # the norm for which the noise of the step under way was made

    @property
    def by_hand(self) -> bool:
        """Was its optimizer made by no engine?"""
        return isinstance(self.engine, NoEngine)

    @property
    def accounted_before(self) -> int:
        """Steps that its accountant had."""
        return int(self.engine.before) if self.by_hand else self._before

    @property
    def records(self) -> int | None:
        """How many records the data set has."""
        try:
            return len(self.settings.get("data_loader", self.loader).dataset)
        except (TypeError, AttributeError):
            return None

    @functools.cached_property
    def sample(self) -> list[int]:
        """Of its records."""
        try:
            return sample_of(getattr(self.settings.get("data_loader", self.loader), "dataset", None))
        except Exception:  # a data set of another kind
            return []

    @property
    def poisson(self) -> bool:
        return bool(self.settings.get("poisson_sampling", True)) or sampled_by(self.loader)[0]

    @property
    def adaptive(self) -> bool:
        """Does clipping adapt, so that the noise of gradients is another one than the accounted?"""
        return any(hasattr(self.optimizer, name) for name in ("unclipped_num_std", "_adjusted_noise_multiplier"))

    def accumulated(self) -> None:
        """One physical batch was clipped; several may make one step."""
        self.clipped_to = max(self.clipped_to, float(self.optimizer.max_grad_norm))
        self._pending = self._pending or []
        self._pending.append(self._rows() or 0)
        self.drawn_batches.clipped(self._pending[-1])
        self.stepping.clipped()
        if is_sharded(self.optimizer):
            return
        if self.ghost:
            replaced = own_clipping(self.module)
            if replaced is not None:
                self.multiplied(replaced())
        else:
            self.shares.clipped(self.optimizer, self.steps + 1, more=skips(self.optimizer))

    def _rows(self) -> int | None:
        """Records whose gradients are there; with sharded parameters, their norms lie in the module."""
        norms = getattr(self.module, "per_sample_gradient_norms", None) if is_sharded(self.optimizer) else None
        return rows(self.optimizer) if norms is None else len(norms)

    def multiplied(self, factors: torch.Tensor) -> None:
        """A ghost module has said what its records are multiplied by."""
        self.shares.multiplied(self.module, factors, self.steps + 1)

    def noise_added(self) -> None:
        """Right after the script's own add_noise, before anything is divided."""
        optimizer = self.optimizer
        self._last = last_accounted(self.engine.accountant)
        if self.ghost:
            self.clip_norms.add((float(getattr(self.module, "max_grad_norm", 0.0)), float(optimizer.max_grad_norm)))
        clipping_seen, records = self._pending is not None, self._batch_size()
        if not clipping_seen and records is not None:
            self.drawn_batches.clipped(records)
        sums = [NoisySum(p, self.name_of(p), local(_sum_of(optimizer, p)), local(p.grad)) for p in optimizer.params]
        self.stepping.clipped()
        self.stepping.noised(sums, None if self.several_processes else records)
        self.noised(
            sums,
            float(optimizer.noise_multiplier),
            self._multiplier() * float(optimizer.max_grad_norm),
            records=records,
            generator=optimizer.generator,
        )
        self._limit = float(optimizer.max_grad_norm)
        self.drawn_batches.stepped()
        took_a_step(self)
        if self.several_processes:
            self.ranks = self.ranks or RankShares(lambda: optimizer.original_optimizer)
            self.ranks.noised(self.steps, sums, self._divisor(), self.drawn_batches.last)

    def noise_of_step(self, noise_multiplier: float) -> NoiseSample | None:
        """In units of what this multiplier asks for, at the largest norm that records of the step were clipped to; none
        where another law may be right."""
        if another_mechanism(self.optimizer):
            return None
        return self.drawn_noise(noise_multiplier * max(self.clipped_to, float(self.optimizer.max_grad_norm)))

    def step_ended(self) -> None:
        """After the accountant's hook."""
        self.clipped_to = 0.0
        last = last_accounted(self.engine.accountant)
        new = last is not None and last != self._last
        new = new and not self.by_hand  # else the accountant itself says so, now or later
        accounted = (float(last[1][0]), float(last[1][1])) if last is not None and new else None
        self.stepped(accounted)
        # Noise of another multiplier than is accounted hides parts of another length.
        more = max(1.0, self.drawn[-1]) if accounted else 1.0
        self.shares.noised(self.optimizer, self._limit * more, self.steps)

    def _divisor(self) -> float:
        """By what `scale_grad` divides."""
        optimizer = self.optimizer
        if optimizer.loss_reduction != "mean":
            return 1.0
        return float(optimizer.expected_batch_size * optimizer.accumulated_iterations)

    def given(self) -> tuple[RankShares, list[Given]] | None:
        """To steps that several processes took, since this was asked last."""
        return None if self.ranks is None else (self.ranks, self.ranks.taken())

    def accounted_as(self, noise_multiplier: float) -> None:
        """The step under way, which several processes take."""
        if self.ranks is not None:
            clipped = max(self.clipped_to, float(self.optimizer.max_grad_norm))
            world = self.ranks.world if is_sharded(self.optimizer) and self.averaged else 1
            self.ranks.accounted(noise_multiplier * clipped / world)

    @property
    def averaged(self) -> bool:
        """Is the sum over ranks divided by their number?"""
        return bool(self.optimizer.loss_reduction == "mean")

    def accounted_late(self, accounted: tuple[float, float]) -> None:
        """An accountant was told of a step that was taken before."""
        if len(self.accounted) < self.steps:
            self.account(accounted)

    def parts(self) -> dict[str, Callable[[], Any]]:
        """What would have to go through the module, or through parameters that lie in several processes, is not tried:
        it would make these wait for each other."""
        found = self._parts()
        if communicates(self.module):
            alone = ("mixing", *(("layers", "shares") if is_sharded(self.optimizer) else ()))
            found |= dict.fromkeys(alone, lambda: "the module lies in several processes: try it in one")
        return found

    def _parts(self) -> dict[str, Callable[[], Any]]:
        return {
            **super().parts(),
            "sampling": self._sampling,
            "batches": self.drawn_batches.facts,
            "copies": lambda: copies(getattr(self.settings.get("data_loader", self.loader), "dataset", None)),
            "accounted": self._accounted,
            "target": self._target,
            "together": lambda: together(self),
            "spent": lambda: spent(self),
            "clipping": self._clipping,
            "divisors": self.stepping.divisors,
            "between": self.stepping.between,
            "shares": self.shares.facts,
            "ghost": self._ghost,
            "layers": self._layers,
            "size": lambda: "several processes" if self.several_processes else size(self),
        }

    def remarks(self) -> dict[str, Any]:
        own = not type(self.optimizer).__module__.startswith("opacus")
        return {"another_mechanism": another_mechanism(self.optimizer), "own_optimizer": own}

    def close(self) -> None:
        super().close()
        self.stepping.close()

    def _batch_size(self) -> int | None:
        """Of the whole batch, which may have been put together from several."""
        if self._pending is not None:
            found, self._pending = sum(self._pending), []
            return found
        if getattr(self.optimizer, "_is_last_step_skipped", False):  # parts of the batch went unseen
            return None
        return self._rows()

    def _multiplier(self) -> float:
        """The noise multiplier that gradients need; adaptive clipping spends a part of the budget on its counts."""
        optimizer = self.optimizer
        multiplier = float(optimizer.noise_multiplier)
        if hasattr(optimizer, "unclipped_num_std"):  # up to Opacus 1.5.4 it overwrites its own multiplier
            stated = min(multiplier, float(self.settings.get("noise_multiplier", multiplier)))
            counts = 2 * float(optimizer.unclipped_num_std)
            return (stated**-2 - counts**-2) ** -0.5 if 0 < stated < counts else stated
        return float(getattr(optimizer, "_adjusted_noise_multiplier", multiplier))

    def _sampling(self) -> Sampling:
        optimizer, rate = self.optimizer, getattr(self.loader, "sample_rate", None)
        divided = optimizer.loss_reduction == "mean" and optimizer.expected_batch_size is not None
        return Sampling(
            self.poisson,
            self.records,
            None if rate is None else float(rate),
            _length(self.loader),
            [rows // max(1, self.drawn_batches.times) for rows in self.batch_sizes],
            float(optimizer.expected_batch_size) if divided else None,
            "" if self.poisson else self._own_sampler(),
            self.by_hand,
        )

    def _own_sampler(self) -> str:
        """Of which nobody knows how it draws; of an optimizer that was made by hand, nor what is promised of it."""
        if self.by_hand and self.loader is None:
            return "batches of no loader of torch"
        if self.by_hand and self.engine.accountant is None:
            return "batches that no accountant of Opacus knows"
        return sampled_by(self.loader)[1]

    def _accounted(self) -> Accounted | str:
        accountant = self.engine.accountant
        if accountant is None:
            return "no accountant of Opacus was told of its steps: who counts them?"
        total, mechanism = steps_accounted(accountant), None
        with suppress(Exception):  # an accountant of the script's own
            mechanism = str(accountant.mechanism())
        asked = self.settings.get("noise_multiplier")
        return Accounted(
            self.history(),
            None if total is None else total - self.accounted_before,
            type(accountant).__name__,
            mechanism,
            None if asked is None else float(asked),
            self.adaptive or "target_unclipped_quantile" in self.settings,
            [] if self.accounted_before else [[float(part) for part in one] for one in history_of(accountant) or ()],
        )

    def _target(self) -> Target | str:
        wanted, delta = (self.settings.get(name) for name in ("target_epsilon", "target_delta"))
        if wanted is None or delta is None:
            return "no ε was asked for: make_private got a noise multiplier"
        if not self.steps:
            return "no private step was taken"
        return Target(float(wanted), float(delta), float(self.engine.get_epsilon(delta)))

    def _clipping(self) -> Clipping:
        records = min(max(self.batch_sizes, default=2), _RECORDS)
        if self.ghost:
            return through_module(self.module, float(self.optimizer.max_grad_norm), records)
        return through_optimizer(self.optimizer, records)

    def _ghost(self) -> GhostNorms | str:
        if not self.ghost:
            return "no ghost clipping"
        norms = self.clip_norms or {(float(self.module.max_grad_norm), float(self.optimizer.max_grad_norm))}
        return GhostNorms([list(pair) for pair in sorted(norms)])

    def _layers(self) -> LayerNorms:
        return layer_norms(self.inputs.layers, self._norms)

    def _norms(self, layer: Any, records: torch.Tensor, weights: torch.Tensor) -> dict[str, torch.Tensor]:
        """What Opacus takes for the norms of these records."""
        module = self._wrapped(layer)
        (module(records) * weights).sum().backward()
        found: dict[str, torch.Tensor] = {}
        for name, p in layer.named_parameters():
            if p.requires_grad:
                found[name] = _norm_by_opacus(p)
        return found

    def _wrapped(self, layer: Any) -> Any:
        """The layer under Opacus' machinery, the same as in the training."""
        from opacus import grad_sample

        mode = str(self.settings.get("grad_sample_mode", "hooks"))
        if self.ghost:
            return grad_sample.grad_sample_module_fast_gradient_clipping.GradSampleModuleFastGradientClipping(
                layer, loss_reduction="sum", use_ghost_clipping=bool(getattr(self.module, "use_ghost_clipping", True))
            )
        if mode not in ("hooks", "functorch"):
            raise NotImplementedError
        options = {"force_functorch": True} if mode == "functorch" else {}
        return grad_sample.GradSampleModule(layer, loss_reduction="sum", **options)


def _sum_of(optimizer: Any, parameter: Any) -> Any:
    """Before noise, where this optimizer keeps it."""
    kept = getattr(optimizer, "grad_state", None)
    return parameter.summed_grad if kept is None else kept[parameter]["summed_grad"]


def _norm_by_opacus(parameter: Any) -> torch.Tensor:
    """Of every record's gradient there, after a backward pass."""
    norms: torch.Tensor | None = getattr(parameter, "_norm_sample", None)
    if norms is not None:
        return norms
    samples = getattr(parameter, "grad_sample", None)
    if not isinstance(samples, torch.Tensor):
        raise NotImplementedError
    found: torch.Tensor = samples.reshape(len(samples), -1).norm(dim=1)
    return found


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
