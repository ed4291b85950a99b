"""Audits repeated with fixed seeds: is it a surprise how many of them refute the truth?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from scipy import stats

ALPHA = 0.05


def surprising(count: int, repetitions: int, rate: float = ALPHA) -> bool:
    return stats.binomtest(count, repetitions, rate, alternative="greater").pvalue < 1e-3


def covers_at_length(refuted: Iterator[bool], repetitions: int = 1000) -> bool:
    """Whether a rate of α is no surprise after `repetitions`; ends early where a rate of 8 % is out of the question.

    Most laws are far below α and would pass anyway. What that costs in power is tested below.
    """
    count = seen = 0
    for look in (100, 200, 400, 700, repetitions):
        count, seen = count + sum(islice(refuted, look - seen)), look
        if stats.binom.cdf(count, seen, 1.6 * ALPHA) < 0.01:
            return True
    return not surprising(count, seen)
