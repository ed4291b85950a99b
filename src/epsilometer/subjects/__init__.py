"""What is audited. A new kind of subject is one small file."""

from epsilometer.subjects.access import Access, Controls, Sees, ThreatModel
from epsilometer.subjects.dp_sgd import DpSgdTraining, Faults, Trained, own_training
from epsilometer.subjects.subject import Differentiable, Insertion, Model, Observer, Subject, WhiteModel
from epsilometer.subjects.user_code import code_of

__all__ = [
    "Access",
    "Controls",
    "Differentiable",
    "DpSgdTraining",
    "Faults",
    "Insertion",
    "Model",
    "Observer",
    "Sees",
    "Subject",
    "ThreatModel",
    "Trained",
    "WhiteModel",
    "code_of",
    "own_training",
]
