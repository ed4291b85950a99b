"""Equal scores of the two worlds, put in a random order."""

from __future__ import annotations

import numpy as np

from epsilometer.bounds.chance import rng_for
from epsilometer.evidence import PairedRuns


def break_ties(evidence: PairedRuns, seed: int) -> PairedRuns:
    """The same scores as places in one order, in which equal ones are in an order drawn from the seed and the scores.

    A score with a random number behind it is another score of the same training, so every bound holds for it; and an
    atom of a training that is all that a claim allows is then all that it allows at every rank inside of the atom, too.
    Without it such ranks show nothing. Where all scores are equal there is nothing to show, and no draw should.

    >>> break_ties(PairedRuns([0.0, 1.0], [1.0, 2.0]), seed=0).in_scores.tolist()[1]
    3.0
    """
    outs, ins = evidence.out_scores, evidence.in_scores
    values = np.unique(ins)
    place = np.minimum(np.searchsorted(values, outs), len(values) - 1)
    tied = values[place] == outs
    if not tied.any() or (len(values) == 1 and tied.all()):
        return evidence
    pooled = np.concatenate([outs, ins])
    chance = rng_for(seed, np.sort(outs), np.sort(ins)).random(len(pooled))
    order = np.empty(len(pooled))
    order[np.lexsort((chance, pooled))] = np.arange(len(pooled))
    return PairedRuns(order[: len(outs)], order[len(outs) :], evidence.relation, evidence.group_size)
