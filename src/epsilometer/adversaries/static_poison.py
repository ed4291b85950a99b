"""Static poisoning (Nasr et al. 2021, adversary 2): a record crafted against shadow models."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np

from epsilometer import validate
from epsilometer.adversaries.crafted_once import remembered
from epsilometer.adversaries.game import Adversary, Game, Prepared
from epsilometer.adversaries.held_out import held_out_of, read_of, require_source
from epsilometer.adversaries.target import Target, final_loss, natural_target
from epsilometer.arrays import Floats
from epsilometer.claims import Relation
from epsilometer.data import Dataset
from epsilometer.subjects import Controls, Differentiable, Model, Predicts, Sees, Subject, ThreatModel
from epsilometer.training import Array, record_losses

CHECKPOINTS, STRIDE = (10, 40), 0.05  # iterations of the ascent; a stride is a share of the data's diagonal


@dataclass(frozen=True)
class StaticPoison(Adversary):
    """The record that betrays itself most to `shadows` models trained by the same recipe, noise included.

    Candidates are a random record of the data; the same, and a blank one, with the label that is least likely; and the
    record moved to where the models' loss of its label is larger, within the data's range. Each is tried by training
    the models again with it: what counts is by how much that lowers its loss, in standard deviations of the loss; with
    held-out records less one standard error, since among a few models who looks best was often lucky. The score is
    minus the poison's loss at the final model. Under `replace` world 0 has the poison with the likeliest other label.
    Where features of a frozen network are trained on, the poison is a vector of features.

    `shadow_data` is "same": shadow models are trained on the data themselves, and the random record is one of theirs;
    or "held-out", as in the paper, whose adversary does not know the data: on as many records that the data hold out,
    and the random record is another of these, which comes to the data. Where fewer are held out (at least a tenth as
    many) they are drawn with replacement.
    """

    shadows: int = 8
    shadow_data: str = "same"
    name: ClassVar[str] = "static-poison"
    summary: ClassVar[str] = "a record crafted against shadow models (Nasr et al. 2021, adversary 2)"
    threat: ClassVar[ThreatModel] = ThreatModel(Sees.PREDICTIONS, (Controls.RECORDS,))
    capabilities = (Predicts,)
    fields_since: ClassVar[tuple[str, ...]] = ("shadow_data",)

    def __post_init__(self) -> None:
        validate.whole("shadows", self.shadows, least=2, most=10_000)
        require_source("shadow_data", self.shadow_data)

    def reads(self, data: Any) -> dict[str, Any]:
        return read_by_shadows(data, self.shadow_data)

    def prepare(self, subject: Subject, relation: Relation, seed: np.random.SeedSequence) -> Prepared:
        return static_poison(subject, relation, self.shadows, self.shadow_data, seed).prepared()

    def pictured(self, subject: Subject, prepared: Prepared) -> list[tuple[str, Array]]:
        return [("poison", prepared["x"])]

    def craft(self, subject: Subject, relation: Relation, prepared: Prepared) -> Game:
        target = Target.of(prepared)
        return Game(relation, target.inserted(subject.data, relation), lambda: final_loss(subject.loss, target))


def read_by_shadows(data: Any, shadow_data: str) -> dict[str, Any]:
    """What decides the poison beside settings, as `Adversary.reads` has it: once it was chosen without caution."""
    found = read_of(data, shadow_data)
    return {**found, "poison": "with caution"} if found else {}


@remembered(4)
def static_poison(
    subject: Subject, relation: Relation, shadows: int, shadow_data: str, seed: np.random.SeedSequence
) -> Target:
    """The poison that all adversaries with these settings begin with."""
    known, start, others = _shadow_data(subject.data, relation, shadow_data, seed)
    seeds = seed.spawn(shadows)
    models = subject.rehearse(others, seeds)

    def likelihoods(x: Array) -> Array:
        """The sum of the shadow models' outputs."""
        outputs: Array = np.sum([model.logits(x[None])[0] for model in models], axis=0)
        return outputs

    def losses(target: Target, models: Sequence[Model]) -> Floats:
        outputs = [model.logits(target.x[None]) for model in models]
        return record_losses(np.concatenate(outputs), np.full(len(outputs), target.label), subject.loss)

    def effect(target: Target) -> float:
        """Of its presence, in standard deviations: the same noise with and without it tells it from few models."""
        without = losses(target, models)
        present = losses(target, subject.rehearse(others.plus(target.x, target.label), seeds))
        lowered = without - present
        if shadow_data == "same":  # stored plans stay what they were
            return float(np.mean(lowered)) / max(float(np.std(without, ddof=1)), 1e-12)
        error = float(np.std(lowered, ddof=1)) / math.sqrt(shadows)
        spread = math.sqrt(np.var(without, ddof=1) + np.var(present, ddof=1))
        return (float(np.mean(lowered)) - error) / max(spread, 1e-12)

    blank = np.zeros_like(start.x)
    candidates = [
        start,
        *(replace(start, x=x, label=int(np.argmin(likelihoods(x)))) for x in (start.x, blank)),
        *(replace(start, x=x) for x in _ascended(models, known, start)),
    ]
    best = max(candidates, key=effect)
    likely = next(int(c) for c in np.argsort(-likelihoods(best.x), kind="stable") if c != best.label)
    return replace(best, other=likely)


def _shadow_data(
    data: Dataset, relation: Relation, source: str, seed: np.random.SeedSequence
) -> tuple[Dataset, Target, Dataset]:
    """The records that the adversary knows, a random one of them, and those that shadow models are trained on.

    These are as many as a training has without the record: the recipe is made for so many.
    """
    if source == "same":
        start = natural_target(data, None, seed)
        return data, start, data.without(start.row)
    known = held_out_of(data, "shadow_data", least=len(data) // 10 + 2)
    rng = np.random.default_rng(seed)
    drawn = rng.permutation(len(known))[: len(data) + 1]
    first, rows = drawn[0], drawn[1:]
    if len(rows) < len(data):
        rows = rng.choice(rows, len(data))
    place = int(rng.integers(len(data))) if relation is Relation.REPLACE else -1  # −1: it comes to all of the data
    start = replace(natural_target(known, int(first), seed), row=place)
    return known, start, known.taken(np.sort(rows))


def _ascended(models: Sequence[Model], data: Dataset, start: Target) -> Iterator[Array]:
    """The start moved, within the data's range, to where the shadow models' loss of its label is larger.

    None for models that can only be asked for predictions.
    """
    seen_through = [cast(Differentiable, model) for model in models if hasattr(model, "input_gradients")]
    if not seen_through:
        return
    low, high = data.x.min(axis=0), data.x.max(axis=0)
    stride, label = STRIDE * float(np.linalg.norm(high - low)), np.array([start.label])
    x: Array = start.x[None].astype(np.float64)
    for iteration in range(1, CHECKPOINTS[-1] + 1):
        slope = np.sum([model.input_gradients(x, label) for model in seen_through], axis=0)
        x = np.clip(x + stride * slope / max(float(np.linalg.norm(slope)), 1e-12), low, high)
        if iteration in CHECKPOINTS:
            yield x[0].astype(np.float32)
