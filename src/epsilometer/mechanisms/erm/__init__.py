"""Private empirical risk minimisation: linear models whose training promises (ε, δ), each with the proof it rests on.

scikit-learn is loaded with the estimators only: `from epsilometer.mechanisms.erm.estimators import …`.
"""

from epsilometer.mechanisms.erm.draws import Draws, GeneratorDraws
from epsilometer.mechanisms.erm.flaws import SOUND, Flaws
from epsilometer.mechanisms.erm.lipschitz_sgd import LipschitzSgd, accounted_epsilon
from epsilometer.mechanisms.erm.losses import LOSSES, Huber, Logistic, Loss, SmoothedHinge, Squared, loss_named
from epsilometer.mechanisms.erm.mechanism import PrivateErm
from epsilometer.mechanisms.erm.objective_perturbation import ObjectivePerturbation
from epsilometer.mechanisms.erm.output_perturbation import OutputPerturbation
from epsilometer.mechanisms.erm.problem import Problem
from epsilometer.mechanisms.erm.solvers import NoOptimum, Risk, optimum
from epsilometer.mechanisms.erm.worst_case import Neighbours, lone_pair, saturated_pair

__all__ = [
    "LOSSES",
    "SOUND",
    "Draws",
    "Flaws",
    "GeneratorDraws",
    "Huber",
    "LipschitzSgd",
    "Logistic",
    "Loss",
    "Neighbours",
    "NoOptimum",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "PrivateErm",
    "Problem",
    "Risk",
    "SmoothedHinge",
    "Squared",
    "accounted_epsilon",
    "lone_pair",
    "loss_named",
    "optimum",
    "saturated_pair",
]
