"""What attacks have shown: how well they tell members from others, over all records, by class and by subgroup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer import metrics
from epsilometer.accounting import UpperBound
from epsilometer.arrays import Floats
from epsilometer.bounds import LowerBound
from epsilometer.evidence import Coins, Membership, OneRun
from epsilometer.figures import Drawable, Pictures, Roc, RocCurve
from epsilometer.membership.plan import MembershipPlan
from epsilometer.metrics import Interval, TruePositives

RATES = (0.001, 0.01)  # false-positive rates at which true positives are told
SHOWN = 8  # most exposed records
NO_EPSILON = (
    "the model was given, and nobody flipped fair coins for its records: its numbers certify no ε, and cannot say that "
    "a claim is violated"
)


@dataclass(frozen=True)
class Subset:
    """The records of a class or a subgroup, and the area under the attack's curve among them."""

    name: str
    members: int
    others: int
    auc: Interval

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "members": self.members, "others": self.others, "auc": self.auc.to_dict()}


@dataclass(frozen=True, eq=False, repr=False)
class AttackResult:
    """One attack. `bound` is the certified ε, where fair coins decided.

    Each of n attacks has an n-th of the error, so that whatever is said of the strongest holds with the result's
    confidence: all attacks' bounds hold at once, and so do their areas, their accuracies, and their true positives at
    one rate (with the limits on the true false-positive rate).
    """

    name: str
    summary: str
    evidence: OneRun | Membership
    auc: Interval
    balanced_accuracy: Interval
    tpr_at: tuple[TruePositives, ...]
    by_class: tuple[Subset, ...]
    by_subgroup: tuple[Subset, ...]
    bound: LowerBound | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "summary": self.summary,
            "auc": self.auc.to_dict(),
            "balanced_accuracy": self.balanced_accuracy.to_dict(),
            "tpr_at": [one.to_dict() for one in self.tpr_at],
            "by_class": [one.to_dict() for one in self.by_class],
            "by_subgroup": [one.to_dict() for one in self.by_subgroup],
            "lower_bound": None if self.bound is None else self.bound.to_dict(),
        }

    def __repr__(self) -> str:
        return f"AttackResult({self.name}: AUC {self.auc}, {self.tpr_at[-1]})"


@dataclass(frozen=True)
class Exposed:
    """A member that the first attack is surest of."""

    row: int
    label: str
    score: float

    def to_dict(self) -> dict[str, Any]:
        return {"row": self.row, "class": self.label, "score": self.score}


@dataclass(frozen=True, eq=False, repr=False)
class MembershipResult(Drawable):
    """Attacks on the targets of a plan. Accuracies are means over targets: of members, and of records not in them.

    `exposed` are by the attack of `strongest`, the one with the largest true-positive rate at 1 % false positives. It
    is chosen by looking; its limits pay for that (see `AttackResult`).
    """

    plan: MembershipPlan
    attacks: tuple[AttackResult, ...]
    train_accuracy: float | None  # none where nothing is right or wrong
    test_accuracy: float | None
    theory: UpperBound | None
    exposed: tuple[Exposed, ...]
    subgroups: tuple[str, ...]
    confidence: float
    seconds: float = 0.0

    @property
    def strongest(self) -> AttackResult:
        return max(self.attacks, key=lambda one: (one.tpr_at[-1].tpr.value, one.auc.value))

    @property
    def bound(self) -> LowerBound | None:
        """The largest of the certified bounds, which is paid for: they hold at once."""
        bounds = [one.bound for one in self.attacks if one.bound is not None]
        return max(bounds, key=lambda one: one.epsilon, default=None)

    def attack(self, name: str) -> AttackResult:
        return next(one for one in self.attacks if one.name == name)

    def figure(self) -> Roc:
        curves = []
        for one in self.attacks:
            pairs = one.evidence.as_pairs()
            curves.append(RocCurve.of(one.name, pairs.out_scores, pairs.in_scores))
        others = len(self.attacks[0].evidence.as_pairs().out_scores)
        return Roc("Attacks on membership", tuple(curves), least=min(0.1, max(1e-4, 1.0 / others)))

    def pictures(self) -> Pictures | None:
        """The most exposed records, if they are images."""
        data, shape = self.plan.data, getattr(self.plan.data, "shape", ())
        shape = shape if len(shape) in (2, 3) else ()
        if not shape or not self.exposed:
            return None
        shown = [(f"{one.label} ({one.row})", data.x[one.row]) for one in self.exposed]
        return Pictures.of("Most exposed members", shown, shape, float(data.x.min()), float(data.x.max()))

    def __repr__(self) -> str:
        return f"MembershipResult({self.plan.words()}; strongest: {self.strongest!r})"


def subsets(
    scores: Floats, member: Coins, groups: NDArray[np.int64], names: Sequence[str], confidence: float
) -> tuple[Subset, ...]:
    """The area in each group that has members and others; the intervals hold for all groups at once."""
    kept = [i for i in range(len(names)) if member[groups == i].any() and not member[groups == i].all()]
    each = 1.0 - (1.0 - confidence) / max(1, len(kept))
    found = []
    for i in kept:
        rows = groups == i
        outs, ins = scores[rows & ~member], scores[rows & member]
        found.append(Subset(names[i], len(ins), len(outs), metrics.area(outs, ins, each)))
    return tuple(found)
