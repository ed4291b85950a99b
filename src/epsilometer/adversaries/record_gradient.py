"""A natural record against somebody who knows all others and sees every step: what its own gradient leaves there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from epsilometer import validate
from epsilometer.accounting.renyi import log_mixture
from epsilometer.adversaries.game import Adversary, Game, Prepared
from epsilometer.adversaries.target import Target, natural_target
from epsilometer.claims import Relation
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.subjects import KnowsNetwork, NoisySteps, Observer, Sees, Subject, ThreatModel, WhiteModel
from epsilometer.training import Array


@dataclass(frozen=True)
class RecordGradient(Adversary):
    """A row of the data is there or not; the score is a log-likelihood ratio of all noisy sums along its gradient.

    At every step the record's clipped gradient at the model is known, and so are those of all other records, but not
    which of them are in the batch: their part along the record's gradient is taken for Gaussian, with its exact mean
    and variance. With full batches and a linear path nothing better exists.
    """

    record: int
    name: ClassVar[str] = "record-gradient"
    summary: ClassVar[str] = "a natural record, by its own gradient in every noisy sum"
    threat: ClassVar[ThreatModel] = ThreatModel(Sees.EVERY_MODEL, ())
    capabilities = (NoisySteps, KnowsNetwork)

    def __post_init__(self) -> None:
        validate.whole("record", self.record, least=0)

    def prepare(self, subject: Subject, relation: Relation, seed: np.random.SeedSequence) -> Prepared:
        if relation is Relation.REPLACE:
            raise InvalidInput("relation", "replace", "add-remove or zero-out: a record is there or not")
        return natural_target(subject.data, self.record, seed).prepared()

    def craft(self, subject: Subject, relation: Relation, prepared: Prepared) -> Game:
        steps, network = subject.require(NoisySteps, self.name), subject.require(KnowsNetwork, self.name)
        target, data = Target.of(prepared), subject.data
        others = data.without(target.row)
        return Game(
            relation, target.inserted(data, relation), lambda: AlongItsGradient(steps, network, others, target)
        )  # fmt: skip


class AlongItsGradient(Observer):
    """Adds up the log-likelihood ratios of all steps, and notes whether the final model gets the record right."""

    stepwise = True
    right: bool = False

    def __init__(self, steps: NoisySteps, network: KnowsNetwork, others: Dataset, target: Target) -> None:
        self._steps, self._network, self._others = steps, network, others
        self._record = target.x[None], np.array([target.label])
        self._total = 0.0

    def before(self, step: int, parameters: Array) -> None:
        gradient = self._network.clipped_sum(parameters, *self._record)
        norm = float(np.linalg.norm(gradient.astype(np.float64)))
        self._share = norm / self._steps.clip_norm
        self._direction = gradient / (norm or 1.0)
        along = self._network.clipped_products(parameters, self._others.x, self._others.y, self._direction)
        rate = self._steps.sample_rate
        self._mean, self._variance = rate * along.sum(), rate * (1.0 - rate) * np.square(along).sum()

    def observe(self, step: int, noisy_sum: Array, parameters: Array) -> bool:
        steps = self._steps
        if self._share > 0:
            seen = float(noisy_sum.astype(np.float64) @ self._direction.astype(np.float64)) - self._mean
            spread = float(np.sqrt(steps.noise_multiplier**2 + self._variance / steps.clip_norm**2))
            at = np.array([seen / steps.clip_norm])
            present, absent = (log_mixture(at, shift, steps.sample_rate, spread) for shift in (self._share, 0.0))
            self._total += float(present[0] - absent[0])
        return False

    def finish(self, model: WhiteModel) -> None:
        x, label = self._record
        self.right = bool(np.argmax(model.logits(x)[0]) == label[0])

    def score(self) -> float:
        return self._total
