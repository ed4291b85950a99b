"""A loop that somebody wrote by hand, watched: all that is this framework's own.

The loop clips and adds noise by two functions, `clip(gradients, clip_norm)` and `add_noise(sums, deviation)`, on lists
with a tensor a parameter. It calls `clip` and `add_noise` of this object instead, and `stepped` after its step.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from epsilometer.arrays import Floats
from epsilometer.noise_sample import NoiseSample
from epsilometer.watching.collect.canaries import canary_rows
from epsilometer.watching.collect.clipping import clipping, gradients_with
from epsilometer.watching.collect.drawn import NoisySum
from epsilometer.watching.collect.inspection import Inspection
from epsilometer.watching.collect.randomness import apart
from epsilometer.watching.collect.seen import SeenTraining
from epsilometer.watching.facts import Accounted, Facts, Sampling
from epsilometer.watching.privatizer import Coins, Ledger, Privatizer, Stated
from epsilometer.watching.watch import Watch

Tensors = list[torch.Tensor]


class HandWritten(Privatizer):
    shows_noise = True

    def __init__(
        self,
        watch: Watch,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        clip: Callable[[Tensors, float], Tensors],
        add_noise: Callable[[Tensors, float], Tensors],
        accountant: Any,  # with a history of (noise multiplier, sample rate, steps)
        *,
        noise_multiplier: float,
        clip_norm: float,
        records: int,
    ) -> None:
        self._clip, self._add_noise, self._accountant = clip, add_noise, accountant
        self._noise_multiplier, self._clip_norm, self._records = noise_multiplier, clip_norm, records
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        self._rows = 0
        self._inspection = Inspection(lambda: _Seen(self, model, optimizer))
        self._training = watch.begin(self)

    # Called by the loop

    def clip(self, gradients: Tensors, clip_norm: float) -> Tensors:
        self._rows = len(gradients[0])
        return self._clip(gradients, clip_norm)

    def add_noise(self, sums: Tensors, deviation: float) -> Tensors:
        noisy = self._add_noise(sums, deviation)
        parts = zip(self._parameters, sums, noisy, strict=True)
        self._inspection.tell(lambda seen: seen.took_noise([NoisySum(p, seen.name_of(p), s, n) for p, s, n in parts]))
        return noisy

    def stepped(self) -> None:
        self._inspection.tell(lambda seen: seen.stepped(seen.new_in_history()))
        self._training.play()

    # Asked by the watched training

    def stated(self) -> Stated:
        return Stated("a loop written by hand", self._noise_multiplier, self._clip_norm)

    def insert(self, coins: Coins, draw: np.random.Generator) -> Floats:
        """On a parameter of their own, through both functions once more."""
        rows = canary_rows(coins, self._clip_norm, self._parameters[0])
        with apart(rows.device, None, draw):
            (noisy,) = self._add_noise(self._clip([rows], self._clip_norm), self._noise_multiplier * self._clip_norm)
        return np.asarray(noisy.double().numpy() / self._clip_norm)

    def noise(self, noise_multiplier: float) -> NoiseSample | None:
        return self._inspection.ask(lambda seen: seen.drawn_noise(noise_multiplier * self._clip_norm))

    def accounted(self) -> Ledger:
        return Ledger(self._accountant, [[float(part) for part in one] for one in self._accountant.history])

    def facts(self, *, end: bool) -> Facts:
        return self._inspection.facts(end=end)


class _Seen(SeenTraining):
    def __init__(self, loop: HandWritten, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
        super().__init__(model, lambda: loop._parameters, lambda: optimizer)
        self._loop, self._history = loop, list(loop._accountant.history)

    def took_noise(self, sums: list[NoisySum]) -> None:
        loop = self._loop
        self.noised(sums, loop._noise_multiplier, loop._noise_multiplier * loop._clip_norm, records=loop._rows)

    def new_in_history(self) -> tuple[float, float] | None:
        before, self._history = self._history, list(self._loop._accountant.history)
        return None if self._history == before else tuple(self._history[-1][:2])

    def parts(self) -> dict[str, Callable[[], Any]]:
        return {**super().parts(), "sampling": self._sampling, "accounted": self._told, "clipping": self._clipping}

    def _sampling(self) -> Sampling:
        return Sampling(True, self._loop._records, None, None, list(self.batch_sizes), None)

    def _told(self) -> Accounted:
        accountant = self._loop._accountant
        total = sum(int(many) for *_, many in accountant.history)
        asked = self._loop._noise_multiplier
        return Accounted(
            self.history(), total, type(accountant).__name__, accountant.mechanism(), asked, adaptive=False
        )

    def _clipping(self) -> Any:
        loop, limit = self._loop, self._loop._clip_norm
        many = len(loop._parameters)
        return clipping(lambda norms: loop._clip(gradients_with(norms, loop._parameters), limit), many, limit)
