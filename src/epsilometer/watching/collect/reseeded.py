"""Whether the generator of noise was seeded again while the training went on, or put back to where it had been."""

from __future__ import annotations

import hashlib
from typing import Any

import torch

from epsilometer.watching.collect.aside import Aside

_MOST = 8  # seeds that are kept
_NUMBERS = slice(24, 24 + 624 * 8)  # of a Mersenne twister's state: what lies around says how many of them are used up


class Reseeded(Aside):
    """Told of every step's noise."""

    def __init__(self) -> None:
        super().__init__()
        self.again: list[list[int]] = []  # the step before whose noise, and the seed
        self.back: list[int] = []  # a step, and that at which the generator had been before; empty if it never was
        self._steps = 0
        self._seed: int | None = None
        self._here = b""
        self._been: dict[bytes, int] = {}

    def noised(self, generator: Any) -> None:
        """One step got its noise from this one, or from torch's own."""
        if self.trouble:
            return
        with self.look():
            self._steps += 1
            generator = torch.default_generator if generator is None else generator
            seed = int(generator.initial_seed())
            if self._seed is not None and seed != self._seed and len(self.again) < _MOST:
                self.again.append([self._steps, seed])
            self._seed = seed
            numbers = generator.get_state().numpy()[_NUMBERS]
            here = hashlib.blake2b(numbers.tobytes(), digest_size=16).digest()
            if here != self._here and here in self._been and not self.back:
                self.back = [self._steps, self._been[here]]
            self._been.setdefault(here, self._steps)
            self._here = here
