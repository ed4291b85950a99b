"""For tests: contracts for adversaries and bounds of one's own, and `assert_private`, which pytest has as a fixture."""

from epsilometer.testing.contracts import check_adversary, check_method
from epsilometer.testing.ending import Ending
from epsilometer.testing.private import AssertPrivate, NotPrivate

__all__ = ["AssertPrivate", "Ending", "NotPrivate", "check_adversary", "check_method"]
