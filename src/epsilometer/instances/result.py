"""What was found of each record: its ε, of which kind that is, and what follows."""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from epsilometer.accounting import UpperBound, converted
from epsilometer.auditing import Executor, Inline, MemoryStore, Progress, Results, Store, play
from epsilometer.claims import Floats
from epsilometer.errors import InvalidInput
from epsilometer.evidence import IN
from epsilometer.instances import composition
from epsilometer.instances.composition import Holder, Step
from epsilometer.instances.individual import individual_epsilons
from epsilometer.instances.moments import Levels
from epsilometer.instances.plan import MEAN_ORDERS, InstancePlan

WARNING = (
    "These values are private themselves: each follows from its record and all others, without noise. Do not publish "
    "them."
)
KINDS = {
    "sum": "an estimate of a guarantee for this record over trainings of this algorithm on these data",
    "mean": "an estimate of a guarantee for this record over trainings of this algorithm (noise on a batch's mean) on "
    "these data",
    "individual": "what the one training that was recorded has cost this record; no promise about another training",
}
GAIN_ORDER = 8.0  # at which gains of single steps are shown
# Orders and multiples of the number of steps for p that are searched: every pair is valid, so the best one is.
ORDERS = (2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 128.0, 256.0)
MULTIPLES = (0.5, 1.0, 2.0, 4.0, 16.0, 64.0, 256.0)
BOTH = "without-with"  # moments are the larger of both directions, and this one's orders are the larger


@dataclass(frozen=True, eq=False, repr=False)
class InstanceResult:
    """ε of each record of a plan, in its order, at the plan's δ; none is above the worst case.

    `epsilons` are of the kind that `KINDS` says of the plan's rule. `certified` are upper bounds, each with the plan's
    confidence, whatever the law of trainings: few trainings cannot exclude a rare one that costs a record everything,
    so they are far higher. None for individual accounting. `one_training` is individual accounting of the
    first training, where its norms are known. Only `seconds` varies between runs.
    """

    plan: InstancePlan
    epsilons: Floats
    certified: Floats | None
    one_training: Floats | None
    worst_case: UpperBound
    worst_renyi: float  # by the same moments and conversion as a record's, so that only the record makes a difference
    losses: Floats
    right: Floats  # the share of trainings whose last model gets the record right
    gains: Floats  # by how much a step at each checkpoint costs less than the worst one: checkpoints × records
    seconds: float = 0.0

    @property
    def kind(self) -> str:
        """What the numbers are."""
        words = KINDS[self.plan.rule]
        if self.plan.last_layer:
            words += "; from the last layer's gradients only, so it is no bound"
        elif self.plan.interval > 1:
            words += f"; looked at every {self.plan.interval} steps only, and guessed in between"
        return words

    @property
    def labels(self) -> np.ndarray:
        return self.plan.looked_at.y

    def quantile(self, share: float) -> float:
        return float(np.quantile(self.epsilons, share))

    @functools.cached_property
    def right_against_wrong(self) -> dict[str, Any]:
        """Whether records that most trainings get right have lower ε (Mann & Whitney, one-sided)."""
        right = self.right > 0.5
        few = min(right.sum(), (~right).sum()) == 0
        test = None if few else stats.mannwhitneyu(self.epsilons[right], self.epsilons[~right], alternative="less")
        return {
            "right": int(right.sum()),
            "wrong": int((~right).sum()),
            "median_right": float(np.median(self.epsilons[right])) if right.any() else None,
            "median_wrong": float(np.median(self.epsilons[~right])) if not right.all() else None,
            "p_value": None if test is None else float(test.pvalue),
        }

    def __repr__(self) -> str:
        return (
            f"InstanceResult({len(self.epsilons)} records, {self.plan.rule} rule: median ε {self.quantile(0.5):.3g}, "
            f"10th percentile {self.quantile(0.1):.3g}, worst case {self.worst_case.epsilon:.3g})"
        )


