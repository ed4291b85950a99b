"""Scores put in a random order, equal ones or all of them; where values repeat, several orders decide together."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from epsilometer.arrays import Floats
from epsilometer.bounds.simulation import rng_for
from epsilometer.evidence import PairedRuns

Found = TypeVar("Found")
DRAWS, NEEDED = 15, 10
FEWER_DRAWS = 2
DISTINCT = 0.9  # of all scores
MANY = 800.0  # a count's variance from which on no single outcome has more than about 1/5000 of all audits


@dataclass(frozen=True)
class Draws:
    """How many draws of our own decide together: `needed` of `count` must refute, each at the share `price` of α.

    A test that draws at random (an order of equal scores, a part to choose on, an order to bet in) is valid on average
    over its draws. One draw would do if it were made anew in every audit. But audits must give the same result whenever
    they are judged, so that draws depend on what was seen; and where few values make few different audits, one unlucky
    draw would decide a good part of them. So 10 of 15 must refute at α/2. Let r be the chance that a draw refutes a
    given outcome: on average over outcomes it is α/2 at most, so that outcomes with r ≥ ½ have probability α at most
    (Markov), and others have 10 of 15 draws against them rarely. Where there are very many outcomes luck averages out,
    and two draws do, both of which must refute.
    """

    count: int = 1
    needed: int = 1
    price: float = 1.0

    @classmethod
    def for_few_values(cls, outs: Floats, ins: Floats) -> Draws:
        """Where values repeat: two if there are many outcomes all the same, else 15."""
        many = _variance(outs) * _variance(ins) > MANY**2
        return cls(FEWER_DRAWS, FEWER_DRAWS) if many else cls(DRAWS, NEEDED, 0.5)

    def decided(self, found: Sequence[Found], strengths: Sequence[float]) -> Found:
        """Of what the draws gave, the one that decides: as many as needed are at least as strong.

        Fewer than there are draws may be given, if the rest could change nothing; then the weakest decides.
        """
        strongest_first = sorted(range(len(found)), key=strengths.__getitem__, reverse=True)
        return found[strongest_first[min(self.needed, len(found)) - 1]]


@dataclass(frozen=True)
class Orders:
    """The same scores in several orders, which decide together."""

    orders: tuple[PairedRuns, ...]
    draws: Draws = Draws()


@dataclass(frozen=True)
class Shuffles:
    """Both worlds' scores, sorted, to be put in random orders: one if nearly all values differ, else several.

    >>> Shuffles.of(PairedRuns([0.0] * 30, [0.0] * 20 + [1.0] * 10)).draws
    Draws(count=15, needed=10, price=0.5)
    """

    outs: Floats
    ins: Floats
    key: tuple[NDArray[np.generic], ...]  # what draws depend on, beside a seed
    draws: Draws

    @classmethod
    def of(cls, evidence: PairedRuns) -> Shuffles:
        outs, ins = np.sort(evidence.out_scores) + 0.0, np.sort(evidence.in_scores) + 0.0
        values, ranks = np.unique(np.concatenate([outs, ins]), return_inverse=True)
        # Where nearly all differ, no outcome has much of the probability; where none do, there is nothing to show.
        if len(values) >= DISTINCT * len(ranks) or len(values) == 1:
            return cls(outs, ins, (outs, ins), Draws())
        # Ranks, because among laws that differ only in the values of their atoms some would be unlucky.
        return cls(outs, ins, (ranks[: len(outs)], ranks[len(outs) :]), Draws.for_few_values(outs, ins))

    def rng(self, seed: int, draw: int) -> np.random.Generator:
        return rng_for(seed, *self.key, *([np.array(draw)] if self.draws.count > 1 else []))


@functools.lru_cache(maxsize=1)  # scores never change, and a limit on noise takes dozens of tests of the same ones
def break_ties(evidence: PairedRuns, seed: int) -> Orders:
    """The same scores as places in one order, in which equal ones are in an order drawn from the seed.

    A score with a random number behind it is another score of the same training, so every bound holds for it; and an
    atom of a training that is all that a claim allows is then all that it allows at every rank inside of the atom, too.
    Without it such ranks show nothing.

    Several orders decide together (see `Draws`). They depend on the ranks alone: neither the order of a file nor the
    scale of scores matters.

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
    draws = Draws.for_few_values(outs, ins)
    orders = np.empty((draws.count, len(ranks)))
    for order in orders:
        order[np.lexsort((rng.random(len(ranks)), ranks))] = np.arange(len(ranks))
    runs = tuple(
        PairedRuns(order[: len(outs)], order[len(outs) :], evidence.neighbours, evidence.group_size) for order in orders
    )
    return Orders(runs, draws)


def _variance(scores: Floats) -> float:
    """About that of the number of trials that show the commonest score."""
    commonest = float(np.unique(scores, return_counts=True)[1].max())
    return commonest * (1.0 - commonest / len(scores))
