"""Noise that is drawn on the host, outside JAX: the script's generators are put back after every use."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def apart(draw: np.random.Generator) -> Iterator[None]:
    """Meanwhile numpy's and Python's global generators are seeded by `draw`; afterwards they are as they were."""
    legacy, plain = np.random.get_state(), random.getstate()  # noqa: NPY002 (the script's, not ours)
    try:
        np.random.seed(int(draw.integers(2**32)))  # noqa: NPY002
        random.seed(int(draw.integers(2**63)))
        yield
    finally:
        np.random.set_state(legacy)  # noqa: NPY002
        random.setstate(plain)