def run(
    plan: InstancePlan,
    progress: Progress | None = None,
    *,
    store: Store | None = None,
    executor: Executor | None = None,
) -> InstanceResult:
    """Train, look at the records, and work out what each pays. Trials that `store` has are not played again."""
    store = MemoryStore() if store is None else store
    tally = play(plan, store, executor or Inline(), progress)
    started = time.perf_counter()
    found = judge(plan, tally.results)
    seconds = store.begin(plan).seconds + time.perf_counter() - started
    return InstanceResult(**{**vars(found), "seconds": seconds})


def judge(plan: InstancePlan, results: Results) -> InstanceResult:
    """What follows from all trials of a plan."""
    records, moments = len(plan.records), plan.moments
    rows = np.array([results[IN, i] for i in range(plan.planned_trials)]).reshape(plan.planned_trials, -1, records)
    one_training = None
    if plan.rule == "mean":
        seen = rows.reshape(plan.planned_trainings, plan.checkpoints, -1, records)
        ends = seen[:, -1, -2:]
        parts = seen[:, :, :-2].reshape(*seen.shape[:2], 2, len(MEAN_ORDERS), records)
        estimates, limits = parts[:, :, 0], parts[:, :, 1]
        costs: tuple[_Costs, _Costs] = _OfMoments(plan, estimates), _OfMoments(plan, limits)
        at = MEAN_ORDERS.index(int(GAIN_ORDER))
        gains = moments.of_levels(GAIN_ORDER)[-1] / np.maximum(estimates[:, :, at].mean(axis=0), 1e-300)
    else:
        shares, ends = rows[:, :-2], rows[:, -2:]
        levels = moments.levels(shares)
        costs = _OfLevels(plan, levels), _OfLevels(plan, levels)
        typical = moments.of_levels(GAIN_ORDER)[levels].mean(axis=0)
        gains = moments.of_levels(GAIN_ORDER)[-1] / np.maximum(typical, 1e-300)
        one_training = individual_epsilons(shares[0], plan.recipe.mechanism, plan.delta, steps_between=plan.interval)
    worst = plan.worst_case
    orders, _ = _searched(plan)
    renyi = np.array([[composition.at_worst(_worst(plan), plan.recipe.steps, a) / (a - 1.0)] for a in orders])
    if plan.rule == "individual":
        assert one_training is not None
        epsilons, certified = one_training, None
    else:
        epsilons = _estimated(plan, costs[0].step(slice(None)))
        certified = None if plan.last_layer else _certified(plan, costs[1])
    return InstanceResult(
        plan=plan,
        epsilons=np.minimum(epsilons, worst.epsilon),
        certified=None if certified is None else np.minimum(certified, worst.epsilon),
        one_training=None if one_training is None else np.minimum(one_training, worst.epsilon),
        worst_case=worst,
        worst_renyi=float(converted(np.array(orders), renyi, plan.delta)[0]),
        losses=ends[:, 0].mean(axis=0),
        right=ends[:, 1].mean(axis=0),
        gains=gains,
    )


