"""How many canaries it takes to see half of the noise, by what simulated trainings needed (as a rule of thumb: the
product of steps and canaries over the square of the noise multiplier was 350 to 1,600 with 200 canaries a step, and
900 to 3,000 with 2,000, whose bets are not ten times as good)."""

from __future__ import annotations

import math

from epsilometer.watching.settings import MOST

_OF_STEPS, _OF_CANARIES = 1000.0, 3000.0
_FEWEST = 10  # steps


def what_is_enough(noise_multiplier: float, canaries: int, steps: int) -> str:
    """Advice: so many steps with these canaries, or so many canaries in these steps.

    >>> what_is_enough(10.0, 200, 50)
    'train for about 500 steps, or --number 6000'
    """
    longer = max(_FEWEST, math.ceil(_rounded(_OF_STEPS * noise_multiplier**2 / max(canaries, 1))))
    more = math.ceil(_rounded(_OF_CANARIES * noise_multiplier**2 / max(steps, 1)))
    number = f", or --number {more}" if canaries < more <= MOST else ""
    return f"train for about {max(longer, steps + 1)} steps{number}"


def _rounded(value: float) -> float:
    """Up to two digits."""
    size = 10.0 ** max(math.floor(math.log10(max(value, 1.0))) - 1, 0)
    return math.ceil(value / size - 1e-9) * size
