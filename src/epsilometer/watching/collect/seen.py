"""What is seen of one torch training, whoever makes it private: its model, and every step since."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import torch

from epsilometer.noise_sample import NoiseSample
from epsilometer.watching.collect.comparisons import comparisons
from epsilometer.watching.collect.drawn import NoisySum
from epsilometer.watching.collect.inputs import Inputs
from epsilometer.watching.collect.kept import KeptGradients
from epsilometer.watching.collect.mixing import mixing, mixing_batch_norms, plain
from epsilometer.watching.collect.movement import Places, StepCounter, count_private
from epsilometer.watching.collect.noise import NoiseTally
from epsilometer.watching.collect.ranks import RankShares, several_processes
from epsilometer.watching.collect.reseeded import Reseeded
from epsilometer.watching.collect.seeds import seeds
from epsilometer.watching.facts import PARTS, Facts, Kept, Moved, Noise, OtherSteps, Steps, WeighedNoise


class SeenTraining:
    """Told of every step by whoever has taken hold of the training: `noised`, and `stepped` once it is accounted for.

    A framework that knows more inherits this and adds to `parts`.
    """

    noise_unseen: ClassVar[str] = "the noise of a step was not seen"

    def __init__(
        self,
        root: Any,
        parameters: Callable[[], Iterable[torch.Tensor]],
        optimizer: Callable[[], Any] = lambda: None,
        *,
        batch_first: bool = True,
    ) -> None:
        """The module; those of its parameters that are made private, and who takes steps with them, as they are at any
        time."""
        self.root, self._parameters, self._optimizer = root, parameters, optimizer
        self._names = {id(p): plain(name) for name, p in root.named_parameters()}
        self._private = {id(p) for p in parameters()}
        self.unprotected = Places(lambda: self._trained(private=False))
        self.weights = Places(lambda: self._trained(private=True))
        self.buffers = Places(lambda: {plain(name): buffer for name, buffer in root.named_buffers()})
        self.batch_norms: list[str] | None = None  # that take their statistics from the batch
        self.modes: list[tuple[Any, bool]] = []  # of its parts, in the first step: training or evaluation
        self.steps_taken = StepCounter(root.parameters())
        self.inputs = Inputs(root, batch_first)
        self.noise = NoiseTally()
        self.kept = KeptGradients(parameters, optimizer, self.name_of)
        self.batch_sizes: list[int] = []
        self.accounted: list[tuple[float, float]] = []  # σ and sample rate of steps that reached the accountant
        self.drawn: list[float] = []  # σ while noise was drawn / σ that was then accounted, of each step
        self._sigma = 0.0
        self.followed = 0  # steps that came to their end
        self.seed: int | None = None
        self.own_generator = False
        self.reseeded = Reseeded()
        self.trouble = ""
        self._several = False
        self.ranks: RankShares | None = None  # once several processes take a step

    def name_of(self, parameter: torch.Tensor) -> str:
        return self._names.get(id(parameter), "?")

    @property
    def steps(self) -> int:
        return self.noise.steps

    @property
    def several_processes(self) -> bool:
        self._several = self._several or several_processes()  # a script may leave the others before its end
        return self._several

    def noised(
        self,
        sums: Sequence[NoisySum],
        noise_multiplier: float,
        scale: float,
        *,
        records: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        """Noise was added to the sums of clipped gradients, which should have deviation `scale`; nothing is divided so
        far. How many records the batch had, if that is known, and where noise comes from, if not from torch's own
        generator."""
        optimizer = self._optimizer()
        if optimizer is not None:
            count_private(optimizer)
        if self.batch_norms is None:  # a script may switch to evaluation at its end
            self.batch_norms = mixing_batch_norms(self.root)
            self.modes = [(part, part.training) for part in self.root.modules()]
        if records is not None:
            self.batch_sizes.append(records)
        if self.seed is None:
            self.own_generator = generator is not None
            self.seed = torch.initial_seed() if generator is None else generator.initial_seed()
        self.reseeded.noised(generator)
        self._sigma = noise_multiplier
        if not self.several_processes:
            self.kept.leave(sums)
        if self.several_processes and torch.distributed.get_rank() > 0:  # whose noise may be that of another rank
            self.noise.steps, self.noise.silent = self.noise.steps + 1, self.noise.silent + 1
        else:
            self.noise.add(sums, scale)

    def drawn_noise(self, scale: float) -> NoiseSample | None:
        """That of the step that was just taken, in units of the deviation that it should have."""
        return None if self.several_processes else self.noise.drawn.sample(scale)

    def stepped(self, accounted: tuple[float, float] | None) -> None:
        """The step has come to its end; the noise multiplier and sample rate with which it was accounted, if it was."""
        self.followed += 1
        if self.steps < self.followed and not self.several_processes:
            self.trouble = self.noise_unseen
        if accounted is not None:
            self.account(accounted)

    def account(self, accounted: tuple[float, float]) -> None:
        """An accountant was told of the step that was noised last."""
        self.accounted.append(accounted)
        self.drawn.append(self._sigma / accounted[0] if accounted[0] > 0 else 1.0)

    def history(self) -> list[list[float]]:
        """What was accounted while it was followed: runs of steps as [noise multiplier, sample rate, number]."""
        runs: list[list[float]] = []
        for sigma, rate in self.accounted:
            if runs and runs[-1][:2] == [sigma, rate]:
                runs[-1][2] += 1
            else:
                runs.append([sigma, rate, 1])
        return runs

    def facts(self, apart: Callable[[], AbstractContextManager[None]]) -> Facts:
        """All that is known by now. Where crafted records go through the script's code, `apart` is around it."""
        found: dict[str, Any] = {}
        troubles: dict[str, str] = {}
        for part, tell in self.parts().items():
            assert part in PARTS
            if self.trouble:
                troubles[part] = f"the training could not be followed ({self.trouble})"
                continue
            try:
                with apart():
                    told = tell()
            except Exception as error:
                told = f"could not be tried ({type(error).__name__}: {error})"
            (troubles if isinstance(told, str) else found)[part] = told
        return Facts(several_processes=self.several_processes, troubles=troubles, **found, **self.remarks())

    def parts(self) -> dict[str, Callable[[], Any]]:
        """Of each part of `Facts`, who tells it; words in its place say why it is not known."""
        return {
            "steps": lambda: Steps(self.steps, self.followed),
            "noise": self._noise,
            "seeds": lambda: seeds(self.noise, self.seed, self.own_generator, self.reseeded),
            "kept": lambda: Kept(self.kept.steps, dict(self.kept.changed)),
            "mixing": lambda: mixing(self.root, self.inputs.records, self.batch_norms, self.modes),
            "moved": self._moved,
            "others": self._others,
        }

    def remarks(self) -> dict[str, Any]:
        """Other fields of `Facts`, of what makes the training private."""
        return {}

    def close(self) -> None:
        self.kept.close()
        if self.ranks is not None:
            self.ranks.close()
        self.steps_taken.close()
        self.inputs.close()

    def _trained(self, private: bool) -> dict[str, torch.Tensor]:
        trained = ((plain(name), p) for name, p in self.root.named_parameters() if p.requires_grad)
        return {name: p for name, p in trained if (id(p) in self._private) == private}

    def _noise(self) -> Noise:
        tally = self.noise
        weighed = [WeighedNoise(w.name, w.size, w.steps, w.squares, w.least, w.missing) for w in tally.parameters]
        return Noise(tally.silent, tally.coarse, min(self.drawn, default=1.0), weighed, comparisons(tally))

    def _moved(self) -> Moved:
        # What only counts batches is no statistic of records.
        counters = {name for name, b in self.root.named_buffers() if b.numel() == 1 and not b.is_floating_point()}
        moved = [name for name in self.buffers.moved() if name not in counters]
        unprotected, private = self.unprotected.moved(), len(self.weights.moved())
        return Moved(len(self.weights), private, len(self.unprotected), unprotected, len(self.buffers), moved)

    def _others(self) -> OtherSteps:
        inner = self._optimizer()
        bare = self.steps_taken.bare()
        private = self.steps_taken.steps - sum(many for _, many in bare) - self.steps
        return OtherSteps([[type(one).__name__, one is inner, many] for one, many in bare], max(private, 0))
