"""Collaborative learning: participants share updates, and what these tell about a participant's records."""

from epsilometer.collaborative.classifier import UpdateClassifier
from epsilometer.collaborative.plan import PropertyPlan
from epsilometer.collaborative.properties import (
    PROPERTIES,
    Marked,
    NamedProperty,
    property_named,
    property_of_feature,
)
from epsilometer.collaborative.property_inference import Collaboration, PropertyInference, infer_property
from epsilometer.collaborative.result import INDEPENDENT, NO_EPSILON, ByRounds, PropertyResult
from epsilometer.collaborative.runner import run_property
from epsilometer.collaborative.spec import PropertySpec, Study, parse_property, property_from_dict, read_property
from epsilometer.collaborative.updates import LEVELS, Updates

__all__ = [
    "INDEPENDENT",
    "LEVELS",
    "NO_EPSILON",
    "PROPERTIES",
    "ByRounds",
    "Collaboration",
    "Marked",
    "NamedProperty",
    "PropertyInference",
    "PropertyPlan",
    "PropertyResult",
    "PropertySpec",
    "Study",
    "UpdateClassifier",
    "Updates",
    "infer_property",
    "parse_property",
    "property_from_dict",
    "property_named",
    "property_of_feature",
    "read_property",
    "run_property",
]
