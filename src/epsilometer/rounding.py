"""Numbers for people, rounded so that what they say stays true: a lower bound down, a promise up."""

from __future__ import annotations

import decimal
import math


def down(value: float, decimals: int = 3) -> str:
    """Not above the value, for what is at least so much.

    >>> down(0.70759), down(2.0), down(0.0), down(math.inf), down(1.23456e300)
    ('0.707', '2.000', '0.000', '∞', '1.234E+300')
    """
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    exact = _exact(value)
    # A stored result that was changed may have 1e300, which would be a line of digits.
    place = -decimals if abs(value) < 1e15 else exact.adjusted() - decimals
    return str(exact.quantize(decimal.Decimal(1).scaleb(place), decimal.ROUND_FLOOR))


def up(value: float, digits: int = 4) -> str:
    """Not below the value, for what is at most so much, or for noise that has to suffice.

    >>> up(3.99993), up(1.38601922), up(0.00012341), up(math.inf)
    ('4', '1.387', '0.0001235', '∞')
    """
    if math.isinf(value) or not value:
        return "0" if not value else "∞"
    exact = _exact(value)
    place = decimal.Decimal(1).scaleb(exact.adjusted() + 1 - digits)
    return f"{float(exact.quantize(place, decimal.ROUND_CEILING)):.{digits}g}"


def ceiled(value: float, decimals: int = 3) -> str:
    """Not below the value, in as many decimals as `down` has: the upper end of an interval.

    >>> ceiled(0.0110999), ceiled(1.0), ceiled(8.6401, 1)
    ('0.012', '1.000', '8.7')
    """
    return str(_exact(value).quantize(decimal.Decimal(1).scaleb(-decimals), decimal.ROUND_CEILING))


def percent(share: float) -> str:
    """A share of all; never 0 % or 100 % of what only nearly is.

    >>> percent(0.657), percent(0.9996), percent(0.0004), percent(1.0), percent(0.0605)
    ('66 %', 'over 99 %', 'under 1 %', '100 %', '6 %')
    """
    if 0.99 < share < 1.0:
        return "over 99 %"
    if 0.0 < share < 0.01:
        return "under 1 %"
    return f"{100 * share:.0f} %"


def simulated(share: float) -> str:
    """A share of simulated audits, which is never known to be none or all.

    >>> simulated(1.0), simulated(0.0), simulated(0.5)
    ('over 99 %', 'under 1 %', '50 %')
    """
    return percent(min(max(share, 0.001), 0.999))


def confidence(share: float) -> str:
    """A confidence as people say it.

    >>> confidence(0.95), confidence(0.999)
    ('95 % confidence', '99.9 % confidence')
    """
    return f"{100 * share:.10g} % confidence"


def _exact(value: float) -> decimal.Decimal:
    return decimal.Decimal(repr(float(value)))
