"""Membership inference: how much models tell about who was in their training data."""

from epsilometer.membership.attack import Attack, Seen
from epsilometer.membership.catalogue import ATTACKS, USUAL, USUAL_ALONE, attack_named
from epsilometer.membership.defences import DEFENCES, defence_named
from epsilometer.membership.given import OUTPUTS, GivenModel
from epsilometer.membership.learned import LearnedAttack, ShadowAttack, WhiteBoxAttack, WhiteBoxByRecord
from epsilometer.membership.lira import VARIANCES, Lira, OfflineLira
from epsilometer.membership.plan import MembershipPlan
from epsilometer.membership.queries import Queries
from epsilometer.membership.readout import READOUTS, Classifier, Losses, Readout
from epsilometer.membership.result import NO_EPSILON, RATES, AttackResult, Exposed, MembershipResult, Subset
from epsilometer.membership.rmia import Rmia
from epsilometer.membership.runner import certified, run_membership, scores_of, seen_of, stored_signals
from epsilometer.membership.signals import BLACK_BOX, Signals, black_box
from epsilometer.membership.simple import EntropyAttack, LabelOnlyAttack, LossAttack, ModifiedEntropyAttack
from epsilometer.membership.spec import MembershipSpec, Study, membership_from_dict, parse_membership, read_membership

__all__ = [
    "ATTACKS",
    "BLACK_BOX",
    "DEFENCES",
    "NO_EPSILON",
    "OUTPUTS",
    "RATES",
    "READOUTS",
    "USUAL",
    "USUAL_ALONE",
    "VARIANCES",
    "Attack",
    "AttackResult",
    "Classifier",
    "EntropyAttack",
    "Exposed",
    "GivenModel",
    "LabelOnlyAttack",
    "LearnedAttack",
    "Lira",
    "LossAttack",
    "Losses",
    "MembershipPlan",
    "MembershipResult",
    "MembershipSpec",
    "ModifiedEntropyAttack",
    "OfflineLira",
    "Queries",
    "Readout",
    "Rmia",
    "Seen",
    "ShadowAttack",
    "Signals",
    "Study",
    "Subset",
    "WhiteBoxAttack",
    "WhiteBoxByRecord",
    "attack_named",
    "black_box",
    "certified",
    "defence_named",
    "membership_from_dict",
    "parse_membership",
    "read_membership",
    "run_membership",
    "scores_of",
    "seen_of",
    "stored_signals",
]
