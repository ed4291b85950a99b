"""Property inference (Melis et al. 2019): does a participant's batch have a property that nobody trains on?

The adversary is a participant. In every round it knows the model and its own update, so that what is left of the sum is
the others'. With records of its own it rehearses: updates of batches with and without the property, at the same model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.collaborative.classifier import UpdateClassifier, common_direction, update_features
from epsilometer.collaborative.updates import Updates
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.metrics import Interval, area
from epsilometer.training import Array, Network

_Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Collaboration:
    """Two participants train one network; each sends an update a round, and the model moves by their mean."""

    network: Network
    updates: Updates = field(default_factory=Updates)
    rounds: int = 300
    batch: int = 32
    learning_rate: float = 0.5
    rehearsals: int = 4  # of each kind, in every round

    def __post_init__(self) -> None:
        for name in ("rounds", "batch", "rehearsals"):
            validate.whole(name, getattr(self, name), least=1)
        validate.whole("rounds", self.rounds, least=8, remedy="batches with and without the property are needed")
        validate.real("learning_rate", self.learning_rate, above=0)


@dataclass(frozen=True, eq=False)
class PropertyInference:
    """Scores of the victim's updates from batches without and with the property, and the model that came of it."""

    without: Floats
    having: Floats
    parameters: Array
    confidence: float = 0.95

    @property
    def auc(self) -> Interval:
        """How often a batch with the property has the higher score of two; rounds are taken for independent."""
        return self.auc_of(1)

    def auc_of(self, rounds: int) -> Interval:
        """The AUC for a property that stays for some rounds: of their mean scores, no round being in two means."""
        validate.whole("rounds", rounds, least=1, most=min(len(self.without), len(self.having)))
        return area(_means(self.without, rounds), _means(self.having, rounds), self.confidence)

    def __repr__(self) -> str:
        return f"PropertyInference({len(self.without)} and {len(self.having)} rounds, AUC {self.auc})"


def infer_property(
    collaboration: Collaboration,
    victim: Dataset,
    victim_has: _Flags,
    own: Dataset,
    own_has: _Flags,
    rng: np.random.Generator,
    *,
    control: bool = False,
) -> PropertyInference:
    """Play all rounds: in each a coin decides whether all records of the victim's batch have the property, or none.

    The adversary learns from its own records (`own`, and which of them have the property) only. Labels are drawn first
    and alike in both cases, so that a property that goes with the label is not seen by the label alone. In a `control`
    the victim's batches are of all its records whatever the coin says: an AUC other than ½ is then by chance alone.
    """
    theirs, ours = Pool("victim", victim, victim_has), Pool("own", own, own_has)
    parameters = collaboration.network.initial(rng, 1.0)
    coins = rng.permutation(np.arange(collaboration.rounds) % 2 == 1)  # as many of both, in an order nobody knows
    kinds = [None if control else bool(coin) for coin in coins]
    scores, parameters = play_rounds(collaboration, theirs, ours, parameters, kinds, rng)
    return PropertyInference(scores[~coins], scores[coins], parameters)


def play_rounds(
    collaboration: Collaboration,
    theirs: Pool,
    ours: Pool,
    parameters: Array,
    kinds: Sequence[bool | None],
    rng: np.random.Generator,
) -> tuple[Floats, Array]:
    """A score for every round, and the model in the end. `kinds` are those of the victim's batches (see `Pool.batch`).

    Scores are given after the last round, by what all rehearsals have taught.
    """
    network, updates = collaboration.network, collaboration.updates
    direction: Floats | None = None
    rehearsed, seen = [], []

    def draw() -> NDArray[np.int64]:
        return rng.choice(len(ours.shares), size=collaboration.batch, p=ours.shares)

    for theirs_is in kinds:
        x, y = theirs.batch(draw(), theirs_is, rng)
        shared = updates.noisy(updates.clean(network, parameters, x, y), collaboration.batch, rng)
        trials = [
            updates.clean(network, parameters, *ours.batch(draw(), kind, rng))
            for kind in (False, True)
            for _ in range(collaboration.rehearsals)
        ]
        if not np.isfinite([shared, *trials]).all():
            expected, remedy = "one with which updates stay finite", "lower it, the noise multiplier or the clip norm"
            raise InvalidInput("learning_rate", collaboration.learning_rate, expected, remedy)
        direction = common_direction(network, trials, direction)
        made = np.array(
            [update_features(network, updates.noisy(one, collaboration.batch, rng), direction) for one in trials]
        )
        middle = made.mean(axis=0)
        size = float(np.linalg.norm(middle)) or 1.0  # gradients shrink as a model learns: rounds get one scale
        rehearsed.append((made - middle) / size)
        seen.append((update_features(network, shared, direction) - middle) / size)
        rows = rng.integers(len(ours.data), size=collaboration.batch)
        mine = updates.clean(network, parameters, ours.data.x[rows], ours.data.y[rows])
        mine = updates.noisy(mine, collaboration.batch, rng)
        parameters = parameters - collaboration.learning_rate * (shared + mine) / 2.0
    halves = np.array(rehearsed).reshape(len(kinds), 2, collaboration.rehearsals, -1)
    learned = UpdateClassifier.fitted(*(np.concatenate(halves[:, kind]) for kind in (0, 1)))
    return learned.scores(np.array(seen)), parameters


def _means(scores: Floats, rounds: int) -> Floats:
    whole = len(scores) // rounds
    found: Floats = scores[: whole * rounds].reshape(whole, rounds).mean(axis=1)
    return found


class Pool:
    """A party's records, by label and property."""

    def __init__(self, name: str, data: Dataset, has: _Flags) -> None:
        flags = np.asarray(has)
        if flags.shape != (len(data),) or flags.dtype != np.bool_:
            expected = f"true or false for each of {len(data)} records"
            raise InvalidInput(f"{name}_has", f"{flags.dtype} of shape {flags.shape}", expected)
        self.data = data
        self.shares = np.bincount(data.y, minlength=data.classes) / len(data)
        kinds = {False: ~flags, True: flags, None: np.ones_like(flags)}
        self._rows = {
            (label, kind): np.flatnonzero((data.y == label) & those)
            for label in range(data.classes)
            for kind, those in kinds.items()
        }
        for (label, kind), rows in self._rows.items():
            if not len(rows):
                words = "with" if kind else "without"
                expected = f"records {words} the property in every class (class {label} has none)"
                raise InvalidInput(f"{name}_has", f"{int(flags.sum())} of {len(flags)}", expected)

    def batch(
        self, labels: NDArray[np.int64], kind: bool | None, rng: np.random.Generator
    ) -> tuple[Array, NDArray[np.int64]]:
        """A record for each label, drawn anew for each, all with the property or all without; none: as they come."""
        chosen = [self._rows[int(label), kind] for label in labels]
        rows = [rows[rng.integers(len(rows))] for rows in chosen]
        return self.data.x[rows], self.data.y[rows]
