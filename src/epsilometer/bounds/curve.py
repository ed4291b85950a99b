"""Tests of whole claims: does the evidence lie where the claim says that none can?"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from epsilometer import validate
from epsilometer.bounds.clopper_pearson import refute_counts, require_independent_trials, require_nothing_chosen
from epsilometer.bounds.exact_rank import ExactRank
from epsilometer.bounds.method import Method, Refuter
from epsilometer.bounds.result import ClaimTest, NoiseLimit
from epsilometer.claims import Claim, require_claim
from epsilometer.errors import InvalidInput
from epsilometer.evidence import Counts, PairedRuns
from epsilometer.neighbours import require_same_neighbours


def refute_curve(
    evidence: PairedRuns | Counts,
    claim: Claim,
    *,
    confidence: float = 0.95,
    method: Refuter | None = None,
    direction: str = "higher",
) -> ClaimTest:
    """Test a claim (a point or a whole curve) without any assumption beyond independent trials.

    A curve promises far more than one of its points, so it takes far fewer trials to refute. `method` is for scores
    (default `ExactRank()`); counts come from a test chosen beforehand and get Clopper–Pearson limits.

    >>> from epsilometer.claims import GaussianClaim
    >>> test = refute_curve(Counts(tp=60, fp=5, fn=40, tn=95), GaussianClaim(0.5))
    >>> test.refuted
    True
    """
    require_independent_trials("refute_curve", evidence)
    require_claim(claim)
    require_same_neighbours("the claim", claim.neighbours, "the evidence", evidence.neighbours)
    if not evidence.has_scores:
        require_nothing_chosen("method", method, direction)
        return refute_counts(cast(Counts, evidence), claim, confidence)
    if isinstance(method, type) or not (method is None or hasattr(method, "test")):
        raise InvalidInput("method", method, "a method such as ExactRank()")
    return (method or ExactRank()).test(cast(PairedRuns, evidence), claim, confidence=confidence, direction=direction)


def largest_noise_multiplier(
    evidence: PairedRuns | Counts,
    curve_of: Callable[[float], Claim],
    *,
    confidence: float = 0.95,
    method: Method | None = None,
    direction: str = "higher",
    reference: Claim | None = None,
    least: float = 2.0**-7,
    most: float = 2.0**7,
    relative_tolerance: float = 1e-3,
) -> NoiseLimit:
    """The largest noise multiplier whose curve the evidence does not refute; infinite if it refutes none up to `most`.

    `curve_of` gives the claim of a training with a noise multiplier, for instance by an accountant; more
    noise must mean a stronger claim. The answer is an upper limit on the effective noise, with the stated
    confidence. The search stays between `least` and `most`. `reference` is a curve near which rank sums are to be
    sharpest, chosen without the scores (what the training claims, say); without it, exact ranks go by their grid.

    >>> from epsilometer.claims import GaussianClaim
    >>> counts = Counts(tp=60, fp=5, fn=40, tn=95)
    >>> largest_noise_multiplier(counts, lambda sigma: GaussianClaim(1 / sigma))
    NoiseLimit(noise multiplier ≤ 0.831, certified, 0.95 confidence, clopper-pearson (counts))
    """
    validate.real("least", least, above=0)
    validate.real("most", most, above=least)
    require_independent_trials("largest_noise_multiplier", evidence)

    chosen = ExactRank() if method is None else method
    nested = chosen.for_family(reference) if hasattr(chosen, "for_family") else method

    def test(sigma: float) -> ClaimTest:
        used = nested if evidence.has_scores else None
        return refute_curve(evidence, curve_of(sigma), confidence=confidence, method=used, direction=direction)

    low = high = float(np.sqrt(least * most))
    while not (last := test(high)).refuted:
        low, high = high, high * 2
        if high > most:
            return NoiseLimit(np.inf, confidence, last.method, last.kind)
    while test(low).refuted:
        low, high = low / 2, low
        if low < least:
            break
    while low >= least and high / low > 1.0 + relative_tolerance:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if test(middle).refuted else (middle, high)
    return NoiseLimit(high, confidence, last.method, last.kind)
