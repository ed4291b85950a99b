"""How well scores tell two worlds apart, with intervals. Arrays in, numbers out; nothing here certifies an ε.

Higher scores mean "member" (see evidence.py). A test with threshold t says "member" iff score > t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.errors import InvalidInput


@dataclass(frozen=True)
class Interval:
    """A measured value, and limits that hold with `confidence`; `how` says by which method, and whether exactly."""

    value: float
    low: float
    high: float
    confidence: float
    how: str

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f}, {100 * self.confidence:.10g} %)"

    def to_dict(self) -> dict[str, float | str]:
        return {name: getattr(self, name) for name in ("value", "low", "high", "confidence", "how")}


@dataclass(frozen=True)
class TruePositives:
    """The true-positive rate of the test whose false-positive rate was seen to be `fpr_wanted` at most.

    `fpr_high` limits its true false-positive rate from above. Both hold at once with the confidence of `tpr`: with it,
    this test has at least `tpr.low` true positives at a false-positive rate of `fpr_high` at most.
    """

    fpr_wanted: float
    threshold: float
    tpr: Interval
    fpr_seen: float
    fpr_high: float

    def __str__(self) -> str:
        fpr = f"true FPR at most {self.fpr_high:.3g} (seen: {self.fpr_seen:.3g})"
        return f"TPR {self.tpr}, {fpr}, score > {self.threshold:.6g}"

    def to_dict(self) -> dict[str, object]:
        return {
            "fpr_wanted": self.fpr_wanted,
            "threshold": self.threshold,
            "tpr": self.tpr.to_dict(),
            "fpr_seen": self.fpr_seen,
            "fpr_high": self.fpr_high,
        }


def share(count: int, trials: int, confidence: float = 0.95) -> Interval:
    """A probability from independent trials: the exact two-sided interval of Clopper and Pearson (1934).

    >>> print(share(8, 10))
    0.800 (0.444 to 0.975, 95 %)
    """
    tail = (1.0 - validate.confidence(confidence)) / 2.0
    low = float(special.betaincinv(count, trials - count + 1, tail)) if count else 0.0
    high = float(special.betainccinv(count + 1, trials - count, tail)) if count < trials else 1.0
    return Interval(count / trials, low, high, confidence, "Clopper–Pearson, exact")


def area(out_scores: Floats, in_scores: Floats, confidence: float = 0.95) -> Interval:
    """The area under the ROC curve: how often a member's score is the higher of two, equal ones counting half.

    The interval is a normal approximation on the logit scale with the larger of two variances: that of DeLong et al.
    (1988), and that of Hanley & McNeil (1982), which stays positive where the scores separate.

    >>> rng = np.random.default_rng(0)
    >>> print(area(rng.normal(size=2000), rng.normal(1.0, size=2000)))
    0.764 (0.749 to 0.778, 95 %)
    """
    seen, centre, spread = _area(out_scores, in_scores)
    reach = float(special.ndtri((1.0 + validate.confidence(confidence)) / 2.0)) * spread
    low, high = (float(special.expit(centre + sign * reach)) for sign in (-1.0, 1.0))
    return Interval(seen, min(low, seen), max(high, seen), confidence, "DeLong, on the logit scale; approximate")


def _area(out_scores: Floats, in_scores: Floats) -> tuple[float, float, float]:
    """The area, its logit (of one that is neither 0 nor 1) and the deviation of that."""
    outs, ins = np.sort(out_scores), np.sort(in_scores)
    n, m = len(outs), len(ins)
    in_ranks = (np.searchsorted(outs, ins, "left") + np.searchsorted(outs, ins, "right")) / (2 * n)
    out_ranks = (np.searchsorted(ins, outs, "left") + np.searchsorted(ins, outs, "right")) / (2 * m)
    seen = float(in_ranks.mean())
    # Perfect separation cannot be told from one error in n + m.
    inner = min(max(seen, 1.0 / (n + m)), 1.0 - 1.0 / (n + m))
    measured = float(in_ranks.var()) / max(m - 1, 1) + float(out_ranks.var()) / max(n - 1, 1)
    above, below = inner / (2.0 - inner) - inner**2, 2.0 * inner**2 / (1.0 + inner) - inner**2
    usual = (inner * (1.0 - inner) + (m - 1) * above + (n - 1) * below) / (n * m)
    return seen, float(special.logit(inner)), math.sqrt(max(measured, usual)) / (inner * (1.0 - inner))


def area_limit(out_scores: Floats, in_scores: Floats, confidence: float) -> float:
    """A one-sided lower limit on the area, as in `area`."""
    _, centre, spread = _area(out_scores, in_scores)
    return float(special.expit(centre - special.ndtri(validate.confidence(confidence)) * spread))


def balanced_accuracy(
    out_scores: Floats, in_scores: Floats, threshold: float | None = None, confidence: float = 0.95
) -> Interval:
    """How often a test is right if both worlds are equally likely: (TPR + TNR)/2.

    Without a threshold, every other trial of each world chooses the best one, and the rest is judged: what is chosen
    on the scores that it is judged by would look too good. The interval is exact: limits on both rates, each
    at half of the error.

    >>> print(balanced_accuracy(np.arange(100.0), np.arange(50.0, 150.0), threshold=75.0))
    0.750 (0.640 to 0.841, 95 %)
    """
    if threshold is None:
        if min(len(out_scores), len(in_scores)) < 2:
            raise InvalidInput("threshold", None, "a number where a world has one trial only")
        threshold = _best(out_scores[::2], in_scores[::2])
        out_scores, in_scores = out_scores[1::2], in_scores[1::2]
    each = (1.0 + validate.confidence(confidence)) / 2.0
    tpr = share(int(np.count_nonzero(in_scores > threshold)), len(in_scores), each)
    tnr = share(int(np.count_nonzero(out_scores <= threshold)), len(out_scores), each)
    middle, low, high = ((getattr(tpr, end) + getattr(tnr, end)) / 2.0 for end in ("value", "low", "high"))
    return Interval(middle, low, high, confidence, f"Clopper–Pearson for both rates at score > {threshold:.6g}, exact")


def _best(outs: Floats, ins: Floats) -> float:
    """The threshold with the best balanced accuracy on these scores."""
    candidates = np.unique(np.concatenate([outs, ins]))
    above_in = 1.0 - np.searchsorted(np.sort(ins), candidates, side="right") / len(ins)
    above_out = 1.0 - np.searchsorted(np.sort(outs), candidates, side="right") / len(outs)
    return float(candidates[int(np.argmax(above_in - above_out))])


def tpr_at(out_scores: Floats, in_scores: Floats, fpr: float, confidence: float = 0.95) -> TruePositives:
    """The true-positive rate at the lowest threshold that at most a share `fpr` of the out-scores exceeds.

    The threshold follows from the out-scores alone, so the interval (Clopper–Pearson) is exact for it. Its own
    false-positive rate is that of an order statistic, and has an exact limit too: few trials cannot show a small one.
    Each of the two has half of the error, so that they hold together.

    >>> print(tpr_at(np.arange(100.0), np.arange(50.0, 150.0), 0.01))
    TPR 0.510 (0.394 to 0.625, 95 %), true FPR at most 0.0545 (seen: 0.01), score > 98
    """
    validate.real("fpr", fpr, above=0, below=1, closed="[]")
    n = len(out_scores)
    rank = min(n, math.floor(fpr * n + 1e-9) + 1)  # of the out-score, from the top, that is the threshold
    threshold = float(np.partition(out_scores, n - rank)[n - rank])
    each = (1.0 + validate.confidence(confidence)) / 2.0
    alone = share(int(np.count_nonzero(in_scores > threshold)), len(in_scores), each)
    tpr = replace(alone, confidence=confidence, how="Clopper–Pearson, exact, together with the limit on the true FPR")
    seen = int(np.count_nonzero(out_scores > threshold)) / n
    high = float(special.betaincinv(rank, n - rank + 1, each))
    return TruePositives(fpr, threshold, tpr, seen, high)
