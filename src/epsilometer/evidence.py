"""What trials have shown: scores, and what is true of them.

One convention, stated here and nowhere else: **a higher score means "member"**. A test with threshold t
says "member" iff score > t. World 1 ("in") has the canary, world 0 ("out") has not.

Each kind of evidence also says how it comes about: of which worlds there are trials and how many if nobody says, what
a trial is to be given (`side`: its world, or coins), and how results become evidence (`collect`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epsilometer import metrics, validate
from epsilometer.arrays import Floats
from epsilometer.errors import EvidenceMismatch, InvalidInput
from epsilometer.figures import Drawable, ScoreHistograms
from epsilometer.metrics import Interval, TruePositives
from epsilometer.neighbours import RECORD, AnyNeighbours, Relation, SpeaksOfNeighbours
from epsilometer.seeds import Stream, seed_of

OUT, IN = int(Stream.OUT), int(Stream.IN)
Trial = tuple[int, int]  # (world, index); a training with canaries has them by coins, and counts as world 1
Coins = NDArray[np.bool_]


@dataclass(frozen=True)
class Counts(SpeaksOfNeighbours):
    """Outcomes of a test whose threshold was fixed before any of these trials was seen.

    >>> Counts(tp=970, fp=20, fn=30, tn=980).fpr
    0.02
    """

    tp: int
    fp: int
    fn: int
    tn: int
    relation: Relation = Relation.ADD_REMOVE
    group_size: int = 1
    unit: str = RECORD
    usual_method: ClassVar[str] = "clopper-pearson"
    has_scores: ClassVar[bool] = False
    independent: ClassVar[bool] = True
    directions: ClassVar[tuple[str, ...]] = ("higher",)

    def __post_init__(self) -> None:
        for name in ("tp", "fp", "fn", "tn"):
            count = validate.whole(
                name, getattr(self, name), least=0, most=10**12, remedy="counts are numbers of trials"
            )
            object.__setattr__(self, name, count)
        if self.in_trials == 0:
            raise InvalidInput("tp + fn", 0, "at least one trial of the in-world")
        if self.out_trials == 0:
            raise InvalidInput("fp + tn", 0, "at least one trial of the out-world")
        _check_game(self)

    @property
    def in_trials(self) -> int:
        return self.tp + self.fn

    @property
    def out_trials(self) -> int:
        return self.fp + self.tn

    @property
    def sizes(self) -> dict[str, int]:
        return {"out": self.out_trials, "in": self.in_trials}

    @property
    def fpr(self) -> float:
        return self.fp / self.out_trials

    @property
    def fnr(self) -> float:
        return self.fn / self.in_trials

    @property
    def trial_count(self) -> int:
        """The fewest trainings of a world."""
        return min(self.in_trials, self.out_trials)

    def describe(self) -> str:
        return f"trainings counted: {self}"

    def __str__(self) -> str:
        return f"TP {self.tp}, FP {self.fp}, FN {self.fn}, TN {self.tn}"

    def to_dict(self) -> dict[str, int]:
        return {"tp": self.tp, "fp": self.fp, "fn": self.fn, "tn": self.tn}


@dataclass(frozen=True, eq=False, init=False)
class PairedRuns(Drawable, SpeaksOfNeighbours):
    """One score from each of many independent trainings, some with the canary and some without.

    True of them: trials are independent, those of one world identically distributed, and the worlds differ
    in `group_size` units (records, unless another word is said) under `relation`.

    >>> PairedRuns(out_scores=[0.1, -0.3], in_scores=[1.2, 0.8, 0.9])
    PairedRuns(2 out, 3 in, add-remove)
    """

    worlds: ClassVar[tuple[int, ...]] = (OUT, IN)
    usual_trials: ClassVar[int] = 500  # of each world
    least_trials: ClassVar[int] = 2
    trials_are: ClassVar[str] = "counted for each world"
    scores_a_trial: ClassVar[int | None] = 1
    independent: ClassVar[bool] = True  # whether each score is of a training of its own
    first_look: ClassVar[int] = 10  # after how many trials a method that may stop is asked first
    usual_method: ClassVar[str] = "exact-rank"
    has_scores: ClassVar[bool] = True
    columns: ClassVar[tuple[str, str]] = ("index", "world")  # of a file, before the score
    directions: ClassVar[tuple[str, ...]] = ("higher", "lower", "either")  # in which scores may be read
    out_scores: Floats
    in_scores: Floats
    relation: Relation
    group_size: int
    unit: str

    @staticmethod
    def side(seed: int, trial: Trial, scores: int) -> int:
        """The world of a trial."""
        return trial[0]

    @classmethod
    def collect(
        cls, results: Mapping[Trial, Floats], count: int, seed: int, neighbours: AnyNeighbours, group_size: int
    ) -> Self:
        """What the first `count` trials of each world have shown."""
        out_scores, in_scores = (np.concatenate([results[world, i] for i in range(count)]) for world in (OUT, IN))
        return cls(out_scores, in_scores, neighbours, group_size)

    @classmethod
    def always_right(cls, trials: int, scores: int, neighbours: AnyNeighbours, group_size: int) -> Self:
        """What an attack that is never wrong shows in so many trials."""
        ranks = np.arange(trials, dtype=np.float64)
        return cls(ranks - trials, ranks, neighbours, group_size)

    def as_pairs(self) -> PairedRuns:
        return self

    def __init__(
        self,
        out_scores: ArrayLike,
        in_scores: ArrayLike,
        relation: AnyNeighbours = Relation.ADD_REMOVE,
        group_size: int = 1,
        unit: str = RECORD,
    ) -> None:
        object.__setattr__(self, "out_scores", as_scores("out_scores", out_scores))
        object.__setattr__(self, "in_scores", as_scores("in_scores", in_scores))
        for name, value in (("relation", relation), ("unit", unit), ("group_size", group_size)):
            object.__setattr__(self, name, value)
        _check_game(self)

    def counts(self, threshold: float) -> Counts:
        """Outcomes of the test score > threshold."""
        tp = int(np.count_nonzero(self.in_scores > threshold))
        fp = int(np.count_nonzero(self.out_scores > threshold))
        return Counts(
            tp, fp, len(self.in_scores) - tp, len(self.out_scores) - fp, self.relation, self.group_size, self.unit
        )

    @property
    def sizes(self) -> dict[str, int]:
        return {"out": len(self.out_scores), "in": len(self.in_scores)}

    def table(self) -> tuple[str, list[tuple[int, float]]]:
        """The name of the column that says which world, and (world, score) of each trial."""
        sides = ((0, self.out_scores), (1, self.in_scores))
        return self.columns[1], [(world, float(score)) for world, scores in sides for score in scores]

    @property
    def trial_count(self) -> int:
        """The fewest trainings of a world."""
        return min(self.sizes.values())

    def describe(self) -> str:
        return f"{len(self.out_scores)} without and {len(self.in_scores)} with the canary"

    def auc(self, confidence: float = 0.95) -> Interval:
        """The area under the ROC curve: how often a member's score is the higher of two (see `attacks.area`)."""
        return metrics.area(self.out_scores, self.in_scores, confidence)

    def balanced_accuracy(self, threshold: float | None = None, confidence: float = 0.95) -> Interval:
        """How often score > threshold is right, if both worlds are equally likely (see `attacks.balanced_accuracy`)."""
        return metrics.balanced_accuracy(self.out_scores, self.in_scores, threshold, confidence)

    def tpr_at(self, fpr: float, confidence: float = 0.95) -> TruePositives:
        """The true-positive rate at a false-positive rate, with exact limits that hold for both at once.

        >>> print(PairedRuns(range(1000), range(900, 1900)).tpr_at(0.01))
        TPR 0.910 (0.888 to 0.929, 95 %), true FPR at most 0.0183 (seen: 0.01), score > 989
        """
        return metrics.tpr_at(self.out_scores, self.in_scores, fpr, confidence)

    def figure(self, threshold: float | None = None) -> ScoreHistograms:
        title = f"Scores with and without the {self.unit}"
        return ScoreHistograms.of(self.out_scores, self.in_scores, threshold, title)

    def flipped(self) -> PairedRuns:
        """The same trials read the other way: a lower score means "member"."""
        return replace(self, out_scores=-self.out_scores, in_scores=-self.in_scores)

    def __repr__(self) -> str:
        game = self.neighbours.in_groups(self.group_size)
        return f"PairedRuns({len(self.out_scores)} out, {len(self.in_scores)} in, {game})"


