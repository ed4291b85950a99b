"""An image whose features lie where those of natural images hardly vary (Jagielski et al. 2020, Appendix C)."""

from __future__ import annotations

import numpy as np

from epsilometer.data import FeatureDataset
from epsilometer.training import Array

STEPS, RATE = 1000, 0.02  # of projected gradient descent, in pixels of [0, 1]
LOW = 0.9  # this share of the directions counts as those of low variance
STARTS = 4  # natural images to start from: from one in eight or so the descent ends far above where others do


def image_along(data: FeatureDataset, seed: np.random.SeedSequence) -> Array:
    """Flat pixels in [0, 1], found by projected gradient descent through the frozen extractor.

    What is lowered is Σ|f(x)·v| over directions v of high variance less the same over those of low variance,
    from some natural images on, of which the one that comes lowest is taken. It is divided by ‖f(x)‖: clipping takes
    the length away, so only direction counts.
    """
    import torch

    _, _, directions = np.linalg.svd(data.x, full_matrices=False)
    first = round(len(directions) * (1 - LOW))
    signs = torch.ones(len(directions))
    signs[first:] = -1.0
    basis, extract = torch.tensor(directions), data.extractor.module()
    rows = np.random.default_rng(seed).choice(len(data), min(STARTS, len(data)), replace=False)
    images = torch.tensor(data.raw.x[rows], requires_grad=True)

    def losses() -> torch.Tensor:
        features = extract(images)
        found: torch.Tensor = ((features @ basis.T).abs() * signs).sum(1) / features.norm(dim=1)
        return found

    optimizer = torch.optim.Adam([images], lr=RATE)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # sums in one order: the poison must be the same in every process
    try:
        for _ in range(STEPS):
            optimizer.zero_grad()
            losses().sum().backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            with torch.no_grad():
                images.clamp_(0.0, 1.0)
        best = int(losses().nan_to_num(nan=torch.inf).argmin())  # an image without any features has none
    finally:
        torch.set_num_threads(threads)
    lowest: Array = images.detach().numpy()[best]
    return lowest
