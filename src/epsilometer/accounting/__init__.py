"""Mechanism → upper bound on ε: what theory promises."""

from epsilometer.accounting.accountants import ACCOUNTANTS, Accountant, account, compare
from epsilometer.accounting.budget import Budget, BudgetExceeded
from epsilometer.accounting.calibration import calibrate
from epsilometer.accounting.events import Composition, ExponentialEvent
from epsilometer.accounting.mechanism import DpSgd, UpperBound
from epsilometer.accounting.pld import LARGEST_EPSILON, curve
from epsilometer.accounting.pld_lower import epsilon_floor
from epsilometer.accounting.promise import ClaimPromise, NoPromise, PartsPromise, Promise, StepsPromise
from epsilometer.accounting.rdp import converted
from epsilometer.accounting.student import StudentDpSgd

__all__ = [
    "ACCOUNTANTS",
    "Accountant",
    "Budget",
    "BudgetExceeded",
    "ClaimPromise",
    "Composition",
    "DpSgd",
    "ExponentialEvent",
    "LARGEST_EPSILON",
    "NoPromise",
    "PartsPromise",
    "Promise",
    "StepsPromise",
    "StudentDpSgd",
    "UpperBound",
    "account",
    "calibrate",
    "compare",
    "converted",
    "curve",
    "epsilon_floor",
]
