"""What the experiments of Jagielski, Ullman & Oprea (2020) have in common: data, trainings, noise, number of copies."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from epsilometer.accounting import account
from epsilometer.adversaries import Adversary
from epsilometer.arrays import Floats
from epsilometer.auditing import Choice, Plan, choose_adversary
from epsilometer.auditing.pilot import CAUTION, Candidate, likely_scores
from epsilometer.auditing.utility import measure_accuracy
from epsilometer.bounds import ClopperPearson, Fixed
from epsilometer.claims import PointClaim, Relation
from epsilometer.data import Dataset, load
from epsilometer.data import Progress as Download
from epsilometer.data.request import TEST
from epsilometer.evidence import Evidence, PairedRuns
from epsilometer.reproductions.reproduction import Session
from epsilometer.runs import Inline
from epsilometer.subjects import DpSgdTraining
from epsilometer.training import Recipe

DELTA, CONFIDENCE = 1e-5, 0.99
EPSILONS = ("1", "2", "4", "8", "16", "inf")  # ε_th
COPIES = (1, 2, 4, 8)
MODELS = {"lr": "logistic", "fnn": "mlp"}


@dataclass(frozen=True)
class Setting:
    """A data set as the paper trains on it: its Table 1, and the noise multipliers of its code for each ε_th."""

    title: str
    data: Mapping[str, Any]  # arguments of `load`
    epochs: int
    learning_rate: float
    batch: int
    noise: tuple[float, ...]
    weight_decay: Mapping[str, float] = field(default_factory=dict)  # by model


SETTINGS = {
    "fmnist": Setting(
        "Fashion-MNIST", {"name": "fashion-mnist", "classes": (0, 1), "per_class": 3000},
        24, 0.15, 250, (5.02, 2.68, 1.55, 1.01, 0.73, 0.0),
    ),
    "cifar10": Setting(
        "CIFAR-10, frozen features", {"name": "cifar10-features", "classes": ("airplane", "automobile")},
        20, 0.8, 500, (5.04, 2.70, 1.56, 1.02, 0.74, 0.0),
    ),
    "purchase": Setting(
        "Purchase stand-in", {"name": "retail"},
        100, 2.0, 250, (7.78, 4.04, 2.20, 1.31, 0.89, 0.0), {"lr": 1e-5, "fnn": 1e-4},
    ),
}  # fmt: skip


def records_of(setting: str, session: Session) -> Dataset:
    """The data of a setting, loaded once."""
    return _loaded(setting, session.data_dir, session.download)


def with_test_part(setting: str, data: Dataset, session: Session) -> Dataset:
    """The same data; they hold out the test part, 1000 records of each class where there are as many."""
    return replace(data, held_out=_test_part(setting, session.data_dir, session.download))


@functools.lru_cache(maxsize=1)
def _loaded(setting: str, data_dir: Path | None, download: Download | None) -> Dataset:
    return load(**SETTINGS[setting].data, directory=data_dir, progress=download)


@functools.lru_cache(maxsize=1)
def _test_part(setting: str, data_dir: Path | None, download: Download | None) -> Dataset:
    chosen = {key: value for key, value in SETTINGS[setting].data.items() if key != "per_class"}
    return load(**chosen, part=TEST, directory=data_dir, progress=download)


def recipe_of(
    setting: str, data: Dataset, eps: str, model: str, *, clip_norm: float = 1.0, init: str = "fixed"
) -> Recipe:
    """Epochs by shuffling; `init` is "fixed", or by what Glorot's initialisation is multiplied."""
    chosen = SETTINGS[setting]
    return Recipe(
        records=len(data),
        sample_rate=chosen.batch / len(data),
        steps=chosen.epochs * len(data) // chosen.batch,
        noise_multiplier=chosen.noise[EPSILONS.index(eps)],
        clip_norm=clip_norm,
        learning_rate=chosen.learning_rate,
        weight_decay=chosen.weight_decay.get(model, 0.0),
        model=MODELS[model],
        hidden=(32,),
        sampling="shuffle",
        initialisation="fixed" if init == "fixed" else "random",
        init_scale=1.0 if init == "fixed" else float(init),
    )


def plan_of(data: Dataset, recipe: Recipe, adversary: Adversary, relation: Relation, session: Session) -> Plan:
    """The claim is the nearest that is proved: Poisson sampling, under the relation of the game."""
    claim = PointClaim(account(recipe.mechanism, DELTA, relation).epsilon, DELTA, relation)
    subject = DpSgdTraining(recipe, data)
    return Plan(subject, claim, DELTA, adversary, session.trials, CONFIDENCE, seed=session.seed)


