"""Random numbers for the canaries that the script does not notice.

The canaries' noise is drawn by the script's own code from the script's own generators. Their states are put back
afterwards, so the script goes on with the numbers it would have had. In between they are seeded afresh: with the states
as they are, canaries would get the numbers that the script draws next, and in a small model those that the canaries of
the next step get again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import torch

_OTHER = 6_364_136_223_846_793_005  # what second runs add to their seeds
DEVICES = ("cpu", "cuda", "mps")


@contextmanager
def apart(device: torch.device, generator: Any, draw: np.random.Generator) -> Iterator[None]:
    """Meanwhile every generator that noise could come from is seeded by `draw`; afterwards all are as they were."""
    restores: list[Callable[[], object]] = []
    try:
        _set_apart(torch.default_generator, draw, restores)
        if device.type == "cuda":
            index = torch.cuda.current_device() if device.index is None else device.index
            _set_apart(torch.cuda.default_generators[index], draw, restores)
        elif device.type == "mps":
            state = torch.mps.get_rng_state()
            restores.append(lambda: torch.mps.set_rng_state(state))
            torch.mps.manual_seed(_seed(draw))
        if generator is not None:
            with suppress(RuntimeError, NotImplementedError):  # a device of true randomness has no state to put back
                _set_apart(generator, draw, restores)
        legacy, plain = np.random.get_state(), random.getstate()  # noqa: NPY002 (the script's, not ours)
        restores += [lambda: np.random.set_state(legacy), lambda: random.setstate(plain)]  # noqa: NPY002
        np.random.seed(_seed(draw) % 2**32)  # noqa: NPY002
        random.seed(_seed(draw))
        yield
    finally:
        for restore in reversed(restores):
            restore()


def give_other_seeds() -> None:
    """From now on torch.manual_seed sets another seed than it is told, always the same other one: for a second run that
    shows whether the script's noise follows its seed. Torch may have been seeded before: it gets another seed now."""
    original = torch.manual_seed

    def manual_seed(seed: Any) -> torch.Generator:
        return original((int(seed) + _OTHER) % 2**63)

    torch.manual_seed = torch.random.manual_seed = manual_seed
    manual_seed(torch.initial_seed())


def _set_apart(generator: Any, draw: np.random.Generator, restores: list[Callable[[], object]]) -> None:
    state = generator.get_state()
    restores.append(lambda: generator.set_state(state))
    generator.manual_seed(_seed(draw))


def _seed(draw: np.random.Generator) -> int:
    return int(draw.integers(2**63))
