"""CIFAR-10 (Abadi et al. 2016, Figure 6), as far as the files at hand go.

The paper trains two layers of 384 units privately, behind two convolutions that were trained on CIFAR-100 before. Here
the layers before are those of a small network trained on CIFAR-100 (`cifar10-features`), or all is trained privately.
"""

from __future__ import annotations

from collections.abc import Sequence

from epsilometer.data import Dataset
from epsilometer.figures import Figure
from epsilometer.reproductions.abadi import Setting, both_parts, learn, panels_by_epoch
from epsilometer.reproductions.reproduction import Cell, Reproduction, Row, Session, grid

PER_CLASS = 1000, 200  # for training and test, of ten classes: what the small extract has
NOISE, CLIP_NORM = 6.0, 3.0
_RATES = {"2": 0.04, "4": 0.08, "8": 0.08}  # of sampling: lots of 2,000, 4,000 and 4,000 of 50,000
_PAPER = {"2": 0.67, "4": 0.70, "8": 0.73}
_NETWORKS = {"features": ("cifar10-features", "mlp"), "cnn": ("cifar10", "colour-cnn")}


def setting_of(cell: Cell, records: int) -> Setting:
    """The paper's noise, clip norm and sample rate."""
    return Setting(
        float(cell["eps"]),
        NOISE,
        hidden=(384, 384),
        lot=round(_RATES[cell["eps"]] * records),
        clip_norm=CLIP_NORM,
        learning_rate=0.05,
        final_learning_rate=0.05,
        model=_NETWORKS[cell["network"]][1],
    )


def _parts(cell: Cell, session: Session) -> tuple[Dataset, Dataset]:
    return both_parts(session, _NETWORKS[cell["network"]][0], *PER_CLASS)


def _measure(cell: Cell, session: Session) -> Row:
    records, test = _parts(cell, session)
    found = learn(setting_of(cell, len(records)), records, test, epochs=session.trials, seed=session.seed)
    return Row(cell, _PAPER[cell["eps"]], found.last.test, {"records": len(records), **found.details()})


def _draw(rows: Sequence[Row]) -> Figure:
    return panels_by_epoch(rows, "CIFAR-10 with DP-SGD")


ABADI_CIFAR10 = Reproduction(
    name="abadi-cifar10",
    summary="accuracy and ε by epoch on CIFAR-10, frozen features or all layers (Abadi et al. 2016, Figure 6)",
    about="paper and measured are accuracies on test images when the budget eps is spent (moments accountant, δ = "
    "1e-5), or after --trials epochs; σ = 6, C = 3 and sample rates are the paper's. It has 50,000 images and "
    "convolutions trained on CIFAR-100; here there are 1,000 images a class for training and 200 for testing. "
    "network=features trains two layers of 384 on the 128 features of a small network trained on CIFAR-100; "
    "network=cnn all layers of the paper's network, which is slow.",
    trials=1500,
    cells=grid(network=tuple(_NETWORKS), eps=tuple(_RATES)),
    measure=_measure,
    draw=_draw,
    shown=("train", "epochs", "moments", "pld", "processor_seconds"),
)
