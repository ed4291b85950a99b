"""A classifier from noisy sums: one Gaussian mechanism. It knows nothing of Epsilometer."""

import numpy as np

CLIP_NORM = 1.0


def train(data, seed, noise_multiplier=1.0):
    """The noisy sum of each class's records, clipped; a record scores for a class by its product with that sum."""
    x, y = data
    clipped = x * np.minimum(1.0, CLIP_NORM / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12))
    sums = np.stack([clipped[y == label].sum(axis=0) for label in (0, 1)])
    sums += np.random.default_rng(seed).normal(scale=noise_multiplier * CLIP_NORM, size=sums.shape)
    return lambda records: records @ sums.T
