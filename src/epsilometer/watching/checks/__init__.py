"""What can be checked of an Opacus training without attacking it: settings, samplers, noise, clipping, weights."""

from epsilometer.watching.checks.check import Check, Status, worst

__all__ = ["Check", "Status", "worst"]
