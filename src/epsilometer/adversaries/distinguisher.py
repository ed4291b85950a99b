"""Tells releases for two neighbours apart: which neighbours and by which score, runs of their own decide."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilometer import validate
from epsilometer.adversaries.density_ratio import Table, cell_scores, fit_ratio, last_bit_scores, of_width, ratio_scores
from epsilometer.adversaries.game import Adversary, Game, Prepared, drawn_games, two_worlds
from epsilometer.adversaries.neighbours import Pair, candidates
from epsilometer.arrays import Floats
from epsilometer.claims import Relation
from epsilometer.errors import InvalidInput, unknown_name
from epsilometer.subjects import Controls, DrawsReleases, Observer, Sees, Subject, ThreatModel

SCORES = {
    "auto": "whichever promises most",
    "as-reals": "whichever promises most, the last bits left out",
    "value": "the number that is released, in the better of two directions",
    "learned": "a learned density ratio",
    "last-bits": "the last bits of floating-point numbers",
}
FINALISTS = 6
THRESHOLDS = 200  # that are tried, of a score with more values
FEWEST = 10  # releases that must be beyond a threshold
CAUTION = 0.4  # standard errors of the runs that choose: of many pairs, the best looks better than it is
MARGIN = 0.05  # by which a learned score must be better than a plain one
SURE = 2.5  # the same where scores are compared: of many bins, rare ones look good by chance
GRAIN = 2.0**-10  # of the spread of scores: those that are so close count as equal
_KINDS: dict[str, Callable[[Floats, Table], Floats]] = {
    "higher": lambda rows, _: rows[:, 0],
    "lower": lambda rows, _: -rows[:, 0],
    "learned": ratio_scores,
    "cells": cell_scores,
    "last-bits": last_bit_scores,
}


@dataclass(frozen=True)
class Distinguisher(Adversary):
    """Looks for neighbours (unless they are given) and for a score, with `learning` releases of each world.

    A third of them screens all pairs, a third the best few, and from a third the score is learned that is then frozen:
    the audit's releases are others, so nothing has to be paid for all this.
    """

    learning: int = 200_000
    score: str = "auto"
    name: ClassVar[str] = "distinguisher"
    summary: ClassVar[str] = "neighbours and a score, both learned from releases of its own"
    threat: ClassVar[ThreatModel] = ThreatModel(Sees.RELEASE, (Controls.RECORDS,), "mechanism and data")
    capabilities = (DrawsReleases,)

    def __post_init__(self) -> None:
        validate.whole("learning", self.learning, least=100, most=10**8)
        if self.score not in SCORES:
            raise unknown_name("score", self.score, SCORES)

    def scores_a_trial(self, subject: Subject) -> int:
        return subject.require(DrawsReleases, self.name).block

    def prepare(self, subject: Subject, relation: Relation, seed: np.random.SeedSequence) -> Prepared:
        mechanism = subject.require(DrawsReleases, self.name)
        drawing, playing = seed.spawn(2)
        delta = getattr(mechanism.released.claim, "delta", 0.0)
        tried = _Tried(mechanism, self.score, delta, playing)
        if mechanism.data.pair is not None:
            pairs = [mechanism.data.pair]
        else:
            epsilon = _finite(mechanism.released.claim.epsilon_at(delta or 1e-5))
            rng = np.random.default_rng(drawing)
            pairs = candidates(mechanism.released, mechanism.data.entries, epsilon, rng)
            for kept, runs in ((FINALISTS, self.learning // 3 // len(pairs)), (1, self.learning // 3 // FINALISTS)):
                if len(pairs) > 1:
                    ranked = sorted(pairs, key=lambda pair: -tried.outcome(pair, max(runs, 100))[0])
                    pairs = ranked[:kept]
        _, kind, learned = tried.outcome(pairs[0], max(self.learning // 3, 100))
        return {**learned, "kind": np.array(kind), "pair": _packed(pairs[0])}

    def craft(self, subject: Subject, relation: Relation, prepared: Prepared) -> Game:
        mechanism = subject.require(DrawsReleases, self.name)
        one, other = _unpacked(prepared["pair"])
        score = functools.partial(_scored, _KINDS[str(prepared["kind"])], prepared)
        grain, centre = float(prepared["grain"]), float(prepared["centre"])

        def game(seed: np.random.SeedSequence) -> Game:
            rng = np.random.default_rng(seed.spawn(1)[0])
            return Game(relation, two_worlds(one, other), lambda: _Block(score, grain, centre, rng))

        return replace(drawn_games(relation, game), scores=mechanism.block)


def chosen(prepared: Prepared) -> tuple[Any, Any, str]:
    """The neighbours and the kind of score that were chosen."""
    return *_unpacked(prepared["pair"]), str(prepared["kind"])


class _Block(Observer):
    """The scores of a block of releases, each a function of its own release, and of a number that is drawn for it and
    tells equal ones apart: others of the block must not show in it.

    Scores that are nearly equal count as equal. They are centred because floats are finest around 0: where most are
    equal, these must have room.
    """

    def __init__(
        self, score: Callable[[Floats], Floats], grain: float, centre: float, rng: np.random.Generator
    ) -> None:
        self._score, self._grain, self._centre, self._rng = score, grain, centre, rng
        self._scores: Floats = np.zeros(0)

    def finish(self, model: Any) -> None:
        grains = np.rint((self._score(model) - self._centre) / self._grain)
        self._scores = self._grain * (grains + self._rng.random(grains.shape) - 0.5)

    def score(self) -> Floats:
        return self._scores


class _Tried:
    """Pairs that are tried, each with releases of its own."""

    def __init__(self, subject: DrawsReleases, score: str, delta: float, seed: np.random.SeedSequence) -> None:
        self._subject, self._wanted, self._delta, self._seed = subject, score, delta, seed

    def outcome(self, pair: Pair, runs: int) -> tuple[float, str, dict[str, NDArray[Any]]]:
        """What the best score promises on releases that it was not fitted on, which one it is, and what was learned."""
        seeds = self._seed.spawn(2)
        outs, ins = (self._subject.releases(value, seed, runs) for value, seed in zip(pair, seeds, strict=True))
        outs, ins = (of_width(rows, max(outs.shape[1], ins.shape[1])) for rows in (outs, ins))
        fitting = runs // 2
        kinds = list(self._kinds(outs, ins))
        learned: dict[str, NDArray[Any]] = {}
        if "learned" in kinds:
            learned = fit_ratio(outs[:fitting], ins[:fitting])
            kinds += ["cells"] if len(learned["keys"]) else []
            kinds += ["last-bits"] if self._wanted in ("auto", "last-bits") else []
        kinds = ["last-bits"] if self._wanted == "last-bits" else kinds
        found = []
        for kind in kinds:
            out, present = (_scored(_KINDS[kind], learned, rows[fitting:]) for rows in (outs, ins))
            shown = promise(out, present, self._delta, SURE)
            found.append((shown - MARGIN * abs(shown) * (kind not in ("higher", "lower")), kind))
        kind = max(found, key=lambda one: one[0])[1]
        out, present = (_scored(_KINDS[kind], learned, rows[fitting:]) for rows in (outs, ins))
        scores = np.concatenate([out, present])
        frozen = {"grain": np.array(GRAIN * _spread(scores)), "centre": np.array(np.median(scores))}
        return promise(out, present, self._delta, CAUTION), kind, {**learned, **frozen}

    def _kinds(self, outs: Floats, ins: Floats) -> Iterator[str]:
        single = outs.shape[1] == 1 and np.isfinite(outs).all() and np.isfinite(ins).all()
        if self._wanted == "value" and not single:
            raise InvalidInput("score", "value", "releases of one number each", "use a learned score")
        if single and self._wanted in ("auto", "as-reals", "value"):
            yield from ("higher", "lower")
        if self._wanted != "value":
            yield "learned"


def promise(outs: Floats, ins: Floats, delta: float, caution: float) -> float:
    """The ε that some threshold shows, less so many standard errors: for choosing, and for nothing else."""
    scores = np.concatenate([outs, ins])
    thresholds = np.unique(scores)  # rare outputs tell most of choices
    if len(thresholds) > THRESHOLDS:
        thresholds = np.unique(np.quantile(scores, np.linspace(0.0, 1.0, THRESHOLDS), method="nearest"))
    out, present = (1.0 - np.searchsorted(np.sort(s), thresholds, side="right") / len(s) for s in (outs, ins))
    best = -np.inf
    for p, q in ((present, out), (1.0 - out, 1.0 - present)):
        count_p, count_q = len(ins) * p, len(outs) * q
        error = np.sqrt(1.0 / (count_p + 1.0) + 1.0 / (count_q + 1.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            shown = np.log(np.maximum(p - delta, 0.0)) - np.log(q + 1.0 / len(outs)) - caution * error
            shown = np.where(count_p >= FEWEST, shown, -np.inf)
        best = max(best, float(np.nanmax(shown)))
    return best


def _scored(kind: Callable[[Floats, Table], Floats], learned: Table, rows: Floats) -> Floats:
    return np.asarray(kind(rows, learned), np.float64)


def _spread(scores: Floats) -> float:
    """Between the quartiles; where half of all scores are equal, the deviation."""
    low, high = np.quantile(scores, [0.25, 0.75])
    return float(high - low) or float(scores.std()) or 1.0


def _packed(pair: Pair) -> NDArray[np.uint8]:
    """As arrays are all that is kept; numbers are written with all their digits."""
    return np.frombuffer(json.dumps(pair).encode(), np.uint8)


def _unpacked(packed: NDArray[Any]) -> Pair:
    one, other = json.loads(packed.tobytes())
    return one, other


def _finite(epsilon: float) -> float:
    """A scale for values; a claim of nothing has none."""
    return epsilon if 0 < epsilon < np.inf else 1.0
