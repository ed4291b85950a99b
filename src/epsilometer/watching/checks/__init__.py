"""What can be checked of a training without attacking it: functions of the facts that hooks tell."""

from epsilometer.watching.checks.check import Check, Status, worst

__all__ = ["Check", "Status", "worst"]
