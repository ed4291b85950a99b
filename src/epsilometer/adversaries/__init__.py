"""Adversaries, one file each: craft, watch, score."""

from typing import Any

from epsilometer.adversaries.adaptive_poison import AdaptivePoison
from epsilometer.adversaries.api import Api
from epsilometer.adversaries.backdoor import Backdoor
from epsilometer.adversaries.canaries import Canaries
from epsilometer.adversaries.clipbkd import ClipBkd
from epsilometer.adversaries.distinguisher import Distinguisher
from epsilometer.adversaries.game import Adversary, Game, Prepared, drawn_games, two_worlds
from epsilometer.adversaries.gradient import Gradient
from epsilometer.adversaries.gradient_steps import GradientSteps
from epsilometer.adversaries.hidden_state import HiddenState
from epsilometer.adversaries.intermediate import Intermediate
from epsilometer.adversaries.learned import LearnedScore
from epsilometer.adversaries.malicious_dataset import MaliciousDataset
from epsilometer.adversaries.membership import MembershipAttack
from epsilometer.adversaries.neighbour import Neighbour
from epsilometer.adversaries.ridge_clipbkd import RidgeClipBkd
from epsilometer.adversaries.shuffled_label import ShuffledLabel
from epsilometer.adversaries.static_poison import StaticPoison
from epsilometer.adversaries.worst_case_init import WorstCaseInit
from epsilometer.registry import Registry

_NASR = (Api, StaticPoison, Intermediate, AdaptivePoison, Gradient, MaliciousDataset)  # from weak to strong
LADDER: tuple[str, ...] = tuple(adversary.name for adversary in _NASR)
_OF_RECORDS = (ClipBkd, Backdoor, Canaries, MembershipAttack, LearnedScore)


def _accepted(name: str, found: Any) -> type[Adversary] | None:
    return found if isinstance(found, type) and issubclass(found, Adversary) and found.name == name else None


ADVERSARIES: Registry[type[Adversary]] = Registry(
    "adversaries",
    {adversary.name: adversary for adversary in (*_NASR, GradientSteps, HiddenState, WorstCaseInit, *_OF_RECORDS)},
    argument="adversary",
    expected="an Adversary whose name is {name!r}",
    accept=_accepted,
)

__all__ = [
    "ADVERSARIES",
    "LADDER",
    "AdaptivePoison",
    "Adversary",
    "Api",
    "Backdoor",
    "Canaries",
    "ClipBkd",
    "Distinguisher",
    "Game",
    "Gradient",
    "GradientSteps",
    "HiddenState",
    "Intermediate",
    "LearnedScore",
    "MaliciousDataset",
    "MembershipAttack",
    "Neighbour",
    "Prepared",
    "RidgeClipBkd",
    "ShuffledLabel",
    "StaticPoison",
    "WorstCaseInit",
    "drawn_games",
    "two_worlds",
]
