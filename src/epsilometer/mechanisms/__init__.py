"""Private mechanisms whose leak is known in closed form: what an audit measures can be checked against the truth."""

from epsilometer.mechanisms.regression import example_records
from epsilometer.mechanisms.ridge import PrivateRidge, norm_limit, paper_sensitivity, proved_sensitivity
from epsilometer.mechanisms.ridge_poison import RidgePoison, craft_poison, midpoint_epsilon

__all__ = [
    "PrivateRidge",
    "RidgePoison",
    "craft_poison",
    "example_records",
    "midpoint_epsilon",
    "norm_limit",
    "paper_sensitivity",
    "proved_sensitivity",
]
