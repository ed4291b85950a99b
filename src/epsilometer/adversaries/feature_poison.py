"""An image whose features lie where those of natural images hardly vary (Jagielski et al. 2020, Appendix C)."""

from __future__ import annotations

import numpy as np

from epsilometer.data import FeatureDataset
from epsilometer.training import Array

STEPS, RATE = 1000, 0.02  # of projected gradient descent, in pixels of [0, 1]
LOW = 0.9  # this share of the directions counts as those of low variance


def image_along(data: FeatureDataset, seed: np.random.SeedSequence) -> Array:
    """Flat pixels in [0, 1], found by projected gradient descent through the frozen extractor.

    What is lowered is Σ|f(x)·v| over directions v of high variance less the same over those of low variance,
    from a natural image on. It is divided by ‖f(x)‖: clipping takes the length away, so only direction counts.
    """
    import torch

    _, _, directions = np.linalg.svd(data.x, full_matrices=False)
    first = round(len(directions) * (1 - LOW))
    signs = torch.ones(len(directions))
    signs[first:] = -1.0
    basis, extract = torch.tensor(directions), data.extractor.module()
    start = data.raw.x[np.random.default_rng(seed).integers(len(data))]
    image = torch.tensor(start[None], requires_grad=True)
    optimizer = torch.optim.Adam([image], lr=RATE)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # sums in one order: the poison must be the same in every process
    try:
        for _ in range(STEPS):
            features = extract(image)[0]
            loss = ((basis @ features).abs() * signs).sum() / features.norm()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                image.clamp_(0.0, 1.0)
    finally:
        torch.set_num_threads(threads)
    found: Array = image.detach().numpy()[0]
    return found
