"""Collaborative learning: participants share updates, and what these tell about a participant's records."""

from epsilometer.collaborative.classifier import UpdateClassifier
from epsilometer.collaborative.property_inference import Collaboration, PropertyInference, infer_property
from epsilometer.collaborative.updates import LEVELS, Updates

__all__ = ["LEVELS", "Collaboration", "PropertyInference", "UpdateClassifier", "Updates", "infer_property"]