@dataclass(frozen=True, eq=False, init=False)
class CoinFlips(Drawable, SpeaksOfNeighbours):
    """Scores of things that were included in a training by a fair coin each."""

    things: ClassVar[str] = "scores"
    included: ClassVar[str] = "included"
    columns: ClassVar[tuple[str, str]] = ("canary", "member")  # of a file: its number, and whether it was in
    worlds: ClassVar[tuple[int, ...]] = (IN,)
    usual_trials: ClassVar[int] = 1
    least_trials: ClassVar[int] = 1
    trials_are: ClassVar[str] = "trainings with all canaries"
    scores_a_trial: ClassVar[int | None] = None  # as many as there are canaries
    independent: ClassVar[bool] = False
    first_look: ClassVar[int] = 10
    usual_method: ClassVar[str] = "one-run-point"
    has_scores: ClassVar[bool] = True
    directions: ClassVar[tuple[str, ...]] = ("higher", "lower")  # one run cannot pay for trying both
    scores: Floats
    member: Coins
    relation: Relation
    group_size: int
    unit: str
    in_order: bool  # the order has nothing to do with the coins, so that it may decide between equal scores

    @staticmethod
    def side(seed: int, trial: Trial, scores: int) -> Coins:
        """Who is in a training: the coins."""
        return toss_coins(seed, trial[1], scores)

    @classmethod
    def collect(
        cls, results: Mapping[Trial, Floats], count: int, seed: int, neighbours: AnyNeighbours, group_size: int
    ) -> Self:
        """What the first `count` trainings have shown together; each has coins of its own (see `pool_runs`)."""
        seen = [results[IN, index] for index in range(count)]
        coins = [toss_coins(seed, index, len(scores)) for index, scores in enumerate(seen)]
        return cls(np.concatenate(seen), np.concatenate(coins), neighbours, group_size, in_order=True)

    @classmethod
    def always_right(cls, trials: int, scores: int, neighbours: AnyNeighbours, group_size: int) -> Self:
        """What an attack that is never wrong shows in so many trainings."""
        member = np.arange(scores * trials) % 2
        return cls(member.astype(np.float64), member, neighbours, group_size)

    def as_pairs(self) -> PairedRuns:
        """As if they were independent: good enough to see how strong an attack was, and for nothing else."""
        return PairedRuns(self.scores[~self.member], self.scores[self.member], self.neighbours)

    def __init__(
        self,
        scores: ArrayLike,
        member: ArrayLike,
        relation: AnyNeighbours = Relation.ADD_REMOVE,
        group_size: int = 1,
        in_order: bool = False,
        unit: str = RECORD,
    ) -> None:
        object.__setattr__(self, "scores", as_scores("scores", scores))
        object.__setattr__(self, "member", as_coins("member", member, len(self.scores)))
        for name, value in (("relation", relation), ("unit", unit), ("group_size", group_size)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "in_order", in_order)
        _check_game(self)

    @property
    def sizes(self) -> dict[str, int]:
        return {"out": int((~self.member).sum()), "in": int(self.member.sum())}

    @property
    def trial_count(self) -> int:
        return len(self.scores)

    def flipped(self) -> Self:
        """The same scores read the other way: a lower score means "member"."""
        return replace(self, scores=-self.scores)

    def table(self) -> tuple[str, list[tuple[int, float]]]:
        """The name of the column that says who was in, and (member, score) of each."""
        return self.columns[1], list(zip(self.member.astype(int).tolist(), self.scores.tolist(), strict=True))

    def figure(self, threshold: float | None = None) -> ScoreHistograms:
        title = f"Scores of {self.things}, {self.included} or not"
        return ScoreHistograms.of(self.scores[~self.member], self.scores[self.member], threshold, title, self.things)

    def describe(self) -> str:
        return f"{len(self.scores)} {self.things}, {int(self.member.sum())} of them {self.included} by their coins"

    def __repr__(self) -> str:
        included = f"{int(self.member.sum())} {self.included}"
        return f"{type(self).__name__}({len(self.scores)} {self.things}, {included}, {self.neighbours})"