def papers_rule(hits: ArrayLike, false_alarms: ArrayLike, trials: int, group_size: int) -> Floats:
    """ln(p̂₁/p̂₀)/k, Algorithm 2: a lower limit on how often world 1 scores high by an upper one for world 0; 0 at least.

    Or the same of low scores, world 0 by world 1, where that is more: the complement set, which the paper takes in all
    of its experiments. Both rest on the same two limits, so that nothing is paid for it. Each limit has half of α; δ is
    0. For k > 1 it is weaker than composing k times what (ε, δ)-DP allows of both kinds of errors.

    >>> from epsilometer.bounds import clopper_pearson
    >>> from epsilometer.evidence import Counts
    >>> perfect = clopper_pearson(Counts(tp=500, fp=0, fn=0, tn=500, group_size=2), confidence=0.99)
    >>> round(perfect.epsilon, 2), round(float(papers_rule(500, 0, 500, group_size=2)), 2)
    (3.86, 2.27)
    """
    above, by_chance = np.asarray(hits, float), np.asarray(false_alarms, float)
    tail = (1 - CONFIDENCE) / 2
    low = np.where(above > 0, special.betaincinv(np.maximum(above, 1), trials - above + 1, tail), 0.0)
    rest = np.maximum(trials - by_chance, 1)
    high = np.where(by_chance < trials, special.betainccinv(by_chance + 1, rest, tail), 1.0)
    ratio = np.maximum(low / high, (1 - high) / (1 - low))
    found: Floats = np.log(np.maximum(ratio, 1.0)) / group_size
    return found


def by_composed_limits(choice: Choice, evidence: Evidence) -> dict[str, Any]:
    """The bound with k composed limits, at the threshold that the pilot has for it."""
    bound = ClopperPearson(Fixed(choice.threshold)).bound(
        evidence, delta=DELTA, confidence=CONFIDENCE  # type: ignore[arg-type]
    )  # fmt: skip
    return {"composed": bound.epsilon, "threshold": choice.threshold}


def by_papers_rule(choice: Choice, evidence: Evidence) -> dict[str, Any]:
    """The paper's bound, at the threshold that the pilot has for it."""
    threshold = papers_threshold(choice.likely)
    return {
        "papers_rule": float(_by_papers_rule(evidence.as_pairs(), np.array([threshold]))[0]),
        "papers_k": choice.adversary.group_size,
        "papers_threshold": threshold,
    }


def for_papers_rule(choice: Choice) -> Choice:
    """The choice that the same pilot makes, with the same caution, for the paper's rule: larger k promise it less."""

    def expected(candidate: Candidate) -> float:
        likely = likely_scores(candidate.pilot, choice.plan.planned_trials, CAUTION)
        return float(_by_papers_rule(likely, np.array([papers_threshold(likely)]))[0])

    best = max(choice.candidates, key=lambda candidate: (expected(candidate), candidate.strength))
    return replace(choice, plan=replace(choice.plan, adversary=best.adversary))


def papers_threshold(likely: PairedRuns) -> float:
    """Where the paper's rule certifies most, of scores as they are likely to be: the middle of a gap between two."""
    scores = np.sort(np.concatenate([likely.out_scores, likely.in_scores]))
    cuts = (scores[1:] + scores[:-1]) / 2
    return float(cuts[np.argmax(_by_papers_rule(likely, cuts))])


def _by_papers_rule(pairs: PairedRuns, thresholds: Floats) -> Floats:
    hits, false_alarms = ((scores > thresholds[:, None]).sum(1) for scores in (pairs.in_scores, pairs.out_scores))
    return papers_rule(hits, false_alarms, len(pairs.in_scores), pairs.group_size)


def train_accuracy(plan: Plan, session: Session) -> float:
    """Of a few trainings without poison, whose seeds are used for nothing else."""
    (found,) = measure_accuracy(
        plan, progress=session.progress, store=session.store, executor=session.executor or Inline()
    )  # fmt: skip
    return found.mean


def best_copies(plan: Plan, session: Session) -> Choice:
    """The number of copies of the plan's poison, by a pilot."""
    return choose_adversary(
        plan,
        [replace(plan.adversary, copies=k) for k in COPIES],  # type: ignore[type-var]
        pilot=max(10, session.trials // 10),
        progress=session.progress,
        store=session.store,
        executor=session.executor,
    )
