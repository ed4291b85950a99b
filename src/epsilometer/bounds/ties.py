"""Equal scores of the two worlds, put in a random order."""

from __future__ import annotations

import numpy as np

from epsilometer.bounds.chance import rng_for
from epsilometer.claims import Floats
from epsilometer.evidence import PairedRuns

DRAWS, FEWER_DRAWS = 5, 2
MANY = 800.0  # a count's variance from which on no single outcome has more than about 1/5000 of all audits


def break_ties(evidence: PairedRuns, seed: int) -> list[PairedRuns]:
    """The same scores as places in one order, in which equal ones are in an order drawn from the seed and the scores.

    A score with a random number behind it is another score of the same training, so every bound holds for it; and an
    atom of a training that is all that a claim allows is then all that it allows at every rank inside of the atom, too.
    Without it such ranks show nothing.

    There are several such orders, and a claim is refuted only if each of them refutes it. One would do if it were drawn
    anew in every audit. But audits must give the same result whenever they are judged, so that the draw depends on
    the scores; and where few values make few different audits, one unlucky draw would decide a good part of them.
    Where there are very many outcomes, two orders do.

    >>> break_ties(PairedRuns([0.0, 1.0], [1.0, 2.0]), seed=0)[0].in_scores.tolist()[1]
    3.0
    """
    outs, ins = evidence.out_scores, evidence.in_scores
    values = np.unique(ins)
    place = np.minimum(np.searchsorted(values, outs), len(values) - 1)
    tied = values[place] == outs
    if not tied.any() or (len(values) == 1 and tied.all()):  # where all are equal there is nothing to show
        return [evidence]
    pooled = np.concatenate([outs, ins])
    rng = rng_for(seed, np.sort(outs), np.sort(ins))
    many = _variance(outs) * _variance(ins) > MANY**2
    orders = np.empty((FEWER_DRAWS if many else DRAWS, len(pooled)))
    for order in orders:
        order[np.lexsort((rng.random(len(pooled)), pooled))] = np.arange(len(pooled))
    return [
        PairedRuns(order[: len(outs)], order[len(outs) :], evidence.relation, evidence.group_size) for order in orders
    ]


def _variance(scores: Floats) -> float:
    """About that of the number of trials that show the commonest score."""
    commonest = float(np.unique(scores, return_counts=True)[1].max())
    return commonest * (1.0 - commonest / len(scores))
