"""The numbers of a watched training's pictures."""

from __future__ import annotations

import math

import numpy as np

from epsilometer.figures import Figure, Level, Path, Scale, ScaleMark
from epsilometer.figures.scale import ASSUMED, AT_MOST, CLAIMED
from epsilometer.watching.monitor import Monitor
from epsilometer.watching.watched import Watched

SHOWN = 60  # steps


def figures_of(monitor: Monitor) -> dict[str, Figure]:
    """Noise of all trainings on one scale; ε of each, and the evidence against it as its steps came."""
    trainings = list(monitor)
    drawn: dict[str, Figure] = {}
    limits = [_noise(i, one) for i, one in enumerate(trainings, start=1)]
    if limits:
        marks = [ScaleMark("stated", 1.0, CLAIMED, "what every training states of its own noise"), *limits]
        drawn["noise"] = Scale("Noise, as a multiple of what is stated", "noise / stated noise", tuple(marks))
    for i, one in enumerate(trainings, start=1):
        if (scale := _epsilon(i, one)) is not None:
            drawn[f"epsilon {i}"] = scale
        if one.wealth:
            drawn[f"training {i}"] = _path(i, one)
    return drawn


def _noise(number: int, one: Watched) -> ScaleMark:
    """What its noise is at most: by canaries, or by the records that were tried in runs of a loop by hand."""
    effective = one.facts.effective
    if effective is None:
        return ScaleMark(f"training {number}", one.noise_factor(), AT_MOST, f"{100 * one.confidence:.10g} %")
    found = min(effective.kinds.values(), default=math.inf) / effective.stated
    return ScaleMark(f"training {number}", found, AT_MOST, "by the records that were tried")


def _epsilon(number: int, one: Watched) -> Scale | None:
    """What its steps show, beside what is promised; none where nothing was measured."""
    found = one.epsilon()
    if found.lower is None:
        return None
    marks = [ScaleMark("if its steps are Gaussian", found.lower.epsilon, ASSUMED, f"{100 * one.confidence:.10g} %")]
    if found.upper is not None:
        marks.append(ScaleMark("promised", found.upper.epsilon, AT_MOST, f"{found.upper.accountant}, as accounted"))
    return Scale(f"ε of training {number} at δ = {found.lower.delta:g}", "ε", tuple(marks))


def _path(number: int, one: Watched) -> Path:
    """The e-value's logarithm to base 10, at a few dozen steps and where it refuted the claim."""
    count = len(one.wealth)
    places = set(np.linspace(0, count - 1, min(count, SHOWN)).round().astype(int).tolist())
    if one.refuted_at:
        places.add(min(one.refuted_at, count) - 1)
    steps = sorted(places)
    return Path(
        f"Evidence against the stated noise of training {number}",
        counted="steps seen",
        quantity="log₁₀ of the e-value",
        label="e-value",
        counts=tuple(step + 1 for step in steps),
        values=tuple(one.wealth[step] / math.log(10) for step in steps),
        levels=(Level("refuted from here on", -math.log10(1.0 - one.confidence)),),
        note="Canaries in every step are bet on. A training that keeps its statement crosses the line with probability "
        "1 − confidence at most, however long it is watched.",
    )
