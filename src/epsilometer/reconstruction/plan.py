"""Which records are rebuilt at which noise: everything that decides the estimates, frozen before the first."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.claims import Relation
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.evidence import Trial
from epsilometer.reconstruction.attacks import RecordAttack, value_range
from epsilometer.reconstruction.limits import fisher_limit
from epsilometer.reconstruction.quality import Reconstruction
from epsilometer.runs import Preparation, Results
from epsilometer.runs.identity import OwnTrials
from epsilometer.runs.scores import require_scores
from epsilometer.seeds import Stream, seed_of

VERSION = 1  # raised whenever the same plan would give other estimates
NOISES = (0.0, 0.001, 0.01, 0.1, 1.0)
MOST_NOISES = 20
LIMITED = 10  # records whose Fisher information is computed: two releases a feature
MOST_NUMBERS = 10**8  # of eight bytes, in all estimates


@dataclass(frozen=True, eq=False, repr=False)
class ReconstructionPlan(OwnTrials):
    """One reconstruction a trial: of one of `records` random records, at one of the noise multipliers.

    A world is a noise multiplier, by its place in `noises`; the same records are rebuilt in all of them.
    """

    kind: ClassVar[str] = "reconstruction"
    data: Dataset
    attack: RecordAttack
    noises: tuple[float, ...] = NOISES
    records: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        given = tuple(validate.real("noises", one, above=0, below=1e9, closed="[") for one in self.noises)
        if not 1 <= len(given) <= MOST_NOISES or len(set(given)) < len(given):
            raise InvalidInput("noises", list(self.noises), f"1 to {MOST_NOISES} noise multipliers, each once")
        object.__setattr__(self, "noises", given)
        remedy = f"{self.data.name} has {len(self.data)} records"
        validate.whole("records", self.records, least=1, most=len(self.data), remedy=remedy)
        validate.seed("seed", self.seed)
        self.attack.require(self.data)
        if not np.ptp(self.data.x):
            raise InvalidInput("data", self.data.name, "records that differ from each other")
        numbers = len(given) * self.records * self.data.x.shape[1]
        if numbers > MOST_NUMBERS:
            expected = f"fewer: {numbers:,} numbers would be kept, and {MOST_NUMBERS:,} can be"
            raise InvalidInput("records", self.records, expected)

    @functools.cached_property
    def rows(self) -> NDArray[np.int64]:
        """The records that are rebuilt."""
        rng = np.random.default_rng(seed_of(self.seed, Stream.RECONSTRUCTING))
        return rng.permutation(len(self.data))[: self.records].astype(np.int64)

    def noise_std(self, noise_multiplier: float) -> float:
        return noise_multiplier * self.attack.noise_unit(self.data)

    # ------------------------------------------------------------------------------------- its trials (see Trials)
    @property
    def worlds(self) -> tuple[int, ...]:
        return tuple(range(len(self.noises)))

    @property
    def planned_trials(self) -> int:
        return self.records

    @property
    def first_look(self) -> int:
        return self.records

    def to_dict(self) -> dict[str, Any]:
        return {
            "reconstruction_version": VERSION,
            "claim": {"kind": "none", "relation": Relation.REPLACE.value},
            "delta": 0.0,
            "data": {"name": self.data.name, "records": len(self.data), "sha256": self.data.fingerprint()},
            "adversary": {"name": f"reconstruction ({self.attack.name})"},
            "attack": self.attack.to_dict(),
            "noises": list(self.noises),
            "trials": self.records,
            "seed": self.seed,
        }

    def prepare(self) -> Preparation:
        """What the attack shares among trials, and limits of the first records at a noise of deviation 1."""
        rng = np.random.default_rng(seed_of(self.seed, Stream.RECONSTRUCTING, 0))
        shared = self.attack.prepare(self.data, rng)
        limits = [
            fisher_limit(self.attack.released(shared, self.data, row), self.data.x[row], 1.0)
            for row in self.rows[:LIMITED].tolist()
        ]
        return Preparation({**shared, "fisher": np.array(limits)})

    def play(self, prepared: Preparation, trials: Sequence[Trial]) -> list[Floats]:
        return [self._rebuilt(prepared, *trial) for trial in trials]

    def _rebuilt(self, prepared: Preparation, world: int, index: int) -> Floats:
        rng = np.random.default_rng(seed_of(self.seed, Stream.RECONSTRUCTING, world, index))
        return self.attack.rebuild(prepared.arrays, self.data, int(self.rows[index]), self.noises[world], rng)

    def accepted(self, results: Mapping[Trial, Any], **remedy: str) -> dict[Trial, Floats]:
        return require_scores(results, "reconstruction", self.data.x.shape[1], **remedy)

    def describe(self) -> str:
        return f"reconstruction ({self.attack.name})"

    def reconstructions(self, results: Results, world: int) -> list[Reconstruction]:
        """Every record beside what was made of it at one noise."""
        shape = self.data.shape if len(self.data.shape) in (2, 3) else ()
        pairs = ((self.data.x[row], results[world, index]) for index, row in enumerate(self.rows))
        return [Reconstruction(x.astype(np.float64), estimate, shape) for x, estimate in pairs]

    @property
    def value_range(self) -> tuple[float, float]:
        return value_range(self.data)

    def words(self) -> str:
        """What is attacked, in a line."""
        return f"{self.data.name}, {self.attack.describe()}"

    def __repr__(self) -> str:
        noises = ", ".join(f"{one:g}" for one in self.noises)
        return f"ReconstructionPlan({self.words()}; {self.records} records, noise {noises}, seed {self.seed})"
