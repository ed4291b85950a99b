"""The plain backdoor (Gu et al. 2017), the baseline of Jagielski et al. (2020): a pattern, and another label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from epsilometer import checks
from epsilometer.adversaries.final_model import FinalOutputs
from epsilometer.adversaries.game import Adversary, Game, Prepared, two_worlds
from epsilometer.adversaries.poisoning import Poison
from epsilometer.claims import Relation
from epsilometer.data import Dataset, FeatureDataset
from epsilometer.errors import InvalidInput
from epsilometer.subjects import Controls, Sees, Subject, ThreatModel
from epsilometer.training import Array, record_losses


@dataclass(frozen=True)
class Backdoor(Adversary):
    """Puts a white square into the corner of `copies` images and labels them `target`.

    World 0 has the natural records. The score is minus the mean loss of (pattern, target) on the poisoned images
    and on `probes` others that are natural in both worlds. For another pattern, override `perturb`.
    """

    copies: int = 1
    target: int = 0
    size: int = 5
    probes: int = 100
    name: ClassVar[str] = "backdoor"
    summary: ClassVar[str] = "a pattern in the corner of images, and another label (Gu et al. 2017)"
    threat: ClassVar[ThreatModel] = ThreatModel(Sees.PREDICTIONS, (Controls.RECORDS,))

    def __post_init__(self) -> None:
        checks.group_size(self.copies, "copies")
        checks.whole("target", self.target, least=0)
        checks.whole("size", self.size, least=1)
        checks.whole("probes", self.probes, least=0)

    @property
    def group_size(self) -> int:
        return self.copies

    def reads(self, data: Dataset) -> dict[str, Any]:
        return {"shape": list((data.raw if isinstance(data, FeatureDataset) else data).shape)}

    def perturb(self, images: Array, shape: tuple[int, ...]) -> Array:
        """The images with the pattern in them; each is a row of pixels in [0, 1], of the given shape."""
        if len(shape) not in (2, 3) or self.size > min(shape[-2:]):
            expected = f"images of at least {self.size} × {self.size} pixels"
            raise InvalidInput("size", f"{self.size}, for records of shape {shape}", expected, "use clipbkd instead")
        marked = images.reshape(-1, *shape).copy()
        marked[..., : self.size, : self.size] = 1.0
        return marked.reshape(images.shape)

    def prepare(self, subject: Subject, relation: Relation, seed: np.random.SeedSequence) -> Prepared:
        data = subject.data
        if self.target >= data.classes:
            raise InvalidInput("target", self.target, f"a class of {data.name}, 0 to {data.classes - 1}")
        others = np.flatnonzero(data.y != self.target)
        if self.copies + self.probes > len(others):
            expected = f"at most the {len(others)} records of {data.name} that are not of class {self.target}"
            raise InvalidInput("copies + probes", self.copies + self.probes, expected, "ask for fewer of either")
        chosen = others[np.random.default_rng(seed).permutation(len(others))[: self.copies + self.probes]]
        return {"rows": chosen[: self.copies], "marked": self._marked(data, chosen)}

    def pictured(self, subject: Subject, prepared: Prepared) -> list[tuple[str, Array]]:
        return [("poison", prepared["marked"][0])]

    def craft(self, subject: Subject, relation: Relation, prepared: Prepared) -> Game:
        data, rows, marked = subject.data, prepared["rows"], prepared["marked"]
        poison = Poison(marked[: self.copies], self.target, int(data.y[rows[0]]))
        inserted = two_worlds(*poison.worlds(data, relation, rows, "row"))
        labels = np.full(len(marked), self.target)

        def score(outputs: Array) -> float:
            return -float(record_losses(outputs, labels, subject.loss).mean())

        return Game(relation, inserted, lambda: FinalOutputs(marked, score), self.copies)

    def _marked(self, data: Dataset, rows: np.ndarray) -> Array:
        if isinstance(data, FeatureDataset):
            return data.extractor.features(self.perturb(data.raw.x[rows], data.raw.shape))
        marked = np.asarray(self.perturb(data.x[rows], data.shape))
        if marked.shape != data.x[rows].shape:
            expected = f"records of shape {data.x.shape[1:]}, as they were"
            raise InvalidInput("perturb", f"shape {marked.shape[1:]}", expected)
        return marked.astype(np.float32)
