"""Models → signals → scores → what they show. What is stored is not trained again."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from epsilometer import validate
from epsilometer.accounting import UpperBound
from epsilometer.arrays import Floats
from epsilometer.bounds import LowerBound, one_run_fdp, pool_runs
from epsilometer.errors import InvalidInput
from epsilometer.evidence import Membership, OneRun
from epsilometer.membership.attack import Attack, Seen
from epsilometer.membership.catalogue import require_fitting
from epsilometer.membership.plan import MembershipPlan
from epsilometer.membership.result import RATES, SHOWN, AttackResult, Exposed, MembershipResult, subsets
from epsilometer.membership.signals import Signals
from epsilometer.runs import Executor, Inline, MemoryStore, Progress, Results, Store, play

MOST_GROUPS = 10  # values of a feature that are subgroups of their own


def run_membership(
    plan: MembershipPlan,
    attacks: Sequence[Attack],
    progress: Progress | None = None,
    *,
    delta: float = 1e-5,
    confidence: float = 0.95,
    subgroup: int | None = None,
    store: Store | None = None,
    executor: Executor | None = None,
) -> MembershipResult:
    """Train what is missing of the plan's models, and attack its targets.

    Where fair coins decided who is in a target, each attack's scores are evidence of one run (Steinke et al. 2023): a
    score may depend on everything but the record's own coin, and references have coins of their own. Bounds and
    intervals of n attacks have an n-th of the error each, so that they hold for all attacks at once and the strongest
    may be picked. `subgroup` is the number of a feature.
    """
    validate.delta(delta)
    validate.confidence(confidence)
    require_fitting(attacks, plan.references, len(plan.population))
    for attack in attacks:
        if attack.asks and plan.queries is None:
            raise InvalidInput("queries", None, f"noisy copies for {attack.name}", "Queries() has usual settings")
        if attack.white_box and not plan.white_box:
            raise InvalidInput("white_box", False, f"true for {attack.name}", "layers are looked at while models live")
        if attack.reads and not any(name in plan.signal_names for name in attack.reads):
            expected = f"attacks that read {', '.join(plan.signal_names)}, which is all that is known of a record here"
            raise InvalidInput("attacks", attack.name, expected, "leave it out")
    groups, names = _subgroups(plan, subgroup)  # before anything is trained
    store = MemoryStore() if store is None else store
    results = play(plan, store, executor or Inline(), progress).results
    started = time.perf_counter()
    signals = plan.signals(results)
    each = 1.0 - (1.0 - confidence) / len(attacks)
    found = tuple(
        _judged(plan, attack, scores_of(plan, attack, signals), groups, names, delta, each) for attack in attacks
    )
    train, test = _accuracies(plan, signals)
    best = max(found, key=lambda one: (one.tpr_at[-1].tpr.value, one.auc.value))
    key = store.begin(plan).fingerprint
    result = MembershipResult(
        plan=plan,
        attacks=found,
        train_accuracy=train,
        test_accuracy=test,
        theory=_theory(plan, delta),
        exposed=_exposed(plan, best),
        subgroups=names,
        confidence=confidence,
        seconds=store.begin(plan).seconds + time.perf_counter() - started,
    )
    bound = result.bound
    store.conclude(
        key,
        {
            "verdict": None,
            "lower_bound": None if bound is None else bound.to_dict(),
            "stopped_early": False,
            "judged": plan.planned_trials,
        },
    )
    return result


def seen_of(plan: MembershipPlan, signals: Signals, target: int) -> Seen:
    """What an attacker of one target is shown."""
    records, population = slice(0, len(plan.data)), slice(len(plan.data), None)
    references = signals.models(slice(plan.targets, None))
    members = [plan.member(index) for index in range(plan.targets, plan.planned_trials)]
    (y, names), (population_y, _) = plan.reads.labels(plan.data), plan.reads.labels(plan.population)
    return Seen(
        y=y,
        classes=len(names),
        target=signals.models(target).records(records),
        population=signals.models(target).records(population),
        population_y=population_y,
        references=references.records(records),
        reference_population=references.records(population),
        member=np.array(members, bool).reshape(len(members), len(plan.data)),
    )


def scores_of(plan: MembershipPlan, attack: Attack, signals: Signals) -> Floats:
    """Targets × records."""
    found = [attack.scores(seen_of(plan, signals, target)) for target in range(plan.targets)]
    scores: Floats = np.array(found, np.float64)
    if scores.shape != (plan.targets, len(plan.data)) or np.isnan(scores).any():
        expected = f"numbers of shape {(plan.targets, len(plan.data))}"
        raise InvalidInput(f"scores of {attack.name}", f"shape {scores.shape}, or NaN", expected)
    return scores


def stored_signals(plan: MembershipPlan, results: Results) -> Signals:
    """The signals of models that were trained before."""
    return plan.signals(plan.accepted(results))


def _judged(
    plan: MembershipPlan,
    attack: Attack,
    scores: Floats,
    subgroups: NDArray[np.int64],
    names: tuple[str, ...],
    delta: float,
    confidence: float,
) -> AttackResult:
    members = np.array([plan.member(target) for target in range(plan.targets)])
    flat, member = scores.ravel(), members.ravel()
    evidence: OneRun | Membership = Membership(flat, member)
    bound: LowerBound | None = None
    if plan.by_coins:
        runs = [OneRun(*both, plan.neighbours, in_order=True) for both in zip(scores, members, strict=True)]
        evidence = pool_runs(runs)
        bound = certified(evidence, delta, confidence)
    pairs = evidence.as_pairs()
    y, labels = plan.reads.labels(plan.data)
    classes = np.tile(y, plan.targets)
    return AttackResult(
        name=attack.name,
        summary=attack.summary,
        evidence=evidence,
        auc=pairs.auc(confidence),
        balanced_accuracy=pairs.balanced_accuracy(confidence=confidence),
        tpr_at=tuple(pairs.tpr_at(rate, confidence) for rate in RATES),
        by_class=subsets(flat, member, classes, labels, confidence),
        by_subgroup=subsets(flat, member, np.tile(subgroups, plan.targets), names, confidence) if names else (),
        bound=bound,
    )


def certified(evidence: OneRun, delta: float, confidence: float) -> LowerBound:
    """The certified ε of fair coins: right guesses against (ε, δ) (Mahloujifar et al. 2024, for a point)."""
    return one_run_fdp(evidence, delta=delta, confidence=confidence, family="point")


def _accuracies(plan: MembershipPlan, signals: Signals) -> tuple[float | None, float | None]:
    """Of members and of others; none where nothing is right or wrong."""
    if "correct" not in signals.names:
        return None, None
    shares = []
    for target in range(plan.targets):
        right = signals.models(target)["correct"]
        inside = np.concatenate([plan.member(target), np.zeros(len(plan.population), bool)])
        shares.append([right[inside].mean(), right[~inside].mean()])
    train, test = np.mean(shares, axis=0)
    return float(train), float(test)


def _theory(plan: MembershipPlan, delta: float) -> UpperBound | None:
    """What accountants promise for the targets, if they say what noise they have."""
    if plan.given is not None or plan.training is None:
        return None
    promise = plan.training.promise
    if promise.caveat or promise.noise_multiplier == 0:
        return None
    return promise.upper_bound(delta, plan.neighbours)


def _exposed(plan: MembershipPlan, strongest: AttackResult) -> tuple[Exposed, ...]:
    """Members of the first target with the highest scores."""
    scores = strongest.evidence.scores[: len(plan.data)]
    inside = np.flatnonzero(plan.member(0))
    rows = inside[np.argsort(-scores[inside], kind="stable")[:SHOWN]]
    y, names = plan.reads.labels(plan.data)
    return tuple(Exposed(int(row), names[y[row]], float(scores[row])) for row in rows)


def _subgroups(plan: MembershipPlan, feature: int | None) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """A subgroup for each record, by the values of a feature; of many values, below the median and above."""
    data = plan.data
    if feature is None:
        return np.zeros(len(data), np.int64), ()
    most = data.x.shape[1] - 1
    column = data.x[:, validate.whole("subgroup", feature, least=0, most=most, remedy="it is the number of a feature")]
    values, places = np.unique(column, return_inverse=True)
    if len(values) <= MOST_GROUPS:
        return places.astype(np.int64), tuple(f"feature {feature} = {value:g}" for value in values)
    middle = float(np.median(column))
    names = (f"feature {feature} ≤ {middle:.4g}", f"feature {feature} > {middle:.4g}")
    return (column > middle).astype(np.int64), names
