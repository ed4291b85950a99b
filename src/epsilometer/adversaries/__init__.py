"""Adversaries, one file each: craft, watch, score."""

from epsilometer.adversaries.canaries import Canaries
from epsilometer.adversaries.clipbkd import ClipBkd
from epsilometer.adversaries.game import (
    IN,
    OUT,
    Adversary,
    CanaryGame,
    CanaryWatcher,
    Game,
    ScoringWatcher,
    ThreatModel,
)
from epsilometer.adversaries.gradient import Gradient

ADVERSARIES: dict[str, type[Adversary]] = {a.name: a for a in (Gradient, ClipBkd, Canaries)}

__all__ = [
    "ADVERSARIES",
    "IN",
    "OUT",
    "Adversary",
    "Canaries",
    "CanaryGame",
    "CanaryWatcher",
    "ClipBkd",
    "Game",
    "Gradient",
    "ScoringWatcher",
    "ThreatModel",
]
