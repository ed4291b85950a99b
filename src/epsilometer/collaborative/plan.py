"""Which collaborations are played: everything that decides their scores, frozen before the first."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.claims import LARGEST_MU, GaussianClaim
from epsilometer.collaborative.properties import Marked
from epsilometer.collaborative.property_inference import Collaboration, Pool, play_rounds
from epsilometer.errors import InvalidInput
from epsilometer.evidence import IN, OUT, Trial
from epsilometer.neighbours import Neighbours, Relation
from epsilometer.runs import Preparation, Results
from epsilometer.runs.identity import OwnTrials
from epsilometer.runs.scores import require_scores
from epsilometer.seeds import Stream, seed_of
from epsilometer.training import accuracy

VERSION = 1  # raised whenever the same plan would give other scores
UNIT = "participant"
NEIGHBOURS = Neighbours(UNIT, Relation.REPLACE)  # all data of one are replaced
CONTROL = int(Stream.CONTROL)  # a world of its own
MOST_ROUNDS, MOST_TRIALS = 100_000, 100_000


@dataclass(frozen=True, eq=False, repr=False)
class PropertyPlan(OwnTrials):
    """Collaborations, one a trial: each has a network, batches, noise and rehearsals of its own, and gives one score.

    Half of the records are the victim's and the rest the adversary's, the same in all trials. In world 0 the victim's
    data are those of its records that lack the property, in world 1 those that have it: worlds differ in the whole of
    one participant's data. In the `control` its batches are of all its records, and trials with even and odd numbers
    are called without and with: they have one law, so that their AUC is ½ but for chance.
    """

    kind: ClassVar[str] = "property"
    marked: Marked
    collaboration: Collaboration
    trials: int = 100
    control: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        validate.whole("trials", self.trials, least=4, most=MOST_TRIALS, remedy="collaborations of each world")
        validate.whole("rounds", self.collaboration.rounds, least=8, most=MOST_ROUNDS)
        validate.seed("seed", self.seed)
        widths, data = self.collaboration.network.widths, self.marked.data
        if (widths[0], widths[-1]) != (data.x.shape[1], data.classes):
            expected = f"one of {data.x.shape[1]} features and {data.classes} classes"
            raise InvalidInput("network", widths, expected)
        _ = self._parties  # before anything is played: whether batches can be drawn at all

    @functools.cached_property
    def _parties(self) -> tuple[Pool, Pool]:
        """The victim's records and the adversary's, the same in every trial."""
        data, has = self.marked.data, self.marked.has
        order = np.random.default_rng(seed_of(self.seed, Stream.COLLABORATING)).permutation(len(data))
        theirs, ours = np.array_split(order, 2)
        return Pool("victim", data.taken(theirs), has[theirs]), Pool("own", data.taken(ours), has[ours])

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_parties"}

    @property
    def looks(self) -> tuple[int, ...]:
        """Numbers of rounds after which there is a score: the last one is judged, the others are for the picture."""
        steps = (factor * 10**power for power in range(6) for factor in (1, 2, 5))
        return (*(step for step in steps if step < self.collaboration.rounds), self.collaboration.rounds)

    @property
    def promise(self) -> GaussianClaim | None:
        """What the noise promises to whoever replaces all of a participant's data: the clipped mean moves by 2C at
        most, in every round, and has noise of σ·C. None where the noise hides no participant."""
        updates = self.collaboration.updates
        if updates.level != UNIT or not updates.noise_multiplier:
            return None
        mu = 2.0 * math.sqrt(self.collaboration.rounds) / updates.noise_multiplier
        return GaussianClaim(mu if mu <= LARGEST_MU else math.inf, NEIGHBOURS.relation, UNIT)

    # ------------------------------------------------------------------------------------- its trials (see Trials)
    @property
    def worlds(self) -> tuple[int, ...]:
        return (OUT, IN, CONTROL) if self.control else (OUT, IN)

    @property
    def planned_trials(self) -> int:
        return self.trials

    @property
    def first_look(self) -> int:
        return self.trials

    def to_dict(self) -> dict[str, Any]:
        data, collaboration = self.marked.data, self.collaboration
        return {
            "property_version": VERSION,
            "claim": {"kind": "none", **NEIGHBOURS.to_dict()},
            "delta": 0.0,
            "data": {"name": data.name, "records": len(data), "sha256": data.fingerprint()},
            "property": {
                "name": self.marked.name,
                "having": int(self.marked.has.sum()),
                "sha256": hashlib.sha256(np.packbits(self.marked.has).tobytes()).hexdigest(),
            },
            "adversary": {"name": "property"},
            "network": {"widths": list(collaboration.network.widths), "activation": collaboration.network.activation},
            "updates": asdict(collaboration.updates),
            **{name: getattr(collaboration, name) for name in ("rounds", "batch", "learning_rate", "rehearsals")},
            "control": self.control,
            "trials": self.trials,
            "seed": self.seed,
        }

    def play(self, prepared: Preparation, trials: Sequence[Trial]) -> list[Floats]:
        return [self._played(*trial) for trial in trials]

    def _played(self, world: int, index: int) -> Floats:
        """Mean scores of the first rounds, for each of `looks`, and how good the model is on all records."""
        rng = np.random.default_rng(seed_of(self.seed, Stream.COLLABORATING, world, index))
        network = self.collaboration.network
        kind = None if world == CONTROL else world == IN
        rounds = self.collaboration.rounds
        scores, model = play_rounds(
            self.collaboration, *self._parties, network.initial(rng, 1.0), [kind] * rounds, rng
        )  # fmt: skip
        means = np.cumsum(scores) / np.arange(1, rounds + 1)
        data = self.marked.data
        right = accuracy(network.logits(model, data.x.astype(np.float64)), data.y)
        return np.append(means[np.array(self.looks) - 1], right)

    def accepted(self, results: Mapping[Trial, Any], **remedy: str) -> dict[Trial, Floats]:
        return require_scores(results, "property", len(self.looks) + 1, **remedy)

    def describe(self) -> str:
        return f"property ({self.marked.name})"

    def scores(self, results: Results, world: int) -> Floats:
        """Trials × looks."""
        return np.array([results[world, index][:-1] for index in range(self.trials)])

    def words(self) -> str:
        """What is attacked, in a line."""
        updates, game = self.collaboration.updates, self.collaboration
        protected = {"none": "updates as they are", "record": "noise that hides records"}
        how = protected.get(updates.level, "noise that hides a participant")
        noise = f" (σ = {updates.noise_multiplier:g}, C = {updates.clip_norm:g})" if updates.level != "none" else ""
        shape = "-".join(map(str, game.network.widths))
        return (
            f"{self.marked.data.name}, network {shape}, 2 participants, {game.rounds} rounds of {game.batch} records, "
            f"{how}{noise}"
        )

    def __repr__(self) -> str:
        return f"PropertyPlan({self.marked.name}: {self.words()}; {self.trials} trials of each world, seed {self.seed})"
