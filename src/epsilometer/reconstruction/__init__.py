"""Reconstruction: records rebuilt from sums and gradients, and limits for unbiased ones."""

from epsilometer.reconstruction.differencing import difference, noisy_sum
from epsilometer.reconstruction.inversion import invert_gradient, invert_layer, released_gradient
from epsilometer.reconstruction.limits import fisher_limit, gaussian_renyi, renyi_limit
from epsilometer.reconstruction.quality import Reconstruction

__all__ = [
    "Reconstruction",
    "difference",
    "fisher_limit",
    "gaussian_renyi",
    "invert_gradient",
    "invert_layer",
    "noisy_sum",
    "released_gradient",
    "renyi_limit",
]