class OneRun(CoinFlips):
    """Many canaries in one training, each included by its own fair coin.

    True of them: the coins are independent and fair; the scores are *not* independent, so only bounds made
    for one run (Steinke et al. 2023 and later) are valid here. `in_order` says that canaries stand in an order that
    has nothing to do with their coins; in a file that somebody may have sorted by membership it has.

    >>> OneRun(scores=[0.3, 1.5, -0.2], member=[0, 1, 0])
    OneRun(3 canaries, 1 included, add-remove)
    """

    things, included = "canaries", "included"


@dataclass(frozen=True, eq=False, repr=False, init=False)
class PerStep(CoinFlips):
    """What single steps of a training have shown: in each, crafted gradients were there or not, by fair coins.

    True of them: the coins are independent and fair. They speak of one step, in which the gradient is sampled for sure:
    what a training of many subsampled steps leaks is for an accountant to say. Scores stand in the order of steps, as
    many in each; `steps` says how many there are, and `middle` what a score is half way between there and not there.
    Scores of one step may depend on each other: that they are independent and alike is a family's assumption.

    >>> PerStep(scores=[0.3, 1.5, -0.2], member=[0, 1, 0])
    PerStep(3 scores of single steps, 1 with a gradient, add-remove)
    """

    things, included = "scores of single steps", "with a gradient"
    usual_trials = 2
    first_look = 1
    usual_method = "step-bets"
    columns = ("place", "gradient")  # other names: no bound for runs may take the file for its own
    steps: int | None
    middle: float | None

    def __init__(
        self,
        scores: ArrayLike,
        member: ArrayLike,
        relation: AnyNeighbours = Relation.ADD_REMOVE,
        group_size: int = 1,
        in_order: bool = False,
        steps: int | None = None,
        middle: float | None = None,
        unit: str = RECORD,
    ) -> None:
        super().__init__(scores, member, relation, group_size, in_order, unit)
        if steps is not None and len(self.scores) % validate.whole("steps", steps, least=1):
            raise InvalidInput("steps", steps, f"a number that divides that of scores, {len(self.scores)}")
        if middle is not None:
            validate.real("middle", middle)
        object.__setattr__(self, "steps", steps)
        object.__setattr__(self, "middle", middle)

    @classmethod
    def always_right(cls, trials: int, scores: int, neighbours: AnyNeighbours, group_size: int) -> Self:
        """On either side of any middle."""
        member = np.arange(scores * trials) % 2
        return cls(np.where(member, 1e9, -1e9), member, neighbours, group_size)

    def by_step(self) -> Iterator[tuple[Floats, Coins]]:
        """Scores and coins of one step after another."""
        if self.steps is None:
            raise InvalidInput("steps", None, "how many steps the scores are of, as many scores in each")
        yield from zip(self.scores.reshape(self.steps, -1), self.member.reshape(self.steps, -1), strict=True)


