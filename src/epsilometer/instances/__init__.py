"""Privacy of single records: whose ε is it?"""

from epsilometer.instances.composition import DIRECTIONS, Holder, at_worst, certified, expected, promised
from epsilometer.instances.individual import individual_epsilons
from epsilometer.instances.mean_rule import Batches, StepBound, mean_rule, paired, sensitivity_distribution
from epsilometer.instances.moments import StepMoments
from epsilometer.instances.monte_carlo import log_mean_limit

__all__ = [
    "DIRECTIONS",
    "Batches",
    "Holder",
    "StepBound",
    "StepMoments",
    "at_worst",
    "certified",
    "expected",
    "individual_epsilons",
    "log_mean_limit",
    "mean_rule",
    "paired",
    "promised",
    "sensitivity_distribution",
]
