"""Which adversary to send into the game: decided by trials that are used for nothing else.

Taking the best of several audits would have to be paid for, and a union bound over k costs all of their trials. A pilot
costs a few: its trials have a seed of their own, so that those of the audit know nothing of the choice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from epsilometer import validate
from epsilometer.adversaries import Adversary
from epsilometer.auditing.plan import Plan
from epsilometer.auditing.runner import run
from epsilometer.bounds import BestOnSame, ClopperPearson
from epsilometer.errors import InvalidInput
from epsilometer.evidence import OUT, PairedRuns
from epsilometer.runs.executors import Executor
from epsilometer.runs.play import prepared_for
from epsilometer.runs.progress import Progress
from epsilometer.runs.store import MemoryStore, Store
from epsilometer.seeds import Stream, seed_of

CAUTION = 1.0  # standard errors


@dataclass(frozen=True, eq=False)
class Candidate:
    """An adversary, what the pilot saw of it, and the bound that its audit can be expected to end in, with caution.

    That is, if worlds lie one standard error nearer than they were seen: who looks best was often lucky, and most often
    where k is small, since what is expected is divided by k, and so is its error.
    """

    adversary: Adversary
    pilot: PairedRuns
    expected: float

    @property
    def strength(self) -> float:
        """By how many standard deviations the pilot's worlds lie apart."""
        gap = float(np.mean(self.pilot.in_scores) - np.mean(self.pilot.out_scores))
        if gap == 0.0 or math.isnan(gap):
            return 0.0
        spread = math.hypot(*_spreads(self.pilot)) / math.sqrt(2.0)
        return gap / spread if spread > 0 else math.copysign(math.inf, gap)


@dataclass(frozen=True, eq=False)
class Choice:
    """The plan with the chosen adversary, and everyone who was tried."""

    plan: Plan
    candidates: tuple[Candidate, ...]

    @property
    def adversary(self) -> Adversary:
        return self.plan.adversary

    @property
    def chosen(self) -> Candidate:
        return next(c for c in self.candidates if c.adversary == self.plan.adversary)

    @property
    def likely(self) -> PairedRuns:
        """Scores as the chosen adversary's audit is likely to have them."""
        return likely_scores(self.chosen.pilot, self.plan.planned_trials)

    @property
    def threshold(self) -> float:
        """Where the chosen adversary's scores should be cut, by the pilot: may be fixed for the audit.

        It is the middle of a gap between likely scores: worlds that lie far apart are not cut at the edge of one.
        """
        likely = self.likely
        proof = ClopperPearson(BestOnSame()).bound(
            likely, delta=self.plan.delta, confidence=self.plan.confidence
        ).proof  # fmt: skip
        threshold = getattr(proof, "threshold", None)
        assert isinstance(threshold, float)
        scores = np.concatenate([likely.out_scores, likely.in_scores])
        middle = (threshold + float(np.min(scores, where=scores > threshold, initial=math.inf))) / 2
        return middle if math.isfinite(middle) else threshold


def choose_adversary(
    plan: Plan,
    adversaries: Sequence[Adversary],
    *,
    pilot: int | None = None,
    progress: Progress | None = None,
    store: Store | None = None,
    executor: Executor | None = None,
) -> Choice:
    """The adversary of whom a pilot expects most, with caution; the strongest of those of whom it expects the same.

    `pilot` is its number of trials per world: a tenth of the plan's, and at least 20, if nothing is said. They are of
    the attack that the audit will play: what is prepared for one (a poison, say) is prepared for the other. Games whose
    world 0 is the same share its trials. `store` and `executor` are as in `run`.
    """
    pilot = pilot_trials(plan) if pilot is None else pilot
    validate.whole("pilot", pilot, least=10, remedy="fewer trials tell adversaries apart by luck only")
    if not adversaries or any(not adversary.evidence_type.independent for adversary in adversaries):
        raise InvalidInput("adversaries", adversaries, "adversaries of paired runs, at least one")
    store = MemoryStore() if store is None else store
    own = int(seed_of(plan.seed, Stream.PILOT).generate_state(1)[0])
    played: dict[str, str] = {}  # a world 0, and the plan whose trials have it
    candidates = []
    for adversary in adversaries:
        audit = replace(plan, adversary=adversary)
        trial = replace(audit, trials=pilot, seed=own)
        key = store.begin(trial).fingerprint
        game = trial.game(prepared_for(trial, store, like=audit))
        if game.out_identity in played:  # trials are pure functions
            found = store.results(played[game.out_identity])
            store.add(key, {which: scores for which, scores in found.items() if which[0] == OUT}, 0.0)
        elif game.out_identity:
            played[game.out_identity] = key
        seen = run(trial, progress, store=store, executor=executor, noise_limit=False).evidence.as_pairs()
        candidates.append(Candidate(adversary, seen, _expected(plan, seen, CAUTION)))
    best = max(candidates, key=lambda candidate: (candidate.expected, candidate.strength))
    return Choice(replace(plan, adversary=best.adversary), tuple(candidates))


def pilot_trials(plan: Plan) -> int:
    """How many trials per world a pilot has for each adversary, if nothing is said."""
    return max(20, plan.planned_trials // 10)


def _expected(plan: Plan, pilot: PairedRuns, nearer: float = 0.0) -> float:
    likely = likely_scores(pilot, plan.planned_trials, nearer)
    return plan.planned_method.bound(likely, delta=plan.delta, confidence=plan.confidence).epsilon


def likely_scores(pilot: PairedRuns, trials: int, nearer: float = 0.0) -> PairedRuns:
    """What so many trials should look like if scores are normal: a pilot is too small for more than that.

    World 1 lies so many standard errors nearer to world 0 than in the pilot, or upon it. Scores come in a random order,
    as trials do: a method that takes them in order would see two sorted worlds otherwise.
    """
    quantiles = special.ndtri((np.arange(trials) + 0.5) / trials)
    rng = np.random.default_rng(0)
    out_mean, in_mean = (float(np.mean(scores)) for scores in (pilot.out_scores, pilot.in_scores))
    out_spread, in_spread = _spreads(pilot)
    error = math.hypot(out_spread / math.sqrt(len(pilot.out_scores)), in_spread / math.sqrt(len(pilot.in_scores)))
    if nearer and in_mean > out_mean:
        in_mean = max(out_mean, in_mean - nearer * error)
    out_scores, in_scores = (
        out_mean + out_spread * rng.permutation(quantiles),
        in_mean + in_spread * rng.permutation(quantiles),
    )
    return PairedRuns(out_scores, in_scores, pilot.neighbours, pilot.group_size)


def _spreads(pilot: PairedRuns) -> tuple[float, float]:
    """Standard deviations of both worlds, no further apart than two standard errors can tell.

    Of two normal worlds the one that is wider by chance would promise much: whatever lies far out would be its.
    """
    worlds = pilot.out_scores, pilot.in_scores
    out_spread, in_spread = (float(np.std(scores, ddof=1)) for scores in worlds)
    if not (math.isfinite(out_spread + in_spread) and min(out_spread, in_spread) > 0):
        return (out_spread if math.isfinite(out_spread) else 0.0), (in_spread if math.isfinite(in_spread) else 0.0)
    error = math.sqrt(sum(0.5 / (len(scores) - 1) for scores in worlds))
    ratio = math.log(in_spread / out_spread)
    kept = math.copysign(max(0.0, abs(ratio) - 2 * error), ratio)
    both = math.hypot(out_spread, in_spread)  # stays as it is
    return both / math.hypot(1.0, math.exp(kept)), both / math.hypot(1.0, math.exp(-kept))
