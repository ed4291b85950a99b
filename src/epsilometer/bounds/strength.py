"""How strong an attack was, in one number. For planning: nothing here certifies anything."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from epsilometer import checks
from epsilometer.evidence import PairedRuns


def attack_strength(evidence: PairedRuns, confidence: float = 0.95) -> float:
    """A lower limit on the attack's μ, had its scores the area under the curve of N(0, 1) against N(μ, 1).

    μ = √2·Φ⁻¹(AUC), with the AUC's lower limit by its usual normal approximation (DeLong et al. 1988); 0 where
    the attack is not better than guessing.

    >>> rng = np.random.default_rng(0)
    >>> round(attack_strength(PairedRuns(rng.normal(size=5000), rng.normal(1.0, size=5000))), 2)
    0.99
    """
    outs, ins = np.sort(evidence.out_scores), np.sort(evidence.in_scores)
    in_ranks = (np.searchsorted(outs, ins, "left") + np.searchsorted(outs, ins, "right")) / (2 * len(outs))
    out_ranks = (np.searchsorted(ins, outs, "left") + np.searchsorted(ins, outs, "right")) / (2 * len(ins))
    area = float(in_ranks.mean())
    variance = float(in_ranks.var()) / len(ins) + float(out_ranks.var()) / len(outs)
    low = area - float(special.ndtri(checks.confidence(confidence))) * math.sqrt(variance)
    # Perfect separation has no measured variance; a rate of 1 cannot be told from 1 − 1/n.
    low = min(low, 1.0 - 1.0 / (len(outs) + len(ins)))
    return max(0.0, math.sqrt(2.0) * float(special.ndtri(max(low, 0.0))))
