"""Counter-based randomness: every random word is a pure function of (key, stream, step, index).

Threefry-4x32-20 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"). A trial's key comes from its
`SeedSequence`; nothing has a state, so nothing depends on the order, the grouping or the process in which trials
run. The functions here are written once and used twice: on numpy arrays, and compiled (see compiled.py).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]

# Streams keep the purposes of randomness apart: the same (key, step, index) never serves two of them.
SAMPLE, NOISE, COIN, INIT = 0, 1, 2, 3

u32 = np.uint32


def trial_key(seeds: np.random.SeedSequence) -> Words:
    """The 128-bit key of a trial."""
    return seeds.generate_state(4, np.uint32).astype(np.uint32, copy=False)


def rotate(x, bits):
    return u32((x << u32(bits)) | (x >> u32(32 - bits)))


def mix(a, b, bits):
    a = u32(a + b)
    return a, u32(rotate(b, bits) ^ a)


def four_rounds(x, bits):
    a, b, c, d = x
    a, b = mix(a, b, bits[0])
    c, d = mix(c, d, bits[1])
    a, d = mix(a, d, bits[2])
    c, b = mix(c, b, bits[3])
    a, b = mix(a, b, bits[4])
    c, d = mix(c, d, bits[5])
    a, d = mix(a, d, bits[6])
    c, b = mix(c, b, bits[7])
    return a, b, c, d


def inject(x, a, b, c, d, count):
    return u32(x[0] + a), u32(x[1] + b), u32(x[2] + c), u32(x[3] + d + u32(count))


EVEN = (10, 26, 11, 21, 13, 27, 23, 5)
ODD = (6, 20, 17, 11, 25, 10, 18, 20)
PARITY = u32(0x1BD11BDA)


def threefry(c0, c1, c2, c3, k0, k1, k2, k3):
    """Four words for a counter of four words under a key of four words."""
    k4 = u32(PARITY ^ k0 ^ k1 ^ k2 ^ k3)
    x = u32(c0 + k0), u32(c1 + k1), u32(c2 + k2), u32(c3 + k3)
    x = inject(four_rounds(x, EVEN), k1, k2, k3, k4, 1)
    x = inject(four_rounds(x, ODD), k2, k3, k4, k0, 2)
    x = inject(four_rounds(x, EVEN), k3, k4, k0, k1, 3)
    x = inject(four_rounds(x, ODD), k4, k0, k1, k2, 4)
    return inject(four_rounds(x, EVEN), k0, k1, k2, k3, 5)


def words(key: Words, stream: int, step: int, count: int) -> Words:
    """`count` random words. Word i is lane i // blocks of block i % blocks, where blocks = ⌈count/4⌉."""
    blocks = np.arange(-(-count // 4), dtype=np.uint32)
    zeros = np.zeros_like(blocks)
    counter = (blocks, zeros + u32(step), zeros + u32(stream), zeros)
    with np.errstate(over="ignore"):
        lanes = threefry(*counter, *(zeros + k for k in key))
    return np.concatenate(lanes)[:count]


def below(rate: float) -> np.uint64:
    """The threshold t such that a word is < t with probability `rate` (to within 2⁻³²)."""
    return np.uint64(round(rate * 2.0**32))


def tossed(key: Words, step: int, rate: float) -> bool:
    """The coin of a step: whether a crafted gradient is sampled."""
    return bool(words(key, COIN, step, 4)[0] < below(rate))


def normals(key: Words, step: int, count: int) -> NDArray[np.float32]:
    """`count` standard normal numbers by Box and Muller's transform of pairs of lanes.

    u = (word + ½)·2⁻³² keeps its relative precision near 0, so tails reach 6.6 standard deviations.
    """
    blocks = -(-count // 4)
    w = words(key, NOISE, step, 4 * blocks).reshape(4, blocks)
    return _box_muller(w).reshape(-1)[:count].astype(np.float32)


def normal_rows(keys: Words, step: int, count: int) -> NDArray[np.float64]:
    """`count` standard normal numbers for each key, a row each: `normals` of that key, in double precision."""
    blocks = np.arange(-(-count // 4), dtype=np.uint32)
    with np.errstate(over="ignore"):
        lanes = threefry(blocks, u32(step), u32(NOISE), u32(0), *(keys[:, [word]] for word in range(4)))
    found = _box_muller(np.stack(lanes)).reshape(4, len(keys), len(blocks))
    return np.ascontiguousarray(found.transpose(1, 0, 2).reshape(len(keys), -1)[:, :count])


def _box_muller(w: Words) -> NDArray[np.float64]:
    """Lanes 0 and 2 of four are radii, 1 and 3 angles; in pairs: (2, 2, …)."""
    lanes = w.astype(np.float64)
    radius = np.sqrt(-2.0 * np.log((lanes[::2] + 0.5) * 2.0**-32))
    angle = 2.0 * np.pi * (lanes[1::2] * 2.0**-32)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
