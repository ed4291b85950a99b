"""The trainings under audit."""

from epsilometer.training.engine import TrainingDiverged, initial_parameters, network_for, poisson_sample, train
from epsilometer.training.models import Network
from epsilometer.training.recipe import INITIALISATIONS, MODELS, Recipe
from epsilometer.training.watchers import Watcher

__all__ = [
    "INITIALISATIONS",
    "MODELS",
    "Network",
    "Recipe",
    "TrainingDiverged",
    "Watcher",
    "initial_parameters",
    "network_for",
    "poisson_sample",
    "train",
]
