"""The trainings under audit."""

from epsilometer.training.clip_norm import median_gradient_norm
from epsilometer.training.colour_cnn import colour_cnn
from epsilometer.training.engine import (
    BACKENDS,
    TrainingDiverged,
    engine_of,
    initial_parameters,
    network_for,
    train,
    train_many,
)
from epsilometer.training.linear_probe import linear_probe
from epsilometer.training.losses import accuracy, record_losses
from epsilometer.training.models import Array, Labels, Network
from epsilometer.training.modules import (
    ModuleNetwork,
    add_factories,
    factories_of,
    frozen_features,
    is_module,
    register,
)
from epsilometer.training.pretraining import Pretrained, Pretraining, pretrain
from epsilometer.training.recipe import ACTIVATIONS, INITIALISATIONS, MODELS, PRECISIONS, Recipe
from epsilometer.training.stopping import within_budget
from epsilometer.training.threefry import normal_rows
from epsilometer.training.watchers import Every, Poisoner, Watcher

__all__ = [
    "ACTIVATIONS",
    "BACKENDS",
    "INITIALISATIONS",
    "MODELS",
    "PRECISIONS",
    "Array",
    "Every",
    "Labels",
    "ModuleNetwork",
    "Network",
    "Poisoner",
    "Pretrained",
    "Pretraining",
    "Recipe",
    "TrainingDiverged",
    "Watcher",
    "accuracy",
    "add_factories",
    "colour_cnn",
    "engine_of",
    "factories_of",
    "frozen_features",
    "initial_parameters",
    "is_module",
    "linear_probe",
    "median_gradient_norm",
    "network_for",
    "normal_rows",
    "pretrain",
    "record_losses",
    "register",
    "train",
    "train_many",
    "within_budget",
]
