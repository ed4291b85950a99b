"""What is audited. A new kind of subject is one small file."""

from epsilometer.isolation import LATE, Isolation
from epsilometer.subjects.access import Access, Controls, Sees, ThreatModel
from epsilometer.subjects.callables import ISOLATIONS, CallableTraining, Records, TrainingFailed
from epsilometer.subjects.capabilities import (
    Capability,
    DrawsReleases,
    HasRecords,
    KnowsErm,
    KnowsNetwork,
    KnowsRecipe,
    KnowsRidge,
    NoisySteps,
    Predicts,
)
from epsilometer.subjects.dp_sgd import DpSgdTraining, Faults
from epsilometer.subjects.encoded_training import EncodedRecipe, EncodedTraining
from epsilometer.subjects.entry import Entry
from epsilometer.subjects.plain_training import PlainRecipe, PlainTraining
from epsilometer.subjects.private_erm import ErmTraining
from epsilometer.subjects.private_ridge import RidgeTraining
from epsilometer.subjects.released import Released
from epsilometer.subjects.releases import ByName, Releases, Values
from epsilometer.subjects.seat import Trained
from epsilometer.subjects.subject import Differentiable, Insertion, Model, Observer, Subject, WhiteModel
from epsilometer.subjects.user_code import code_of

__all__ = [
    "ISOLATIONS",
    "LATE",
    "Access",
    "ByName",
    "CallableTraining",
    "Capability",
    "DrawsReleases",
    "HasRecords",
    "KnowsErm",
    "KnowsNetwork",
    "KnowsRecipe",
    "KnowsRidge",
    "NoisySteps",
    "Predicts",
    "Controls",
    "Differentiable",
    "DpSgdTraining",
    "Entry",
    "ErmTraining",
    "Faults",
    "Insertion",
    "Model",
    "Observer",
    "PlainRecipe",
    "EncodedRecipe",
    "EncodedTraining",
    "PlainTraining",
    "Isolation",
    "Records",
    "Released",
    "Releases",
    "RidgeTraining",
    "Sees",
    "Subject",
    "ThreatModel",
    "Trained",
    "TrainingFailed",
    "Values",
    "WhiteModel",
    "code_of",
]