@dataclass(frozen=True, eq=False)
class Membership(Drawable):
    """Natural records scored against given models: who was a member is known, but nobody flipped a coin.

    True of them: nothing that certifies an ε. Good for accuracies, ROC curves and comparisons of attacks.

    >>> Membership(scores=[0.3, 1.5, -0.2], member=[0, 1, 0])
    Membership(3 records, 1 member)
    """

    worlds: ClassVar[tuple[int, ...]] = (IN,)
    scores: Floats
    member: NDArray[np.bool_]

    def __init__(self, scores: ArrayLike, member: ArrayLike) -> None:
        object.__setattr__(self, "scores", as_scores("scores", scores))
        object.__setattr__(self, "member", as_coins("member", member, len(self.scores)))

    def as_pairs(self) -> PairedRuns:
        """As if they were independent trials: for accuracies and curves, and for nothing else."""
        return PairedRuns(self.scores[~self.member], self.scores[self.member])

    def figure(self) -> ScoreHistograms:
        outs, ins = self.scores[~self.member], self.scores[self.member]
        return ScoreHistograms.of(outs, ins, title="Scores of members and others", things="records")

    def __repr__(self) -> str:
        members = int(self.member.sum())
        return f"Membership({len(self.scores)} records, {members} member{'s' * (members != 1)})"


