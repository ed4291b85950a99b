"""Whether adaptive poisons add to what intermediate models show, by clip norm (Nasr et al. 2021, adversary 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from epsilometer.figures import Figure, Lines, Series, panels
from epsilometer.reproductions.ladder import climb
from epsilometer.reproductions.nasr_ladder import AS_IN_THE_PAPER, SETTINGS, plan_for, records_of
from epsilometer.reproductions.reproduction import Cell, Reproduction, Row, Session, grid
from epsilometer.subjects import DpSgdTraining, KnowsRecipe

EPSILON = "2"
CLIPS = ("1", "5", "20")
_PAPER = {"intermediate": 0.25, "adaptive-poison": 0.37}


def _measure(cell: Cell, session: Session) -> Row:
    """The rate is divided by the clip norm: noise moves the model as far with one as with another."""
    plan = plan_for(
        records_of("purchase", session), EPSILON, SETTINGS["purchase"].learning_rate, session.trials, session.seed
    )  # fmt: skip
    recipe, clip_norm = plan.subject.require(KnowsRecipe, cell["adversary"]).recipe, float(cell["C"])
    rate = recipe.learning_rate / clip_norm
    recipe = replace(recipe, clip_norm=clip_norm, learning_rate=rate)
    plan, name = replace(plan, subject=DpSgdTraining(recipe, plan.subject.data)), cell["adversary"]
    measured, details = climb(plan, name, session, AS_IN_THE_PAPER[name])
    return Row(cell, _PAPER[name], measured, details)


def _draw(rows: Sequence[Row]) -> Figure:
    series = [
        Series(name, tuple((row.cell["C"], row.details["strength"]) for row in rows if row.cell["adversary"] == name))
        for name in _PAPER
    ]
    chart = Lines(f"Purchase stand-in, ε = {EPSILON}", CLIPS, tuple(one for one in series if one.points))
    return panels("Adaptive poisons", [chart], "clip norm", "strength μ, an estimate")


NASR_ADAPTIVE = Reproduction(
    name="nasr-adaptive",
    summary="whether adaptive poisons add anything, by clip norm (Nasr et al. 2021)",
    about="measured is certified (exact rank, 95 %); strength is an attack's μ, an estimate with a 95 % interval, to "
    "compare the two by. While the query's gradient is longer than the clip norm C no other record lowers its loss "
    "more, and both are the same trainings; a larger C leaves room. ε is PLD's, the learning rate is divided by C. The "
    "paper's numbers are for Purchase-100, its own network and clip norm.",
    trials=200,
    cells=grid(C=CLIPS, adversary=tuple(_PAPER)),
    measure=_measure,
    draw=_draw,
    shown=("strength_low", "strength", "strength_high", "family"),
    at_least=("measured", "family"),
)