@dataclass(frozen=True, eq=False)
class _OfLevels:
    """Costs of steps by the sum rule. A step without a checkpoint costs what the last checkpoint says, which is a
    guess; in a certified bound it has the worst case."""

    plan: InstancePlan
    levels: Levels  # trainings × checkpoints × records

    def step(self, trainings: slice, *, guess: bool = True) -> Step:
        found, every, moments = self.levels[trainings], self.plan.interval, self.plan.moments

        def log_moments(step: int, order: float) -> Floats:
            table = moments.of_levels(order)
            if step % every and not guess:
                return np.full((len(found), found.shape[-1]), table[-1])
            return table[found[:, step // every]]

        return log_moments


@dataclass(frozen=True, eq=False)
class _OfMoments:
    """The same by the mean rule; between its orders on a line, since log-moments are convex, and 0 at order 1."""

    plan: InstancePlan
    found: Floats  # trainings × checkpoints × orders × records

    def step(self, trainings: slice, *, guess: bool = True) -> Step:
        found, every, moments = self.found[trainings], self.plan.interval, self.plan.moments

        def log_moments(step: int, order: float) -> Floats:
            worst = moments.of_levels(order)[-1]
            shape = (len(found), found.shape[-1])
            if (step % every and not guess) or order > MEAN_ORDERS[-1]:
                return np.full(shape, worst)
            above = int(np.searchsorted(MEAN_ORDERS, order))
            high = found[:, step // every, above]
            low = found[:, step // every, above - 1] if above else np.zeros(shape)
            start = float(MEAN_ORDERS[above - 1]) if above else 1.0
            part = (order - start) / (MEAN_ORDERS[above] - start)
            return np.asarray(np.minimum((1.0 - part) * low + part * high, worst))

        return log_moments


_Costs = _OfLevels | _OfMoments


def _searched(plan: InstancePlan) -> tuple[tuple[float, ...], tuple[float, ...]]:
    orders = ORDERS if plan.order is None else (plan.order,)
    multiples = tuple(max(2.0, plan.recipe.steps) * multiple for multiple in MULTIPLES)
    return orders, tuple(p for p in multiples if p > 1) if plan.p is None else (plan.p,)


def _worst(plan: InstancePlan) -> Any:
    moments = plan.moments
    return lambda order: float(moments.of_levels(order)[-1])


def _ways(plan: InstancePlan) -> list[Holder]:
    orders, ps = _searched(plan)
    return [Holder(order, p) for order in orders for p in ps]


def _estimated(plan: InstancePlan, step: Step) -> Floats:
    """The least over all ways."""
    steps = plan.recipe.steps
    found = [_epsilons(plan, way, composition.expected(step, steps, way, BOTH)) for way in _ways(plan)]
    return np.asarray(np.min(found, axis=0))


def _certified(plan: InstancePlan, costs: _Costs) -> Floats:
    """By the way that the first quarter of the trainings chooses for each record; the others certify it."""
    trainings, steps = plan.planned_trainings, plan.recipe.steps
    first = max(1, trainings // 4)
    rest = trainings - first
    nothing = np.full(len(plan.records), np.inf)
    if rest < 1:
        return nothing
    pilot, step = costs.step(slice(None, first), guess=False), costs.step(slice(first, None), guess=False)
    confidence = 1.0 - (plan.split_error if plan.rule == "mean" else 1.0 - plan.confidence)
    ways, worst = _ways(plan), _worst(plan)
    promises = np.array([
        _epsilons(plan, way, composition.promised(pilot, worst, steps, way, BOTH, rest, confidence)) for way in ways
    ])  # fmt: skip
    chosen = promises.argmin(axis=0)
    for place in np.unique(chosen):
        way = ways[place]
        found = composition.certified(pilot, step, worst, steps, way, BOTH, rest, confidence)
        nothing[chosen == place] = _epsilons(plan, way, found)[chosen == place]
    return nothing


def _epsilons(plan: InstancePlan, way: Holder, log_moments: Floats) -> Floats:
    return converted(np.array([way.order]), log_moments[None] / (way.order - 1.0), plan.delta)


@dataclass(frozen=True)
class Agreement:
    """How well a cheaper check agrees with a full one on the same records.

    >>> Agreement.of(np.array([1.0, 2.0, 4.0]), np.array([1.1, 1.8, 4.0]))
    Agreement(records=3, rank_correlation=1.000, median error 10.0 %, at most 10.0 % too low)
    """

    records: int
    rank_correlation: float  # Spearman's; 1 if the order of records is kept
    median_error: float  # relative to the full ε
    most_too_low: float  # the same, of the record that is told the most too low an ε

    @classmethod
    def of(cls, full: Floats, cheap: Floats) -> Agreement:
        """From ε of the same records in the same order."""
        if full.shape != cheap.shape or len(full) < 2:
            raise InvalidInput("records", f"{len(full)} and {len(cheap)}", "the same records, two at least, in both")
        errors = (cheap - full) / np.maximum(full, 1e-12)
        constant = np.ptp(full) == 0 or np.ptp(cheap) == 0  # there is no order to keep, or none is kept
        correlation = 0.0 if constant else float(stats.spearmanr(full, cheap).statistic)
        return cls(len(full), correlation, float(np.median(np.abs(errors))), float(max(0.0, -errors.min())))

    def __repr__(self) -> str:
        return (
            f"Agreement(records={self.records}, rank_correlation={self.rank_correlation:.3f}, median error "
            f"{100 * self.median_error:.1f} %, at most {100 * self.most_too_low:.1f} % too low)"
        )

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))
