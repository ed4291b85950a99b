"""How the tests of one verdict share its level α: any of them accuses a right training with probability α at most.

Checks that look at random numbers err with probability CHANCE each, and there are fewer than RANDOM_CHECKS. Of the rest
bets on coins have most: their evidence grows slowly. Noise that is seen is far more telling, in all coordinates of a
model at once, so that its law needs little.
"""

from __future__ import annotations

from dataclasses import dataclass

from epsilometer import validate
from epsilometer.errors import InvalidInput
from epsilometer.watching.checks.check import CHANCE

RANDOM_CHECKS = 50
_COINS = 0.95


@dataclass(frozen=True)
class Levels:
    """The probability with which each of them accuses a right training, at most."""

    checks: float
    coins: float
    noise: float

    @classmethod
    def of(cls, confidence: float) -> Levels:
        """
        >>> Levels.of(0.95)
        Levels(checks=5e-05, coins=0.0474525, noise=0.0024975)
        """
        checks = round(RANDOM_CHECKS * CHANCE, 12)
        rest = 1.0 - validate.confidence(confidence) - checks
        if rest <= 0:
            why = f"checks that look at random numbers err with probability {checks:g}, and tests need the rest"
            raise InvalidInput("confidence", confidence, f"below {1.0 - checks:g}", why)
        coins = float(f"{_COINS * rest:.10g}")
        return cls(checks, coins, float(f"{rest - coins:.10g}"))
