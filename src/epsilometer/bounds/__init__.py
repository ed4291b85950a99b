"""Evidence → lower bounds on ε. numpy and scipy only; one method a file."""

from epsilometer.bounds.clopper_pearson import clopper_pearson
from epsilometer.bounds.curve import gaussian_strength, largest_noise_multiplier, refute_curve
from epsilometer.bounds.power import eps_opt, refutation_power, simulated_power, trials_to_refute
from epsilometer.bounds.rates import epsilon_from_rates, upper_limit
from epsilometer.bounds.result import ClaimTest, ErrorPair, Guesses, Kind, LowerBound, NoiseLimit, Proof
from epsilometer.bounds.strength import attack_strength
from epsilometer.bounds.thresholds import (
    STRATEGIES,
    BestOnSame,
    Fixed,
    Split,
    ThresholdStrategy,
    UnionBound,
    strategy_named,
)

__all__ = [
    "STRATEGIES",
    "BestOnSame",
    "ClaimTest",
    "ErrorPair",
    "Fixed",
    "Guesses",
    "Kind",
    "LowerBound",
    "NoiseLimit",
    "Proof",
    "Split",
    "ThresholdStrategy",
    "UnionBound",
    "attack_strength",
    "clopper_pearson",
    "eps_opt",
    "epsilon_from_rates",
    "gaussian_strength",
    "largest_noise_multiplier",
    "refutation_power",
    "refute_curve",
    "simulated_power",
    "strategy_named",
    "trials_to_refute",
    "upper_limit",
]
