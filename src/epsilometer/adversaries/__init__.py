"""Adversaries, one file each: craft, watch, score."""

from epsilometer.adversaries.backdoor import Backdoor
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
from epsilometer.adversaries.membership import MembershipAttack

ADVERSARIES: dict[str, type[Adversary]] = {a.name: a for a in (Gradient, ClipBkd, Backdoor, Canaries, MembershipAttack)}

__all__ = [
    "ADVERSARIES",
    "IN",
    "OUT",
    "Adversary",
    "Backdoor",
    "Canaries",
    "CanaryGame",
    "CanaryWatcher",
    "ClipBkd",
    "Game",
    "Gradient",
    "MembershipAttack",
    "ScoringWatcher",
    "ThreatModel",
]
