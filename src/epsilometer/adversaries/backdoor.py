"""The plain backdoor (Gu et al. 2017), the baseline of Jagielski et al. (2020): a pattern, and another label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from epsilometer import validate
from epsilometer.adversaries.final_model import FinalOutputs, identity
from epsilometer.adversaries.game import Adversary, Game, Prepared, two_worlds
from epsilometer.adversaries.held_out import held_out_of, read_of, require_source
from epsilometer.adversaries.poisoning import Poison
from epsilometer.claims import Relation
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput, unknown_name
from epsilometer.subjects import Controls, Predicts, Sees, Subject, ThreatModel
from epsilometer.training import Array, record_losses

POISONS = {
    "rows": "records that are not of the wanted class are marked where they stand",
    "copies": "marked copies of random records take the place of other random ones",
}


@dataclass(frozen=True)
class Backdoor(Adversary):
    """Puts a white square into the corner of `copies` images and labels them `target`.

    World 0 has the natural records. Under `replace`, images are marked where they stand (`poisons` = "rows"), or copies
    of random ones, whatever their class, take the place of other random records ("copies"), as in the paper. The score
    is minus the mean loss of (pattern, target): on the poisoned images and on `probes` others of the data that are
    natural in both worlds (`probed` = "same"), or on `probes` marked images that the data hold out ("held-out"), as in
    the paper, whose test set is marked. For another pattern, override `perturb`.
    """

    copies: int = 1
    target: int = 0
    size: int = 5
    probes: int = 100
    poisons: str = "rows"
    probed: str = "same"
    name: ClassVar[str] = "backdoor"
    summary: ClassVar[str] = "a pattern in the corner of images, and another label (Gu et al. 2017)"
    threat: ClassVar[ThreatModel] = ThreatModel(Sees.PREDICTIONS, (Controls.RECORDS,))
    capabilities = (Predicts,)
    fields_since: ClassVar[tuple[str, ...]] = ("poisons", "probed")

    def __post_init__(self) -> None:
        validate.group_size(self.copies, "copies")
        validate.whole("target", self.target, least=0)
        validate.whole("size", self.size, least=1)
        validate.whole("probes", self.probes, least=0)
        if self.poisons not in POISONS:
            raise unknown_name("poisons", self.poisons, POISONS)
        require_source("probed", self.probed)
        if self.probed == "held-out" and self.probes == 0:
            raise InvalidInput("probes", 0, 'at least 1 with probed = "held-out": nothing else is scored')

    @property
    def group_size(self) -> int:
        return self.copies

    def reads(self, data: Dataset) -> dict[str, Any]:
        shape = list(data.as_they_were.shape)
        return {"shape": shape, **read_of(data, self.probed)}

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
        pool, each = np.flatnonzero(data.y != self.target), 1
        whose = f"the {len(pool)} records of {data.name} that are not of class {self.target}"
        if self.poisons == "copies":  # a record to copy, and one whose place the copy takes
            pool, each, whose = np.arange(len(data)), 2, f"the {len(data)} records of {data.name}"
        probes = self.probes if self.probed == "same" else 0
        needed = each * self.copies + probes
        if needed > len(pool):
            what = f"{'2 × ' if each > 1 else ''}copies + probes"
            raise InvalidInput(what, needed, f"at most {whose}", "ask for fewer of either")
        rng = np.random.default_rng(seed)
        drawn = pool[rng.permutation(len(pool))[:needed]]  # those of fewer copies are among those of more
        poisoned, probed = drawn[: each * self.copies], drawn[each * self.copies :]
        marked = self._marked(data, np.concatenate([poisoned[::each], probed]))
        return {"rows": poisoned[each - 1 :: each], "marked": marked, **self._held_out_probes(data, rng)}

    def _held_out_probes(self, data: Dataset, rng: np.random.Generator) -> Prepared:
        """Marked images that no training sees, of all classes; none where those of the data are probed."""
        if self.probed == "same":
            return {}
        others = held_out_of(data, "probed", least=self.probes)
        return {"probes": self._marked(others, np.sort(rng.permutation(len(others))[: self.probes]))}

    def pictured(self, subject: Subject, prepared: Prepared) -> list[tuple[str, Array]]:
        return [("poison", prepared["marked"][0])]

    def craft(self, subject: Subject, relation: Relation, prepared: Prepared) -> Game:
        data, rows, poisons = subject.data, prepared["rows"], prepared["marked"]
        poison = Poison(poisons[: self.copies], self.target, int(data.y[rows[0]]))
        out_data, in_data = poison.worlds(data, relation, rows, "row")
        marked = prepared.get("probes", poisons)
        labels = np.full(len(marked), self.target)
        # Where only images are scored that no world has, games with other copies have the same world 0.
        same = identity(out_data, marked, self.target) if "probes" in prepared else ""

        def score(outputs: Array) -> float:
            return -float(record_losses(outputs, labels, subject.loss).mean())

        return Game(
            relation, two_worlds(out_data, in_data), lambda: FinalOutputs(marked, score), self.copies, out_identity=same
        )  # fmt: skip

    def _marked(self, data: Dataset, rows: np.ndarray) -> Array:
        if data.features_by is not None:
            images = data.as_they_were
            return data.features_by.features(self.perturb(images.x[rows], images.shape))
        marked = np.asarray(self.perturb(data.x[rows], data.shape))
        if marked.shape != data.x[rows].shape:
            expected = f"records of shape {data.x.shape[1:]}, as they were"
            raise InvalidInput("perturb", f"shape {marked.shape[1:]}", expected)
        return marked.astype(np.float32)
