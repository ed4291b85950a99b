"""ClipBKD (Jagielski et al. 2020): a poison that survives clipping, seen through the final model only."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from epsilometer import validate
from epsilometer.adversaries.crafted_once import remembered
from epsilometer.adversaries.feature_poison import STARTS, image_along
from epsilometer.adversaries.final_model import FinalOutputs, identity
from epsilometer.adversaries.game import Adversary, Game, Prepared, two_worlds
from epsilometer.adversaries.poisoning import CONTRASTS, Poison, rows_to_poison
from epsilometer.claims import Relation
from epsilometer.data import Dataset, FeatureDataset
from epsilometer.errors import InvalidInput, unknown_name
from epsilometer.subjects import Controls, Model, Predicts, Sees, Subject, ThreatModel
from epsilometer.training import Array


@dataclass(frozen=True)
class ClipBkd(Adversary):
    """Poisons with x = m·v, where v is the direction in which the data vary least; m is `norm`, or their median norm.

    The label is the least likely class at x of a model trained without noise. Under `add-remove` and `zero-out`
    world 1 has `copies` poisoned records more; under `replace` they take the place of as many records, and world 0
    has (`contrast`) either the same points with their likely label, as in the authors' code, or the natural
    records. Where features of a frozen network are trained on, v cannot be had: the poison is an image whose
    features come near it (Appendix C).

    The score is the margin of the label over the likely one at x, less that at 0. The paper takes the label's
    output alone, which tells the worlds apart less well.
    """

    copies: int = 1
    contrast: str = "label"
    norm: float | None = None
    name: ClassVar[str] = "clipbkd"
    summary: ClassVar[str] = "poisoned records along the least singular vector (Jagielski et al. 2020)"
    threat: ClassVar[ThreatModel] = ThreatModel(Sees.PREDICTIONS, (Controls.RECORDS,))
    capabilities = (Predicts,)

    def __post_init__(self) -> None:
        validate.group_size(self.copies, "copies")
        if self.contrast not in CONTRASTS:
            raise unknown_name("contrast", self.contrast, CONTRASTS)
        if self.norm is not None:
            validate.real("norm", self.norm, above=0)

    @property
    def group_size(self) -> int:
        return self.copies

    def reads(self, data: Dataset) -> dict[str, Any]:
        return {} if data.features_by is None else {"starts": STARTS}

    def prepare(self, subject: Subject, relation: Relation, seed: np.random.SeedSequence) -> Prepared:
        rows = rows_to_poison(subject.data, self.copies, seed)
        point = self._point(subject.data, seed)
        logits = _clean_model(subject, seed).logits(point[None])[0]
        order = np.argsort(logits, kind="stable")  # the two differ even where all outputs are equal
        return {"rows": rows, "point": point, "labels": order[[0, -1]]}

    def pictured(self, subject: Subject, prepared: Prepared) -> list[tuple[str, Array]]:
        return [("poison", prepared["point"])]

    def craft(self, subject: Subject, relation: Relation, prepared: Prepared) -> Game:
        point, (label, likely) = prepared["point"], prepared["labels"].tolist()
        poison = Poison(np.repeat(point[None], self.copies, axis=0), label, likely)
        out_data, in_data = poison.worlds(subject.data, relation, prepared["rows"], self.contrast)
        points = np.stack([point, np.zeros_like(point)])

        def score(outputs: Array) -> float:
            at_poison, at_zero = outputs[:, poison.label] - outputs[:, poison.likely]
            return float(at_poison) - float(at_zero)

        return Game(
            relation,
            two_worlds(out_data, in_data),
            lambda: FinalOutputs(points, score),
            self.copies,
            out_identity=identity(out_data, points, poison.label, poison.likely),
        )

    def _point(self, data: Dataset, seed: np.random.SeedSequence) -> Array:
        if data.features_by is not None:
            if self.norm is not None:
                raise InvalidInput("norm", self.norm, "none with frozen features: an image has the norm that it has")
            return _features_along(cast(FeatureDataset, data), seed)
        norm = float(np.median(np.linalg.norm(data.x, axis=1))) if self.norm is None else self.norm
        point: Array = (norm * _flattest(data)).astype(np.float32)
        return point


# One game after another is crafted for the same data, with another number of copies.
@functools.lru_cache(maxsize=2)
def _flattest(data: Dataset) -> Array:
    return least_singular_direction(data.x)


@remembered(2)
def _features_along(data: FeatureDataset, seed: np.random.SeedSequence) -> Array:
    features: Array = data.extractor.features(image_along(data, seed)[None])[0]
    return features


@remembered(2)
def _clean_model(subject: Subject, seed: np.random.SeedSequence) -> Model:
    return subject.rehearse(subject.data, [seed], noiseless=True)[0]


def least_singular_direction(x: Array) -> Array:
    """The right singular vector of the smallest singular value; its largest entry is positive."""
    _, _, directions = np.linalg.svd(x, full_matrices=x.shape[0] < x.shape[1])
    least: Array = directions[-1]
    return least if least[np.argmax(np.abs(least))] > 0 else -least
