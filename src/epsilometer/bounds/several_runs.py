"""Several runs, each with its own canaries and coins, read as one."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from epsilometer.errors import InvalidInput
from epsilometer.evidence import OneRun, require_evidence
from epsilometer.neighbours import require_same_neighbours


def pool_runs(runs: Iterable[OneRun]) -> OneRun:
    """All canaries of several runs as one piece of evidence, for any bound that accepts one run.

    Why this is right: the runs together are one mechanism, whose input is all the coins. A coin moves one run only,
    and the other runs are independent of it (or, if they were planned after seeing that run, see it only through
    its output). So the whole promises each coin exactly what a single run promises, (ε, δ) or a curve: nothing is
    added up. What grows is the number of canaries m, also in the term 2mδ of Theorem 5.2.

    Needed: fresh, independent coins in every run. Runs that share coins compose (their ε add up) and must not be
    pooled. Scores are ranked across runs, so they should be comparable; if not, the bound is weak but still valid.
    Several canaries that share a coordinate of one run (Keinan, Shenfeld & Ligett 2025) need no pooling: each has a
    coin of its own, and Theorem 5.2 allows any interference between them.

    >>> pool_runs([OneRun([0.3, 1.5], [0, 1]), OneRun([0.1, 0.9, 0.7], [0, 1, 1])])
    OneRun(5 canaries, 3 included, add-remove)
    """
    given = list(runs)
    if not given:
        raise InvalidInput("runs", given, "at least one run")
    for run in given:
        require_evidence("pool_runs", run, OneRun, "the canaries of runs (OneRun)")
    first = given[0]
    for i, run in enumerate(given[1:], start=1):
        require_same_neighbours("run 0", first.neighbours, f"run {i}", run.neighbours)
        if run.group_size != first.group_size:
            expected = f"{first.group_size}, as in run 0"
            raise InvalidInput(f"group_size of run {i}", run.group_size, expected, "pool runs of one kind")
    scores = np.concatenate([run.scores for run in given])
    member = np.concatenate([run.member for run in given])
    return OneRun(scores, member, first.neighbours, first.group_size, all(run.in_order for run in given))
