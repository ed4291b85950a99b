"""Equal scores of the two worlds, put in a random order; several orders decide together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from epsilometer.bounds.own_randomness import rng_for
from epsilometer.claims import Floats
from epsilometer.evidence import PairedRuns

DRAWS, NEEDED = 15, 10
FEWER_DRAWS = 2
MANY = 800.0  # a count's variance from which on no single outcome has more than about 1/5000 of all audits


@dataclass(frozen=True)
class Orders:
    """The same scores in several orders. `needed` of them must refute a claim, each at the share `price` of α."""

    orders: tuple[PairedRuns, ...]
    needed: int = 1
    price: float = 1.0

    def decided(self, found: Sequence[Any], strength: Any) -> Any:
        """Of what the orders gave, the one that decides: as many as needed are at least as strong.

        Fewer than there are orders may be given, if the rest could change nothing; then the weakest decides.
        """
        return sorted(found, key=strength, reverse=True)[min(self.needed, len(found)) - 1]


def break_ties(evidence: PairedRuns, seed: int) -> Orders:
    """The same scores as places in one order, in which equal ones are in an order drawn from the seed.

    A score with a random number behind it is another score of the same training, so every bound holds for it; and an
    atom of a training that is all that a claim allows is then all that it allows at every rank inside of the atom, too.
    Without it such ranks show nothing.

    One order would do if it were drawn anew in every audit. But audits must give the same result whenever they are
    judged, so that the draw depends on what was seen (on the ranks alone: neither the order of a file nor the scale of
    scores matters); and where few values make few different audits, one unlucky draw would decide a good part of them.
    So 10 of 15 orders must refute at α/2. Let r be the chance that an order refutes a given outcome: on average over
    outcomes it is α/2 at most, so that outcomes with r ≥ ½ have probability α at most (Markov), and others have 10 of
    15 orders against them rarely. Where there are very many outcomes luck averages out, and two orders do, both of
    which must refute.

    >>> break_ties(PairedRuns([0.0, 1.0], [1.0, 2.0]), seed=0).orders[0].in_scores.tolist()[1]
    3.0
    """
    outs, ins = np.sort(evidence.out_scores) + 0.0, np.sort(evidence.in_scores) + 0.0  # −0.0 is 0.0
    values = np.unique(ins)
    place = np.minimum(np.searchsorted(values, outs), len(values) - 1)
    tied = values[place] == outs
    if not tied.any() or (len(values) == 1 and tied.all()):  # where all are equal there is nothing to show
        return Orders((evidence,))
    ranks = np.unique(np.concatenate([outs, ins]), return_inverse=True)[1]
    rng = rng_for(seed, ranks[: len(outs)], ranks[len(outs) :])
    many = _variance(outs) * _variance(ins) > MANY**2
    orders = np.empty((FEWER_DRAWS if many else DRAWS, len(ranks)))
    for order in orders:
        order[np.lexsort((rng.random(len(ranks)), ranks))] = np.arange(len(ranks))
    runs = tuple(
        PairedRuns(order[: len(outs)], order[len(outs) :], evidence.relation, evidence.group_size) for order in orders
    )
    return Orders(runs, FEWER_DRAWS) if many else Orders(runs, NEEDED, 0.5)


def _variance(scores: Floats) -> float:
    """About that of the number of trials that show the commonest score."""
    commonest = float(np.unique(scores, return_counts=True)[1].max())
    return commonest * (1.0 - commonest / len(scores))
