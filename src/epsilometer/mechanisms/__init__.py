"""Private mechanisms whose leak is known in closed form: what an audit measures can be checked against the truth."""

from epsilometer.bounded_records import example_records
from epsilometer.mechanisms.above_threshold import AboveThreshold
from epsilometer.mechanisms.callables import CallableMechanism
from epsilometer.mechanisms.catalogue import MECHANISMS, NamedMechanism, mechanism_named
from epsilometer.mechanisms.exponential import Exponential, one_item_profit
from epsilometer.mechanisms.gaussian import Gaussian
from epsilometer.mechanisms.input_perturbation import InputPerturbation
from epsilometer.mechanisms.laplace import Laplace
from epsilometer.mechanisms.mechanism import Domain, Mechanism
from epsilometer.mechanisms.noisy_max import ReportNoisyMax
from epsilometer.mechanisms.pca import DpPca
from epsilometer.mechanisms.randomized_response import RandomizedResponse
from epsilometer.mechanisms.ridge import PrivateRidge, norm_limit, paper_sensitivity, proved_sensitivity
from epsilometer.mechanisms.ridge_poison import RidgePoison, craft_poison, midpoint_epsilon
from epsilometer.mechanisms.sensitivity import NORMS, Sensitivity
from epsilometer.mechanisms.student import Student

__all__ = [
    "MECHANISMS",
    "NORMS",
    "AboveThreshold",
    "CallableMechanism",
    "Domain",
    "DpPca",
    "Exponential",
    "Gaussian",
    "InputPerturbation",
    "Laplace",
    "Mechanism",
    "NamedMechanism",
    "PrivateRidge",
    "RandomizedResponse",
    "ReportNoisyMax",
    "RidgePoison",
    "Sensitivity",
    "Student",
    "craft_poison",
    "example_records",
    "mechanism_named",
    "midpoint_epsilon",
    "norm_limit",
    "one_item_profit",
    "paper_sensitivity",
    "proved_sensitivity",
]
