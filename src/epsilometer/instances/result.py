"""What was found of each record: its ε, of which kind that is, and what follows."""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from epsilometer.accounting import UpperBound, converted
from epsilometer.arrays import Floats
from epsilometer.errors import InvalidInput
from epsilometer.evidence import IN
from epsilometer.instances import composition
from epsilometer.instances.budgets import PILOT, certified_epsilons, trainings_wanted
from epsilometer.instances.composition import Holder
from epsilometer.instances.costs import Costs, OfLevels, OfMoments, one_by_one, paths_of
from epsilometer.instances.individual import individual_epsilons
from epsilometer.instances.paths import ORDERS, costliest_epsilons, expected_epsilons
from epsilometer.instances.plan import MEAN_ORDERS, InstancePlan
from epsilometer.runs import Executor, Inline, MemoryStore, Progress, Results, Store, play

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
# Of the composition step by step: orders, and p in multiples of the number of steps.
BY_STEPS_ORDERS, BY_STEPS_MULTIPLES = (2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0, 16.0, 32.0), (2.0, 4.0, 16.0, 256.0)
BOTH = "without-with"  # moments are the larger of both directions, and this one's orders are the larger


@dataclass(frozen=True, eq=False, repr=False)
class InstanceResult:
    """ε of each record of a plan, in its order, at the plan's δ; none is above the worst case.

    `epsilons` are of the kind that `KINDS` says of the plan's rule. `certified` are upper bounds, each with the plan's
    confidence, whatever the law of trainings: few trainings cannot exclude a rare one that costs a record everything,
    so they are the worst case, and `trainings_wanted` says about how many would certify less for half of the records.
    None for individual accounting. `one_training` is individual accounting of the first training, where its norms are
    known, and `costliest_training` that of the training which cost the record most. Only `seconds` varies between runs.
    """

    plan: InstancePlan
    epsilons: Floats
    certified: Floats | None
    one_training: Floats | None
    costliest_training: Floats | None
    trainings_wanted: int | None
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
        if self.plan.rule != "individual" and self.plan.planned_trainings == 1:
            words += "; from one training, which tells nothing of others"
        if self.plan.rule != "individual" and self.plan.p is not None:
            words += f"; with p = {self.plan.p:g} as asked, however unlike trainings are"
        return words

    @property
    def labels(self) -> np.ndarray:
        return self.plan.looked_at.y

    @functools.cached_property
    def from_least_to_most_exposed(self) -> np.ndarray:
        """Places of records. Where ε is the worst case for many, the most costly training decides; then the data."""
        again = self.epsilons if self.costliest_training is None else self.costliest_training
        return np.lexsort((again, self.epsilons))

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
    costs, ends, shares = _costs(plan, results)
    worst, paths = plan.worst_case, paths_of(costs[0], plan)
    one_training, costliest, certified, wanted = None, None, None, None
    if plan.rule != "mean":
        one_training = individual_epsilons(shares[0], plan.recipe.mechanism, plan.delta, steps_between=plan.interval)
    if plan.rule == "individual":
        assert one_training is not None
        epsilons = one_training
    else:
        epsilons = expected_epsilons(paths, plan.delta, order=plan.order, p=plan.p)
        costliest = costliest_epsilons(paths, plan.delta)
        certified, wanted = _certified(plan, costs[1])

    def capped(values: Floats | None) -> Floats | None:
        return None if values is None else np.minimum(values, worst.epsilon)

    return InstanceResult(
        plan=plan,
        epsilons=np.minimum(epsilons, worst.epsilon),
        certified=capped(certified),
        one_training=capped(one_training),
        costliest_training=capped(costliest),
        trainings_wanted=wanted,
        worst_case=worst,
        worst_renyi=_worst_renyi(plan),
        losses=ends[:, 0].mean(axis=0),
        right=ends[:, 1].mean(axis=0),
        gains=_gains(plan, costs[0]),
    )


def step_by_step(plan: InstancePlan, results: Results) -> Floats:
    """ε of each record by the composition of Thudi et al. (2024), with any p: what paths are compared with."""
    costs, _, _ = _costs(plan, results)
    steps, step = plan.recipe.steps, one_by_one(costs[0], plan)
    ways = [Holder(a, multiple * max(2, steps)) for a in BY_STEPS_ORDERS for multiple in BY_STEPS_MULTIPLES]
    moments = [composition.expected(step, steps, way, BOTH) / (way.order - 1.0) for way in ways]
    found = [converted(np.array([way.order]), one[None], plan.delta) for way, one in zip(ways, moments, strict=True)]
    return np.asarray(np.minimum(np.min(found, axis=0), plan.worst_case.epsilon))


def _costs(plan: InstancePlan, results: Results) -> tuple[tuple[Costs, Costs], Floats, Floats]:
    """Of all trainings: estimates and limits of what steps cost; losses and right ones at the end; shares of the clip
    norm (by the mean rule none)."""
    records = len(plan.records)
    rows = np.array([results[IN, i] for i in range(plan.planned_trials)]).reshape(plan.planned_trials, -1, records)
    if plan.rule != "mean":
        costs = OfLevels(plan, plan.moments.levels(rows[:, :-2]))
        return (costs, costs), rows[:, -2:], rows[:, :-2]
    seen = rows.reshape(plan.planned_trainings, plan.checkpoints, -1, records)
    parts = seen[:, :, :-2].reshape(*seen.shape[:2], 2, len(MEAN_ORDERS), records)
    return (OfMoments(plan, parts[:, :, 0]), OfMoments(plan, parts[:, :, 1])), seen[:, -1, -2:], np.empty(0)


def _gains(plan: InstancePlan, costs: Costs) -> Floats:
    worst = plan.moments.of_levels(GAIN_ORDER)[-1]
    typical = [costs.step(i, GAIN_ORDER, slice(None)).mean(axis=0) for i in range(plan.checkpoints)]
    return np.asarray(worst / np.maximum(typical, 1e-300))


def _worst_renyi(plan: InstancePlan) -> float:
    orders = np.array([float(a) for a in ORDERS])
    moments = np.array([composition.at_worst(_worst(plan), plan.recipe.steps, a) / (a - 1.0) for a in orders])
    return float(converted(orders, moments[:, None], plan.delta)[0])


def _worst(plan: InstancePlan) -> Any:
    moments = plan.moments
    return lambda order: float(moments.of_levels(order)[-1])


def _certified(plan: InstancePlan, costs: Costs) -> tuple[Floats | None, int | None]:
    """ε that hold with confidence, and about how many trainings would certify less than the worst case."""
    if plan.last_layer:
        return None, None  # norms of a part bound nothing
    trainings = plan.planned_trainings
    first = max(1, trainings // PILOT)
    pilot = paths_of(costs, plan, slice(None, first), guess=False)
    confidence = 1.0 - (plan.split_error if plan.rule == "mean" else 1.0 - plan.confidence)
    wanted = trainings_wanted(pilot, plan.delta, confidence, plan.worst_case.epsilon)
    if first == trainings:
        return np.full(len(plan.records), np.inf), wanted
    rest = paths_of(costs, plan, slice(first, None), guess=False)
    return certified_epsilons(pilot, rest, trainings - first, plan.delta, confidence), wanted


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
