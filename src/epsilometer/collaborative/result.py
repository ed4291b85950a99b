"""What collaborations have shown: how well a participant's property can be told from its updates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from epsilometer.accounting import UpperBound
from epsilometer.bounds import LowerBound
from epsilometer.collaborative.plan import PropertyPlan
from epsilometer.evidence import PairedRuns
from epsilometer.figures import Drawable, Lines, ScoreHistograms, Series
from epsilometer.metrics import Interval

INDEPENDENT = (
    "each collaboration has a network, batches, noise and rehearsals of its own and gives one score, so scores are "
    "independent; rounds of one collaboration are not, and count once. Whose records are whose is the same in all of "
    "them: other data may give another AUC"
)
NO_EPSILON = (
    "no ε is stated: nothing here promises to hide all data of a participant, and noise that hides a record need not "
    "hide what many records have in common"
)


@dataclass(frozen=True)
class ByRounds:
    """How well the mean score of the first rounds tells the worlds apart."""

    rounds: int
    auc: Interval

    def to_dict(self) -> dict[str, Any]:
        return {"rounds": self.rounds, "auc": self.auc.to_dict()}


@dataclass(frozen=True, eq=False, repr=False)
class PropertyResult(Drawable):
    """Scores of independent collaborations without and with the property, and of the control.

    `bound` is a certified ε where a participant's data are replaced, and `theory` what the noise promises for that;
    both are none where the noise hides no participant. Each interval has the result's confidence by itself.
    """

    plan: PropertyPlan
    evidence: PairedRuns
    auc: Interval
    balanced_accuracy: Interval
    by_rounds: tuple[ByRounds, ...]
    control: PairedRuns | None
    control_auc: Interval | None
    accuracy: float  # of the models, in the mean
    bound: LowerBound | None
    theory: UpperBound | None
    confidence: float
    seconds: float = 0.0

    def figure(self) -> Lines:
        """By rounds: the measured line is judged at its last place only."""
        places = tuple(str(one.rounds) for one in self.by_rounds)
        lines = [
            Series("AUC", tuple((str(one.rounds), one.auc.value) for one in self.by_rounds)),
            Series("lower limit", tuple((str(one.rounds), one.auc.low) for one in self.by_rounds), at_least=True),
            Series("guessing", tuple((place, 0.5) for place in places), reference=True),
        ]
        return Lines("Seen in the first rounds", places, tuple(lines), "rounds seen", "AUC", most=1.0)

    def histograms(self) -> ScoreHistograms:
        seen, what = self.evidence, "the property"
        title = "Scores with and without the property"
        return ScoreHistograms.of(seen.out_scores, seen.in_scores, None, title, "collaborations", what)

    def __repr__(self) -> str:
        return f"PropertyResult({self.plan.marked.name}: AUC {self.auc}, {self.plan.trials} collaborations each)"
