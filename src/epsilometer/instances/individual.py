"""Individual accounting (Yu et al. 2023): each record's ε from its own clipped gradient norms over one training.

What it is: the sum of the divergences of the steps that this training went through. It describes the models that were
released, and is no promise about the algorithm: another training of the same data may cost the record more.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
from numpy.typing import ArrayLike

from epsilometer import validate
from epsilometer.accounting import Composition, DpSgd, account, converted
from epsilometer.arrays import Floats
from epsilometer.claims import Relation
from epsilometer.errors import InvalidInput
from epsilometer.instances.moments import LEVELS, StepMoments

ORDERS = np.concatenate([np.arange(2.0, 16.0), np.arange(16.0, 64.0, 4.0), [64.0, 96.0, 128.0, 192.0, 256.0]])
_KINDS = 8  # of norms that a record may have for privacy loss distributions, each of which takes its time


def individual_epsilons(
    shares: ArrayLike, mechanism: DpSgd, delta: float, *, accountant: str = "rdp", steps_between: int = 1
) -> Floats:
    """ε of each record for the training in which its clipped gradients had these norms / C: a row a step.

    With `steps_between`, each row stands for so many steps; norms between checkpoints are then a guess. Norms are
    rounded up, to about 1 % ("rdp") or to one of 8 values ("pld": slower, and tighter for few records).

    >>> shares = np.array([[1.0, 0.5], [1.0, 0.1]])
    >>> individual_epsilons(shares, DpSgd(sample_rate=1.0, noise_multiplier=2.0, steps=2), 1e-5).round(2).tolist()
    [3.19, 1.05]
    """
    norms = np.asarray(shares, np.float64)
    validate.whole("steps_between", steps_between, least=1)
    if norms.ndim != 2 or len(norms) != math.ceil(mechanism.steps / steps_between):
        expected = f"a row for each of {mechanism.steps} steps (each {steps_between}th), a column a record"
        raise InvalidInput("shares", f"shape {norms.shape}", expected)
    validate.delta(delta)
    step = StepMoments(mechanism.sample_rate, mechanism.noise_multiplier)
    times = np.full(len(norms), steps_between)
    times[-1] = mechanism.steps - steps_between * (len(norms) - 1)
    levels = step.levels(norms)
    if accountant == "rdp":
        divergences = np.array([times @ step.of_levels(a)[levels] / (a - 1.0) for a in ORDERS])
        return converted(ORDERS, divergences, delta)
    return np.array([_by_parts(LEVELS[column], times, mechanism, delta, accountant) for column in levels.T])


def _by_parts(norms: Floats, times: np.ndarray, mechanism: DpSgd, delta: float, accountant: str) -> float:
    """By any accountant of unlike parts: steps of equal norms are one part."""
    import dp_accounting  # half a second: only when it is needed

    kinds = np.unique(np.quantile(norms, np.linspace(0, 1, _KINDS + 1)[1:], method="higher"))
    counts: Counter[float] = Counter()
    for norm, count in zip(kinds[np.searchsorted(kinds, norms)], times, strict=True):
        counts[float(norm)] += int(count)
    whole = Composition(())
    for norm, count in counts.items():
        if norm > 0:
            event = dp_accounting.GaussianDpEvent(mechanism.noise_multiplier / norm)
            if mechanism.sample_rate < 1:
                event = dp_accounting.PoissonSampledDpEvent(mechanism.sample_rate, event)
            whole = whole.plus(event, count)
    epsilon = account(whole, delta, Relation.ADD_REMOVE, accountant).epsilon if whole.parts else 0.0
    return epsilon if math.isfinite(epsilon) else math.inf
