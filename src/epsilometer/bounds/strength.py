"""How strong an attack was, in one number. For planning: nothing here certifies anything."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from epsilometer import checks
from epsilometer.evidence import PairedRuns


def attack_strength(evidence: PairedRuns, confidence: float = 0.95) -> float:
    """A lower limit on the attack's μ, had its scores the area under the curve of N(0, 1) against N(μ, 1).

    μ = √2·Φ⁻¹(AUC). The AUC's limit is a normal approximation on the logit scale with the larger of two variances
    (DeLong et al. 1988, Hanley & McNeil 1982); 0 where the attack is not better than guessing.

    >>> rng = np.random.default_rng(0)
    >>> round(attack_strength(PairedRuns(rng.normal(size=5000), rng.normal(1.0, size=5000))), 2)
    0.99
    """
    outs, ins = np.sort(evidence.out_scores), np.sort(evidence.in_scores)
    n, m = len(outs), len(ins)
    in_ranks = (np.searchsorted(outs, ins, "left") + np.searchsorted(outs, ins, "right")) / (2 * n)
    out_ranks = (np.searchsorted(ins, outs, "left") + np.searchsorted(ins, outs, "right")) / (2 * m)
    # Perfect separation cannot be told from one error in n + m.
    area = min(max(float(in_ranks.mean()), 1.0 / (n + m)), 1.0 - 1.0 / (n + m))
    measured = float(in_ranks.var()) / max(m - 1, 1) + float(out_ranks.var()) / max(n - 1, 1)
    above, below = area / (2.0 - area) - area**2, 2.0 * area**2 / (1.0 + area) - area**2
    usual = (area * (1.0 - area) + (m - 1) * above + (n - 1) * below) / (n * m)
    spread = math.sqrt(max(measured, usual)) / (area * (1.0 - area))
    low = special.expit(special.logit(area) - special.ndtri(checks.confidence(confidence)) * spread)
    return max(0.0, math.sqrt(2.0) * float(special.ndtri(low)))
