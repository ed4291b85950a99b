"""How well records were rebuilt, by noise, beside the limits for unbiased estimates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from epsilometer.figures import Drawable, Lines, Pictures, Series
from epsilometer.figures.figure import number
from epsilometer.metrics import Interval
from epsilometer.reconstruction.plan import ReconstructionPlan
from epsilometer.reconstruction.quality import Reconstruction

SHOWN = 3  # records that are shown as pictures
LEAST = 1e-9  # where the picture's scale begins; what is exact is drawn there
_MOST = 1e3
_LINES = (
    ("cut_mse", "attack, cut to the range", False),
    ("mse", "attack as it is (median)", False),
    ("guess_mse", "the mean record", True),
    ("fisher_limit", "limit by Fisher information", True),
    ("renyi_limit", "limit by Rényi-DP", True),
)
LIMITS_ARE = (
    "limits are for unbiased estimates of a record: one that is cut to the range that records have, or a good guess, "
    "may be below them. They are no ε, and no attack's failure is one"
)


@dataclass(frozen=True)
class AtNoise:
    """Reconstructions at one noise multiplier; errors are means over features of squares.

    `mse` is the median over records of estimates as they are, `mean_mse` their mean (what limits speak of; a few
    estimates may decide it), `cut_mse` the mean of those cut to the range of values,
    `guess_mse` that of answering with the mean record. `found`: the estimate is nearest to the right one of all
    records. `renyi_limit` holds for the worst record, `fisher_limit` in the mean over some of these.
    """

    noise_multiplier: float
    noise_std: float
    mse: float
    mean_mse: float
    cut_mse: float
    guess_mse: float
    found: Interval
    fisher_limit: float
    renyi_limit: float
    renyi_epsilon: float  # of order 2, where the record that is rebuilt is replaced
    epsilon: float  # at the result's δ, where any record is replaced: what the noise of this release promises

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__} | {"found": self.found.to_dict()}


@dataclass(frozen=True, eq=False, repr=False)
class ReconstructionResult(Drawable):
    """Every reconstruction of a plan: `rebuilt` has a list for each noise multiplier, in the order of the records."""

    plan: ReconstructionPlan
    at: tuple[AtNoise, ...]
    rebuilt: tuple[tuple[Reconstruction, ...], ...]
    delta: float
    confidence: float
    seconds: float = 0.0

    def figure(self) -> Lines:
        places = tuple(f"{one.noise_multiplier:g}" for one in self.at)
        lines = (
            Series(label, tuple((f"{one.noise_multiplier:g}", getattr(one, key)) for one in self.at), reference)
            for key, label, reference in _LINES
        )
        title = "Error of rebuilt records"
        return Lines(title, places, tuple(lines), "noise multiplier", "error per feature", LEAST, _MOST)

    def pictures(self) -> dict[int, Pictures]:
        """The first records, if they are images, each beside what was made of it, by row."""
        found, plan = {}, self.plan
        low, high = plan.value_range
        for place, row in enumerate(plan.rows[:SHOWN].tolist()):
            first = self.rebuilt[0][place]
            if not first.shape:
                return {}
            shown = [("original", first.original)]
            for noise, several in zip(plan.noises, self.rebuilt, strict=True):
                shown.append((f"σ = {noise:g}", several[place].within(low, high).estimate))
            found[row] = Pictures.of(f"Record {row}, by noise", shown, first.shape, low, high)
        return found

    def __repr__(self) -> str:
        best = self.at[0]
        return f"ReconstructionResult({self.plan.words()}; σ = {best.noise_multiplier:g}: error {best.cut_mse:.3g})"


def error_words(error: float) -> str:
    """An error for people: what is exact but for rounding has no digits that mean anything."""
    return number(error) if not 0 < error < LEAST else f"under {LEAST:g}"
