"""Reconstruction: records rebuilt from sums and gradients, and limits for unbiased ones."""

from epsilometer.reconstruction.attacks import Differencing, GradientInversion, RecordAttack
from epsilometer.reconstruction.differencing import difference, noisy_sum
from epsilometer.reconstruction.inversion import invert_gradient, invert_layer, released_gradient
from epsilometer.reconstruction.limits import fisher_limit, gaussian_renyi, renyi_limit
from epsilometer.reconstruction.plan import ReconstructionPlan
from epsilometer.reconstruction.quality import Reconstruction
from epsilometer.reconstruction.result import LIMITS_ARE, AtNoise, ReconstructionResult, error_words
from epsilometer.reconstruction.runner import run_reconstruction
from epsilometer.reconstruction.spec import (
    RECORD_ATTACKS,
    ReconstructionSpec,
    Study,
    parse_reconstruction,
    read_reconstruction,
    reconstruction_from_dict,
)

__all__ = [
    "LIMITS_ARE",
    "RECORD_ATTACKS",
    "AtNoise",
    "Differencing",
    "GradientInversion",
    "Reconstruction",
    "ReconstructionPlan",
    "ReconstructionResult",
    "ReconstructionSpec",
    "RecordAttack",
    "Study",
    "difference",
    "error_words",
    "fisher_limit",
    "gaussian_renyi",
    "invert_gradient",
    "invert_layer",
    "noisy_sum",
    "parse_reconstruction",
    "read_reconstruction",
    "reconstruction_from_dict",
    "released_gradient",
    "renyi_limit",
    "run_reconstruction",
]
