"""The pictures of concepts.md, by the product's own figures, from real audits: `python docs/pictures.py` draws them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from epsilometer import DpSgd, PointClaim, run
from epsilometer.accounting import curve
from epsilometer.auditing import Spec, spec_from_dict
from epsilometer.bounds import refutation_power
from epsilometer.bounds.step_bets import right_so_far
from epsilometer.bounds.step_process import log_wealth
from epsilometer.figures import Figure, Lines, Series, Table, TradeOff
from epsilometer.figures.canvas import svg
from epsilometer.figures.palette import CERTIFIED, CLAIM, GRID, IN, INK, MUTED, OUT

HERE = Path(__file__).parent / "pictures"
SIGMA, ALPHA = 1.386, 0.05


@dataclass(frozen=True)
class Drawing(Figure):
    """A picture without numbers."""

    kind: ClassVar[str] = "drawing"
    title: str
    words: str = ""
    inches: float = 2.6

    @property
    def reading(self) -> str:
        return self.words

    @property
    def height(self) -> float:
        return self.inches

    @property
    def marks(self) -> int:
        return 0

    def table(self) -> Table:
        return Table((), ())

    def _box(
        self, ax: Any, at: tuple[float, float], text: str, colour: str = INK, size: tuple[float, float] = (1.7, 0.8)
    ) -> None:
        from matplotlib.patches import FancyBboxPatch

        x, y = at[0] - size[0] / 2, at[1] - size[1] / 2
        ax.add_patch(
            FancyBboxPatch(
                (x, y), *size, boxstyle="round,pad=0.02,rounding_size=0.08", facecolor="none", edgecolor=colour
            )
        )
        ax.text(*at, text, ha="center", va="center", color=INK)

    def _arrow(self, ax: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
        ax.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": MUTED, "linewidth": 1.2})

    def _frame(self, ax: Any, width: float, height: float) -> None:
        ax.set_xlim(0, width)
        ax.set_ylim(0, height)
        ax.set_axis_off()


class Game(Drawing):
    """Two worlds, many trainings, one score each."""

    def draw(self, ax: Any) -> None:
        self._frame(ax, 10, 4.2)
        for y, world, data, colour in ((3.1, "world 0", "data", OUT), (1.1, "world 1", "data + record", IN)):
            self._box(ax, (1.2, y), f"{world}\n{data}", colour, (2.0, 1.0))
            self._box(ax, (4.2, y), "training,\nother seed each time", colour, (2.4, 1.0))
            self._box(ax, (7.0, y), "scores", colour, (1.4, 0.8))
            self._arrow(ax, (2.25, y), (2.95, y))
            self._arrow(ax, (5.45, y), (6.25, y))
        self._box(ax, (9.2, 2.1), "bound,\nverdict", CERTIFIED, (1.4, 1.0))
        self._arrow(ax, (7.75, 3.0), (8.7, 2.65))
        self._arrow(ax, (7.75, 1.2), (8.7, 1.55))
        ax.text(4.2, 2.1, "the adversary sees what it is allowed to see", ha="center", va="center", color=MUTED)


class Relations(Drawing):
    """What neighbours are."""

    def draw(self, ax: Any) -> None:
        self._frame(ax, 10, 3.6)
        rows = (
            (3.0, "add-remove", (OUT,) * 5, (*(OUT,) * 5, IN)),
            (1.8, "replace", (*(OUT,) * 5, CLAIM), (*(OUT,) * 5, IN)),
            (0.6, "zero-out", (*(OUT,) * 5, "none"), (*(OUT,) * 5, IN)),
        )
        for y, name, world_0, world_1 in rows:
            ax.text(0.1, y, name, va="center", color=INK)
            for left, records in ((2.6, world_0), (6.6, world_1)):
                for i, colour in enumerate(records):
                    edge = GRID if colour == "none" else colour
                    ax.add_patch(self._square(left + 0.5 * i, y, colour, edge))
        for x, text in ((4.0, "world 0"), (8.0, "world 1")):
            ax.text(x, 3.5, text, ha="center", va="center", color=MUTED)

    def _square(self, x: float, y: float, colour: str, edge: str) -> Any:
        from matplotlib.patches import Rectangle

        return Rectangle(
            (x, y - 0.2), 0.38, 0.4, facecolor=colour, edgecolor=edge, linestyle="--" if colour == "none" else "-"
        )


def one_training() -> Lines:
    """The e-value of simulated Gaussian steps with 200 canaries, by the noise that is really there."""
    rng, shown, steps = np.random.default_rng(0), [1, 2, 3, 5, 7, 10, 15, 20, 30], 30
    series = []
    for noise in (0.5, 0.8, 1.0):
        coins = rng.random((1, steps, 200)) < 0.5
        scores = coins + SIGMA * noise * rng.standard_normal(coins.shape)
        wealth = log_wealth(right_so_far(scores, coins, np.full((1, steps), 0.5)), 1 / SIGMA)[0]
        label = "all of the stated noise" if noise == 1.0 else f"{noise:g} × the stated noise"
        series.append(Series(label, tuple((str(n), float(np.exp(min(wealth[n - 1], np.log(1e6))))) for n in shown)))
    limit = Series(f"1/α = {1 / ALPHA:g}: refuted", tuple((str(n), 1 / ALPHA) for n in shown), reference=True)
    return Lines(
        "Evidence within one training", tuple(map(str, shown)), (*series, limit), "steps", "e-value", floor=1e-2
    )


def power() -> Lines:
    """How often an audit of the default's curve finds too little noise, if the attack sees all that it lets through."""
    claim, trials = curve(DpSgd(0.1, SIGMA, 100)), (20, 50, 100, 200, 500, 1000)
    series = [
        Series(
            f"{noise:g} × the stated noise",
            tuple((str(n), refutation_power(claim, curve(DpSgd(0.1, noise * SIGMA, 100)), n)) for n in trials),
        )
        for noise in (0.5, 0.7, 0.8, 0.9)
    ]
    enough = Series("0.8: enough to say consistent", tuple((str(n), 0.8) for n in trials), reference=True)
    return Lines("Power", tuple(map(str, trials)), (*series, enough), "trials per world", "probability of violated")


def pictures() -> dict[str, Figure]:
    honest, half = run(Spec().plan()), run(spec_from_dict({"faults": {"noise_scale": 0.5}}).plan())
    point, whole = PointClaim(4.0, 1e-5), curve(DpSgd(0.1, SIGMA, 100))
    return {
        "game": Game("A game with two worlds", "Many trainings with the record and many without; one score for each."),
        "relations": Relations(
            "Neighbouring data sets", "Squares are records; the last one is what worlds differ in.", 2.2
        ),
        "point-and-curve": TradeOff(
            "The same training, claimed as a point and as a curve",
            (point.curve("the point ε = 4, δ = 1e-5"), whole.curve("the whole curve of DP-SGD", "theory")),
        ),
        "scores": honest.figure("scores"),
        "scale": honest.figure("scale"),
        "consistent": honest.figure("trade-off"),
        "violated": half.figure("trade-off"),
        "power": power(),
        "one-training": one_training(),
    }


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    for name, figure in pictures().items():
        (HERE / f"{name}.svg").write_text(svg(figure, name, alone=True))
