"""Contracts for adversaries and bounds of one's own: call them in a test."""

from epsilometer.testing.contracts import check_adversary, check_method

__all__ = ["check_adversary", "check_method"]
