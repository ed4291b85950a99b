"""Reconstruction of single records from sums and from a gradient, beside the limits of Guo et al. (2022)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.data import Dataset, load
from epsilometer.errors import InvalidInput
from epsilometer.figures import Figure, Grid, Lines, Pictures, Series
from epsilometer.reconstruction import (
    Differencing,
    GradientInversion,
    Reconstruction,
    RecordAttack,
    fisher_limit,
    gaussian_renyi,
    renyi_limit,
)
from epsilometer.reproductions.reproduction import Cell, Reproduction, Row, Session, grid
from epsilometer.seeds import Stream, seed_of

NOISES = ("0", "0.001", "0.01", "0.03", "0.1", "0.3", "1", "3")
HIDDEN, CLIP_NORM = 32, 1.0
PER_CLASS = 200  # records of MNIST that are looked at
IN_SUM = 100  # records in the larger sum
LIMITED = 10  # records whose Fisher information is computed: 2d gradients each
LEAST = 1e-9  # where the picture's scale begins; what is exact is drawn there
_SUMS, _GRADIENT = "sums", "gradient"
_LINES = (
    ("measured", "attack, cut to [0, 1]", False),
    ("raw", "attack as it is (median)", False),
    ("guess", "the mean picture", True),
    ("fisher", "limit by Fisher information", True),
    ("renyi", "limit by Rényi-DP", True),
)


def _measure(cell: Cell, session: Session) -> Row:
    data = _records(cell["data"], session)
    if session.trials > len(data):
        raise InvalidInput("trials", session.trials, f"{len(data)} at most: so many records are there")
    sigma, features = float(cell["noise"]), data.x.shape[1]
    rng = np.random.default_rng(seed_of(session.seed, Stream.RECONSTRUCTING, _CELLS.index(cell)))
    # Which records, and the network's weights, are those of all cells: only the noise differs.
    shared = np.random.default_rng(seed_of(session.seed, Stream.RECONSTRUCTING))
    rows = shared.permutation(len(data))[: session.trials]
    attack: RecordAttack = Differencing(IN_SUM) if cell["attack"] == _SUMS else GradientInversion((HIDDEN,), CLIP_NORM)
    prepared = attack.prepare(data, shared)
    noise_std = sigma * attack.noise_unit(data)
    found = [Reconstruction(data.x[row], attack.rebuild(prepared, data, row, sigma, rng), data.shape) for row in rows]
    cut = [one.within(0.0, 1.0) for one in found]
    pixels = data.x.astype(np.float64)
    epsilon = gaussian_renyi(attack.sensitivity(data), noise_std)
    first = cut[0]
    details = {
        "raw": float(np.median([one.mse for one in found])),
        "found": float(np.mean([one.finds(pixels, row) for one, row in zip(cut, rows, strict=True)])),
        "guess": float(np.mean((pixels[rows] - pixels.mean(axis=0)) ** 2)),
        "renyi": renyi_limit(np.ones(features), epsilon),
        "fisher": float(
            np.mean(
                [fisher_limit(attack.released(prepared, data, row), pixels[row], noise_std) for row in rows[:LIMITED]]
            )
        ),
        "renyi_epsilon": epsilon,
        "noise_std": noise_std,
        "records": len(rows),
        "seed": session.seed,
        "picture": {"shape": list(data.shape), "original": _bytes(first.original), "estimate": _bytes(first.estimate)},
    }
    return Row(cell, None, float(np.mean([one.mse for one in cut])), details)


def _records(name: str, session: Session) -> Dataset:
    limit = None if name == "digits" else PER_CLASS
    return load(name, per_class=limit, directory=session.data_dir, progress=session.download)


def _bytes(record: Floats) -> list[int]:
    return [int(value) for value in np.rint(255.0 * record)]


def _draw(rows: Sequence[Row]) -> Figure:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.cell["attack"], row.cell["data"]), []).append(row)
    figures: list[Figure] = []
    for (attack, data), own in groups.items():
        words = "Two sums" if attack == _SUMS else "A gradient"
        places = tuple(row.cell["noise"] for row in own)
        lines = (
            Series(label, tuple((row.cell["noise"], row.to_dict()[key]) for row in own), reference)
            for key, label, reference in _LINES
        )
        title = f"{words}, {data}"
        figures.append(Lines(title, places, tuple(lines), "noise multiplier", "error per pixel", LEAST, 1e3))
        shape = tuple(own[0].details["picture"]["shape"])
        pictures = [("original", own[0].details["picture"]["original"])]
        pictures += [(row.cell["noise"], row.details["picture"]["estimate"]) for row in own]
        figures.append(Pictures.of(f"{title}: a record, by noise", pictures, shape, 0.0, 255.0))
    return Grid("Records rebuilt, by noise", tuple(figures))


_CELLS = (
    *grid(attack=(_SUMS,), data=("digits",), noise=NOISES),
    *grid(attack=(_GRADIENT,), data=("digits", "mnist"), noise=NOISES),
)

GUO_RECONSTRUCTION = Reproduction(
    name="guo-reconstruction",
    summary="records rebuilt from two sums or from a gradient, beside limits for unbiased estimates (Guo et al. 2022)",
    about=(
        "measured is the mean squared error per pixel of an estimate that is cut to [0, 1], raw the median of the "
        "estimate as it is (unbiased from sums; drawn to 0 by noise from gradients), guess that of the mean picture. "
        "sums: a sum of 100 pictures minus that of 99, noise of σ·√d on each. gradient: of one record, by a network "
        "d-32-classes at its initial weights, clipped to C = 1, noise of σ·C; the first layer's gradient by its "
        "weights over that by its biases. found: the estimate is nearest to the right one of all records. renyi and "
        "fisher are the paper's Theorems 1 and 2, for unbiased estimates: a cut estimate or a good guess may be below. "
        "Theorem 1 assumes pixels anywhere in [0, 1] and replaced records; fisher is the mean over 10 of the records. "
        "The paper shows curves of other models (whole trainings), so no number of it stands here."
    ),
    trials=200,
    cells=_CELLS,
    measure=_measure,
    draw=_draw,
    shown=("raw", "found", "guess", "fisher", "renyi"),
)
