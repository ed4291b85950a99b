"""Adversaries, one file each: craft, watch, score."""

from epsilometer.adversaries.clipbkd import ClipBkd
from epsilometer.adversaries.game import IN, OUT, Adversary, Game, ScoringWatcher, ThreatModel
from epsilometer.adversaries.gradient import Gradient

ADVERSARIES: dict[str, type[Adversary]] = {a.name: a for a in (Gradient, ClipBkd)}

__all__ = [
    "ADVERSARIES",
    "IN",
    "OUT",
    "Adversary",
    "ClipBkd",
    "Game",
    "Gradient",
    "ScoringWatcher",
    "ThreatModel",
]
