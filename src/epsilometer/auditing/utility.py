"""How good the models are that a training ends in: its accuracy, beside what an audit says of its privacy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.auditing.part import PartOfPlan
from epsilometer.auditing.plan import Plan
from epsilometer.auditing.runner import AuditResult
from epsilometer.data import DATASETS, Dataset, load
from epsilometer.data import Progress as Downloading
from epsilometer.data.request import TEST
from epsilometer.errors import EpsilometerError
from epsilometer.evidence import OUT, Trial
from epsilometer.runs.executors import Executor
from epsilometer.runs.play import play
from epsilometer.runs.progress import Progress
from epsilometer.runs.scores import require_scores
from epsilometer.runs.store import Store
from epsilometer.runs.trials import Preparation
from epsilometer.seeds import Stream, seed_of
from epsilometer.subjects import Insertion, Observer, Predicts
from epsilometer.training import accuracy

if TYPE_CHECKING:
    from epsilometer.auditing.spec import Spec

TRAININGS = 5


@dataclass(frozen=True)
class Accuracy:
    """The mean over some trainings, and their deviation: an estimate."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, shares: Floats) -> Accuracy:
        return cls(float(np.mean(shares)), float(np.std(shares, ddof=1)))

    def __str__(self) -> str:
        spread = f"deviation {100 * self.deviation:.1f} %"
        return f"{100 * self.mean:.1f} % (mean of {TRAININGS} trainings without a canary, {spread})"


@dataclass(frozen=True, eq=False)
class Utility(PartOfPlan):
    """Trainings on the plan's own data, without a canary and with seeds of their own, as `Trials`.

    They have nothing to do with the audit's trials. Each gives the share of records that its model gets right: of those
    that it was trained on, and of `test`, where there are others.
    """

    test: Dataset | None = None

    @property
    def worlds(self) -> tuple[int, ...]:
        return (OUT,)

    @property
    def planned_trials(self) -> int:
        return TRAININGS

    @property
    def first_look(self) -> int:
        return TRAININGS

    def to_dict(self) -> dict[str, Any]:
        test = None if self.test is None else {"records": len(self.test), "sha256": self.test.fingerprint()}
        return {**self.plan.to_dict(), "trials": TRAININGS, "part": "utility", "test_data": test}

    def prepare(self) -> Preparation:
        self.plan.subject.load()
        return Preparation({})

    def play(self, prepared: Preparation, trials: Sequence[Trial]) -> list[Floats]:
        subject = self.plan.subject
        looking = [_Looking(subject.data, self.test) for _ in trials]
        seeds = [seed_of(self.plan.seed, Stream.UTILITY, index) for _, index in trials]
        subject.run([Insertion(subject.data) for _ in trials], seeds, looking)
        return [one.score() for one in looking]

    def accepted(self, results: Mapping[Trial, Any], **remedy: str) -> dict[Trial, Floats]:
        return require_scores(results, "accuracy", 1 if self.test is None else 2, **remedy)

    def describe(self) -> str:
        return "accuracy"


class _Looking(Observer):
    """Asks the final model for predictions."""

    def __init__(self, train: Dataset, test: Dataset | None) -> None:
        self._parts = [train] if test is None else [train, test]
        self._shares: list[float] = []

    def finish(self, model: Any) -> None:
        self._shares = [accuracy(model.logits(part.x), part.y) for part in self._parts]

    def score(self) -> Floats:
        return np.array(self._shares)


def has_accuracy(plan: Plan) -> bool:
    """Whether its models tell classes apart, and can be asked."""
    return plan.subject.offers(Predicts) is not None and plan.subject.loss != "scored"


def measure_accuracy(
    plan: Plan,
    test: Dataset | None = None,
    progress: Progress | None = None,
    *,
    store: Store,
    executor: Executor,
) -> tuple[Accuracy, ...]:
    """On the training's own records and, if there are any, on those of `test`."""
    results = play(Utility(plan, test), store, executor, progress).results
    return tuple(Accuracy.of(shares) for shares in np.array([results[OUT, i] for i in range(TRAININGS)]).T)


def held_out_part(
    spec: Spec, plan: Plan, data_dir: Path | None = None, progress: Downloading | None = None
) -> Dataset | None:
    """Records of the same classes that no training sees, where the data set has such a part.

    Nothing is held out of one that has none: that would change the training that is audited.
    """
    if spec.data.path is not None or not has_accuracy(plan) or TEST not in DATASETS[spec.data.name].parts:
        return None
    with suppress(EpsilometerError):  # a file that is not here, and cannot be downloaded: nothing audited needs it
        return load(spec.data.name, part=TEST, classes=spec.data.classes, directory=data_dir, progress=progress)
    return None


def with_accuracy(
    result: AuditResult,
    progress: Progress | None = None,
    *,
    test: Callable[[], Dataset | None] = lambda: None,
    store: Store,
    executor: Executor,
) -> AuditResult:
    """The result with the accuracy of its training, if models have one and it costs a tenth of the audit at most; also
    on the records that `test` loads, if there are any."""
    played = result.judged * len(result.plan.worlds)
    if played < 10 * TRAININGS or not has_accuracy(result.plan):
        return result
    found = measure_accuracy(result.plan, test(), progress, store=store, executor=executor)
    return replace(result, accuracy=found)
