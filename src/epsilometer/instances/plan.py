"""A plan for single records: trainings, and what each step costs each record. It is `Trials`, as an audit is."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilometer import validate
from epsilometer.accounting import UpperBound, account
from epsilometer.arrays import Floats
from epsilometer.claims import Relation
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput, unknown_name
from epsilometer.evidence import IN, Trial
from epsilometer.instances.batches import draw_batches
from epsilometer.instances.composition import Holder
from epsilometer.instances.mean_rule import mean_rule
from epsilometer.instances.moments import StepMoments
from epsilometer.instances.watchers import ClippedNorms, MeanUpdates, losses_and_right
from epsilometer.isolation import Isolation
from epsilometer.runs import Preparation, Results
from epsilometer.runs.identity import Fingerprinted
from epsilometer.runs.scores import require_scores
from epsilometer.runs.trials import one_thread
from epsilometer.seeds import Stream, seed_of
from epsilometer.subjects import DpSgdTraining, Subject
from epsilometer.training import Array, Recipe, train_many

VERSION = 2  # raised whenever the same plan would give other numbers
RULES = {
    "sum": "expected guarantees from clipped gradient norms at every step of several trainings (Thudi et al. 2024)",
    "mean": "the same for a training that adds noise to the mean of a batch, from batches drawn at checkpoints",
    "individual": "the clipped gradient norms of one training, for that training only (Yu et al. 2023)",
}
MEAN_ORDERS = (
    2,
    3,
    4,
    6,
    8,
    12,
    16,
    24,
    32,
    64,
    128,
    256,
)  # at which the mean rule is looked at; between them, on a line
MOST_OF_A_TRAINING, MOST_NUMBERS = 10**8, 10**9  # of eight bytes: SQLite's rows have a gigabyte at most
USUAL_RECORDS, USUAL_TRAININGS, USUAL_CHECKPOINTS = 500, {"sum": 8, "mean": 2, "individual": 1}, 10


@dataclass(frozen=True, eq=False, repr=False)
class InstancePlan(Fingerprinted):
    """What each of some records pays in trainings of a subject's.

    `records` are rows of its data. Checkpoints are taken `every` so many steps: at each one if nothing is said, but for
    the mean rule, which has ten. `order` and `p` are searched for if they are not said. `draws` and `tuples` (of
    `tuple_order` batches) are the mean rule's.

    Cheaper plans (fewer trainings, checkpoints or draws; the `last_layer` only) are checks: `agreement` tells how well
    they keep the order of records.
    """

    subject: DpSgdTraining
    records: tuple[int, ...]
    delta: float
    rule: str = "sum"
    trainings: int | None = None
    every: int | None = None
    order: float | None = None
    p: float | None = None
    draws: int = 20
    tuples: int = 100
    tuple_order: int = 8
    confidence: float = 0.95
    seed: int = 0
    relation: Relation = Relation.ADD_REMOVE
    last_layer: bool = False  # a cheap check: of the gradient's last layer only, which is no bound

    kind: ClassVar[str] = "instances"
    worlds: ClassVar[tuple[int, ...]] = (IN,)
    first_look: ClassVar[int] = 1

    def __post_init__(self) -> None:
        own_engine(self.subject)
        if self.rule not in RULES:
            raise unknown_name("rule", self.rule, RULES)
        self._require_training()
        rows = tuple(self._row(row) for row in self.records)
        if not rows or len(set(rows)) < len(rows):
            raise InvalidInput("records", f"{len(rows)} rows", "rows of the data, each once", "0 is the first row")
        object.__setattr__(self, "records", rows)
        validate.whole("trainings", self.planned_trainings, least=1, most=10_000)
        if self.rule == "individual" and self.planned_trainings != 1:
            raise InvalidInput("trainings", self.trainings, "1: individual accounting is of one training", "rule sum")
        most = f"there are {self.recipe.steps} steps: the checkpoint is missing otherwise"
        validate.whole("every", self.interval, least=1, most=self.recipe.steps, remedy=most)
        Holder(8.0 if self.order is None else self.order, 2.0 if self.p is None else self.p)
        self._require_room()
        validate.whole("draws", self.draws, least=1, most=10_000)
        validate.whole("tuples", self.tuples, least=1, most=100_000)
        validate.whole("tuple_order", self.tuple_order, least=2, most=64)
        validate.confidence(self.confidence)
        validate.seed("seed", self.seed)
        validate.real("delta", self.delta, above=0, below=1, remedy="a common choice is 1e-5")

    def _require_training(self) -> None:
        if self.last_layer and (self.rule == "mean" or not self.subject.network.fully_connected):
            raise InvalidInput("last_layer", True, "rule sum or individual of a fully connected network")
        recipe = self.recipe
        if not recipe.is_accounted:
            raise InvalidInput("sampling", recipe.sampling, "poisson or full, which accountants prove")
        if recipe.noise_multiplier == 0:
            raise InvalidInput("noise_multiplier", 0.0, "some noise: without it no record has an ε")
        if self.subject.injected():
            raise InvalidInput("faults", self.subject.injected()[0], "none: theory speaks of the noise that is stated")
        if Relation.of(self.relation) is Relation.REPLACE:
            expected = "add-remove or zero-out: a record that is replaced has no gradient of its own to go by"
            raise InvalidInput("relation", "replace", expected, "claim add-remove")
        if self.rule == "mean" and Relation.of(self.relation) is not Relation.ADD_REMOVE:
            expected = "add-remove for the mean rule: a record of zeros still counts in the size of a batch"
            raise InvalidInput("relation", Relation.of(self.relation).value, expected, "claim add-remove, or rule sum")

    def _require_room(self) -> None:
        """Before anything is trained: what a training keeps must fit into a row of a store, and all of it in memory."""
        kept = len(self.records) if self.rule != "mean" else self.subject.network.parameters
        for numbers, most, what in (
            (self.checkpoints * kept, MOST_OF_A_TRAINING, "a training"),
            (self.checkpoints * kept * self.planned_trainings, MOST_NUMBERS, "all trainings"),
        ):
            if numbers > most:
                expected = f"a larger interval: {numbers:,} numbers of {what} would be kept, and {most:,} can be"
                raise InvalidInput("every", self.interval, expected, "look less often, or at fewer records")

    def _row(self, row: object) -> int:
        data = self.subject.data
        remedy = f"{data.name} has rows 0 to {len(data) - 1}"
        return validate.whole("records", row, least=0, most=len(data) - 1, remedy=remedy)

    @property
    def recipe(self) -> Recipe:
        return self.subject.recipe

    @property
    def planned_trainings(self) -> int:
        return USUAL_TRAININGS[self.rule] if self.trainings is None else self.trainings

    @property
    def interval(self) -> int:
        """Steps between checkpoints."""
        if self.every is not None:
            return self.every
        return max(1, self.recipe.steps // USUAL_CHECKPOINTS) if self.rule == "mean" else 1

    @property
    def checkpoints(self) -> int:
        """Of each training; the first is the model that it starts from."""
        return -(-self.recipe.steps // self.interval)

    @property
    def rows(self) -> NDArray[np.int64]:
        return np.array(self.records, np.int64)

    @property
    def looked_at(self) -> Dataset:
        """The records, as data."""
        return self.subject.data.taken(np.asarray(self.rows, np.int64))

    @property
    def moments(self) -> StepMoments:
        return StepMoments(self.recipe.sample_rate, self.recipe.noise_multiplier)

    @functools.cached_property
    def worst_case(self) -> UpperBound:
        """What theory promises for every record. Noise on a mean of one record is noise on a sum: the same."""
        return account(self.recipe.mechanism, self.delta, self.relation)

    def __repr__(self) -> str:
        return f"InstancePlan({len(self.records)} records of {self.subject.describe()}; {self.rule} rule)"

    # ------------------------------------------------------------------------------------- as Trials (see there)
    @property
    def planned_trials(self) -> int:
        return self.planned_trainings * (self.checkpoints if self.rule == "mean" else 1)

    def about(self) -> dict[str, Any]:
        return {"claimed_epsilon": self.worst_case.epsilon}

    @property
    def safeguards(self) -> Isolation:
        return self.subject.safeguards

    def to_dict(self) -> dict[str, Any]:
        searched = {"order": self.order or "searched", "p": self.p or "searched"}
        drawn = {"draws": self.draws, "tuples": self.tuples, "tuple_order": self.tuple_order}
        return {
            "instances_version": VERSION,
            "claim": {"relation": Relation.of(self.relation).value, "form": "none"},
            "delta": self.delta,
            **self.subject.identity(),
            "adversary": {"name": f"instances ({self.rule})"},
            "trials": self.planned_trials,
            "rule": self.rule,
            "records": {"count": len(self.records), "sha256": hashlib.sha256(self.rows.tobytes()).hexdigest()},
            "trainings": self.planned_trainings,
            "every": self.interval,
            **(searched if self.rule != "individual" else {}),
            **(drawn if self.rule == "mean" else {}),
            **({"last_layer": True} if self.last_layer else {}),
            "confidence": self.confidence,
            "seed": self.seed,
        }

    def prepare(self) -> Preparation:
        """For the mean rule, models of all trainings at their checkpoints; they are kept, and never trained again."""
        self.subject.load()
        if self.rule != "mean":
            return Preparation({})
        seeds = [self._seed(index) for index in range(self.planned_trainings)]
        recipe, data = mean_recipe(self.recipe), self.subject.data
        watchers = [MeanUpdates(recipe, len(data), seed, self.interval) for seed in seeds]
        with one_thread():
            train_many(recipe, [data] * len(seeds), seeds, watchers)
        return Preparation({"models": np.array([one.models for one in watchers])})

    def play(self, prepared: Preparation, trials: Sequence[Trial]) -> list[Floats]:
        if self.rule == "mean":
            return [self._at_checkpoint(prepared, *divmod(index, self.checkpoints)) for _, index in trials]
        looked_at, network = self.looked_at, self.subject.network
        watchers = [ClippedNorms(self.recipe, network, looked_at, self.interval, self.last_layer) for _ in trials]
        seeds = [self._seed(index) for _, index in trials]
        train_many(self.recipe, [self.subject.data] * len(trials), seeds, watchers)
        return [np.concatenate([one.shares.ravel(), one.end.ravel()]) for one in watchers]

    def accepted(self, results: Mapping[Trial, Any], **remedy: str) -> dict[Trial, Floats]:
        each = 2 * len(MEAN_ORDERS) if self.rule == "mean" else self.checkpoints
        return require_scores(results, "instances", (each + 2) * len(self.records), **remedy)

    def is_enough(self, results: Results, count: int) -> bool:
        return False

    def so_far(self, results: Results, count: int) -> str:
        return ""

    def rehearsal(self) -> None:
        return None

    def describe(self) -> str:
        return f"{len(self.records)} records, {self.rule} rule"

    def code(self) -> list[Any]:
        return self.subject.code()

    # ------------------------------------------------------------------------------------- its trials
    def _seed(self, training: int) -> np.random.SeedSequence:
        return seed_of(self.seed, Stream.INSTANCES, training)

    def _at_checkpoint(self, prepared: Preparation, training: int, checkpoint: int) -> Floats:
        """Estimates and limits of the mean rule at all its orders, and losses there: rows of as many as records."""
        model = self._model(prepared, training, checkpoint)
        network, recipe = self.subject.network, self.recipe
        batches = draw_batches(
            recipe, network, model, self.subject.data, self.rows,
            draws=self.draws, tuples=self.tuples, order=self.tuple_order,
            seed=seed_of(self.seed, Stream.BATCHES, training, checkpoint),
        )  # fmt: skip
        each = 1.0 - self.split_error / (self.planned_trials * len(MEAN_ORDERS))
        found = [mean_rule(batches, self.moments, order, each) for order in MEAN_ORDERS]
        rows = [*(one.estimate for one in found), *(one.limit for one in found)]
        return np.concatenate([*rows, *losses_and_right(recipe, network, model, self.looked_at)])

    @property
    def split_error(self) -> float:
        """How often a certified bound may fail for the draws at checkpoints, and as often for the trainings."""
        return (1.0 - self.confidence) / 2.0

    def _model(self, prepared: Preparation, training: int, checkpoint: int) -> Array:
        models = prepared.arrays.get("models", np.empty((0, 0, 0)))
        if training >= models.shape[0] or checkpoint >= models.shape[1]:
            expected = f"one of {models.shape[0]} trainings × {models.shape[1]} checkpoints"
            remedy = "begin anew in another directory"
            raise InvalidInput("checkpoint", f"{checkpoint} of training {training}", expected, remedy)
        model: Array = models[training, checkpoint]
        return model


def own_engine(subject: Subject) -> DpSgdTraining:
    """The subject, if it is a training of the own engine: of others, gradients of single records are not known."""
    if not isinstance(subject, DpSgdTraining):
        expected = "a training of the own engine, which tells each record's gradient"
        raise InvalidInput("subject", subject.describe(), expected, "a watched Opacus training can be accounted: docs")
    return subject


def mean_recipe(recipe: Recipe) -> Recipe:
    """A recipe whose steps, given noisy means for noisy sums, do what the given one says of means: the engine divides
    by the expected size of a batch, which its learning rate makes up for."""
    size = recipe.expected_batch
    rate = 1.0 if recipe.optimizer == "adam" else size  # Adam does not care for the scale of gradients
    return replace(
        recipe,
        learning_rate=recipe.learning_rate * rate,
        final_learning_rate=recipe.final_learning_rate * rate,
        weight_decay=recipe.weight_decay / size,
    )


def chosen_records(data: Dataset, count: int, seed: int) -> tuple[int, ...]:
    """Rows drawn from the data without looking at it; all of them, if there are no more."""
    validate.whole("records", count, least=1, most=len(data), remedy=f"{data.name} has {len(data)} records")
    rng = np.random.default_rng(seed_of(seed, Stream.INSTANCES))
    return tuple(int(row) for row in np.sort(rng.choice(len(data), count, replace=False)))
