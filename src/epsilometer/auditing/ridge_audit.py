"""An audit whose answer is known: many releases of private ridge regression, with and without the poison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from epsilometer import validate
from epsilometer.adversaries import RidgeClipBkd
from epsilometer.auditing.plan import Plan
from epsilometer.bounds import Fixed, LowerBound, clopper_pearson, epsilon_from_rates, exact_rank, upper_limit
from epsilometer.claims import PointClaim
from epsilometer.data import RegressionData
from epsilometer.evidence import Counts
from epsilometer.mechanisms import PrivateRidge, craft_poison
from epsilometer.runs.executors import Executor, Inline
from epsilometer.runs.play import play
from epsilometer.runs.store import MemoryStore, Store
from epsilometer.subjects import RidgeTraining


@dataclass(frozen=True)
class RidgeAudit:
    """What was measured beside what is known. At δ = 0: the midpoint test's ε, as Appendix B has it, in closed form and
    measured. At the mechanism's δ: what is certified, what these two worlds leak, and what is claimed.
    """

    closed_form: float  # δ = 0
    paper_form: float  # δ = 0; c = ½/(λ + s_d² + 1)
    paper_floor: float  # δ = 0; the paper's last inequality
    interval: tuple[float, float]  # δ = 0; for the midpoint test's ε, from counts alone
    interval_confidence: float
    reachable: float  # at δ; what `lower_bound` tends to as trials grow
    lower_bound: LowerBound  # at δ; the midpoint is the threshold, fixed beforehand
    rank_bound: LowerBound  # at δ; any threshold
    theory: float  # at δ; the exact ε of these two worlds, which no test can exceed
    claimed: PointClaim  # for all neighbours
    mechanism: PrivateRidge
    singular_value: float
    separation: float
    counts: Counts
    trials: int
    seed: int

    @property
    def agrees(self) -> bool:
        """Whether the closed form lies in the interval that was measured."""
        low, high = self.interval
        return low <= self.closed_form <= high

    def to_dict(self) -> dict[str, Any]:
        return {
            "epsilon": self.mechanism.epsilon,
            "delta": self.mechanism.delta,
            "regularisation": self.mechanism.regularisation,
            "records_limit": self.mechanism.records,
            "calibration": self.mechanism.calibration,
            "noise_std": self.mechanism.noise_std,
            "singular_value": self.singular_value,
            "separation": self.separation,
            "at_delta_0": {
                "closed_form": self.closed_form,
                "paper_form": self.paper_form,
                "paper_floor": self.paper_floor,
                "interval": list(self.interval),
                "interval_confidence": self.interval_confidence,
                "agrees": self.agrees,
            },
            "at_delta": {
                "reachable": self.reachable,
                "lower_bound": self.lower_bound.to_dict(),
                "rank_bound": self.rank_bound.to_dict(),
                "theory": self.theory,
                "claimed": self.claimed.to_dict(),
            },
            "counts": self.counts.to_dict(),
            "trials": self.trials,
            "seed": self.seed,
        }


def ridge_plan(
    mechanism: PrivateRidge,
    x: ArrayLike,
    y: ArrayLike,
    *,
    trials: int = 100_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Plan:
    """The same audit as a plan, which `run` judges as any other: the point that the mechanism claims."""
    training = RidgeTraining(mechanism, RegressionData("records", x, y))
    claim = PointClaim(mechanism.epsilon, mechanism.delta, mechanism.relation)
    return Plan(training, claim, claim.delta, RidgeClipBkd(), trials, confidence, seed=seed)


def audit_ridge(
    mechanism: PrivateRidge,
    x: ArrayLike,
    y: ArrayLike,
    *,
    trials: int = 100_000,
    confidence: float = 0.95,
    interval_confidence: float = 0.999,
    seed: int = 0,
    store: Store | None = None,
    executor: Executor | None = None,
) -> RidgeAudit:
    """Release the model `trials` times without and as often with the poison, and compare with the closed form.

    Each of the two bounds is certified by itself; the larger of them is not. `store` and `executor` are as for `run`.

    >>> from epsilometer.mechanisms import example_records
    >>> ridge = PrivateRidge(regularisation=50, epsilon=8, delta=1e-5)
    >>> found = audit_ridge(ridge, *example_records(200, 5), trials=10_000)
    >>> found.agrees
    True
    >>> found.lower_bound.epsilon < found.reachable < found.theory < found.claimed.epsilon
    True
    """
    validate.confidence(interval_confidence)
    plan = ridge_plan(mechanism, x, y, trials=trials, confidence=confidence, seed=seed)
    tally = play(plan, MemoryStore() if store is None else store, executor or Inline())
    runs = plan.evidence(tally.results, trials).as_pairs()
    poison, counts, delta = craft_poison(mechanism, x, y), runs.counts(0.0), mechanism.delta
    return RidgeAudit(
        closed_form=poison.epsilon(),
        paper_form=poison.paper_epsilon,
        paper_floor=poison.paper_floor,
        interval=epsilon_interval(counts, interval_confidence),
        interval_confidence=interval_confidence,
        reachable=poison.epsilon(delta),
        lower_bound=clopper_pearson(runs, delta=delta, confidence=confidence, thresholds=Fixed(0.0)),
        rank_bound=exact_rank(runs, delta=delta, confidence=confidence),
        theory=poison.truth.epsilon_at(delta),
        claimed=PointClaim(mechanism.epsilon, delta, mechanism.relation),
        mechanism=mechanism,
        singular_value=poison.singular_value,
        separation=poison.separation,
        counts=counts,
        trials=trials,
        seed=seed,
    )


def epsilon_interval(counts: Counts, confidence: float) -> tuple[float, float]:
    """A two-sided interval for the ε at δ = 0 of a test chosen beforehand: four Clopper–Pearson limits at once.

    >>> low, high = epsilon_interval(Counts(tp=600, fp=400, fn=400, tn=600), 0.95)
    >>> round(low, 3), round(high, 3)  # ln(600/400) is 0.405
    (0.259, 0.553)
    """
    share = (1.0 - validate.confidence(confidence)) / 4.0
    outs, ins = counts.out_trials, counts.in_trials
    low = epsilon_from_rates(upper_limit(counts.fp, outs, share), upper_limit(counts.fn, ins, share))
    high = epsilon_from_rates(1.0 - upper_limit(counts.tn, outs, share), 1.0 - upper_limit(counts.tp, ins, share))
    return float(low), float(high)