Evidence = PairedRuns | CoinFlips  # what games end in
KINDS: dict[str, type[Evidence]] = {kind.__name__: kind for kind in (PairedRuns, OneRun, PerStep)}


def require_evidence(method: str, evidence: object, kinds: type | tuple[type, ...], needed: str, why: str = "") -> None:
    """Refuse evidence of another kind than a method is valid for."""
    if not isinstance(evidence, kinds):
        raise EvidenceMismatch(f"{method} needs {needed}, got {type(evidence).__name__}{why and ': '}{why}")


def toss_coins(seed: int, index: int, canaries: int) -> Coins:
    """Which canaries are in the training `index` of a plan with that seed."""
    tossed: Coins = np.random.default_rng(seed_of(seed, Stream.COINS, index)).random(canaries) < 0.5
    return tossed


def _check_game(evidence: PairedRuns | CoinFlips | Counts) -> None:
    evidence._settle_neighbours()
    object.__setattr__(evidence, "group_size", validate.group_size(evidence.group_size))


def as_scores(argument: str, values: ArrayLike) -> Floats:
    """A read-only copy of the scores, in double precision; infinite scores are fine, NaN is not."""
    try:
        if np.iscomplexobj(values):  # of which numpy would take the real parts
            raise TypeError
        scores = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(argument, values, "a sequence of numbers") from None
    except OverflowError:
        raise InvalidInput(
            argument, values, "numbers up to 1.8e308", "scores count by their order: use ranks"
        ) from None
    if scores.ndim != 1:
        raise InvalidInput(argument, f"array of shape {scores.shape}", "a one-dimensional sequence")
    if scores.size == 0:
        raise InvalidInput(argument, [], "at least one score", "run at least one trial of this world")
    bad = np.flatnonzero(np.isnan(scores))
    if bad.size:
        where = f"NaN at position {bad[0]}"
        raise InvalidInput(argument, where, "numbers", "find out which trial failed; do not drop it")
    scores.flags.writeable = False
    return scores


def as_coins(argument: str, values: ArrayLike, length: int) -> Coins:
    """A read-only copy of who was in."""
    raw = np.asarray(values)
    if raw.shape != (length,):
        raise InvalidInput(argument, f"array of shape {raw.shape}", f"one value for each of {length} scores")
    if not np.isin(raw, (0, 1)).all():
        raise InvalidInput(argument, values, "values 0 (out) and 1 (in)")
    member = raw.astype(np.bool_)
    member.flags.writeable = False
    return member
