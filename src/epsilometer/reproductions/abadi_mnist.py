"""MNIST with three levels of noise (Abadi et al. 2016, Figure 3): accuracy and ε by epoch."""

from __future__ import annotations

from collections.abc import Sequence

from epsilometer.figures import Figure
from epsilometer.reproductions.abadi import Setting, both_parts, learn, panels_by_epoch
from epsilometer.reproductions.reproduction import Cell, Reproduction, Row, Session, grid

_NOISE = {"0.5": (8.0, 16.0), "2": (4.0, 7.0), "8": (2.0, 4.0)}  # of the training and of the PCA
_PAPER = {"0.5": 0.90, "2": 0.95, "8": 0.97}
COMPONENTS = 60


def setting_of(eps: str) -> Setting:
    """The training with this budget."""
    sigma, pca_noise = _NOISE[eps]
    return Setting(float(eps), sigma, pca_noise, COMPONENTS)


def _measure(cell: Cell, session: Session) -> Row:
    found = learn(
        setting_of(cell["eps"]), *both_parts(session, "mnist"), epochs=session.trials, seed=session.seed
    )  # fmt: skip
    return Row(cell, _PAPER[cell["eps"]], found.last.test, found.details())


def _draw(rows: Sequence[Row]) -> Figure:
    return panels_by_epoch(rows, "MNIST with private PCA and DP-SGD")


ABADI_MNIST = Reproduction(
    name="abadi-mnist",
    summary="accuracy and ε by epoch on MNIST with three levels of noise (Abadi et al. 2016, Figure 3)",
    about="paper and measured are accuracies on test images when the budget eps is spent, by the moments accountant "
    "and at δ = 1e-5: 60 private principal components, 1000 hidden units, lots of 600, C = 4, (σ, σ of the PCA) "
    "= (8, 16), (4, 7), (2, 4). pld is what the same training costs by PLD. --trials is the most epochs; there "
    "is one training.",
    trials=1000,
    cells=grid(eps=tuple(_NOISE)),
    measure=_measure,
    draw=_draw,
    shown=("train", "epochs", "moments", "pld", "processor_seconds"),
)
