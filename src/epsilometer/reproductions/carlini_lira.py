"""Carlini et al. (2022) and Zarifzadeh et al. (2024): LiRA and RMIA against the loss on CIFAR-10, small."""

from __future__ import annotations

from collections.abc import Sequence

from epsilometer.data import load
from epsilometer.figures import Lines, Series
from epsilometer.membership import MembershipPlan
from epsilometer.reproductions.membership import attacked, split
from epsilometer.reproductions.reproduction import Cell, Reproduction, Row, Session
from epsilometer.subjects import DpSgdTraining
from epsilometer.training import Recipe

# AUC on CIFAR-10 with 16 shadow models and a fixed variance: not the paper's, but of the demo in its code's README
# (tensorflow/privacy, research/mi_lira_2021), which says that one gets "something like" it.
PAPER = {"lira": 0.6856}
ATTACKS = ("loss", "modified-entropy", "shadow", "lira", "lira-offline", "rmia", "white-box", "white-box-by-record")
PER_CLASS, RECORDS, POPULATION = 1000, 8000, 2000


def _measure(cell: Cell, session: Session) -> Row:
    data = load("cifar10-features", per_class=PER_CLASS, directory=session.data_dir, progress=session.download)
    records, population = split(data, session.seed, RECORDS, POPULATION)
    recipe = Recipe(
        records=RECORDS // 2, sample_rate=0.025, steps=1200, noise_multiplier=0.0, clip_norm=1e12, learning_rate=0.05,
        model="mlp", hidden=(256,), initialisation="random", optimizer="momentum", sampling="shuffle",
        schedule="cosine",
    )  # fmt: skip
    plan = MembershipPlan(
        DpSgdTraining(recipe, records, share=0.5), population, references=session.trials, white_box=True,
        seed=session.seed,
    )  # fmt: skip
    found = attacked(plan, ATTACKS, session)
    one = found.attack(cell["attack"])
    low, high = one.tpr_at
    areas = [part.auc for part in one.by_class]
    details = {
        "auc_low": one.auc.low,
        "auc_high": one.auc.high,
        "tpr_at_1": high.tpr.value,
        "tpr_at_1_low": high.tpr.low,
        "tpr_at_1_high": high.tpr.high,
        "tpr_at_01": low.tpr.value,
        "accuracy": one.balanced_accuracy.value,
        "least_class": min(area.value for area in areas),
        "least_class_high": min(areas, key=lambda area: area.value).high,
        "most_class": max(area.value for area in areas),
        "most_class_low": max(areas, key=lambda area: area.value).low,
        "certified": one.bound and one.bound.epsilon,
        "train": found.train_accuracy,
        "test": found.test_accuracy,
    }
    return Row(cell, PAPER.get(cell["attack"]), one.auc.value, details)


def _draw(rows: Sequence[Row]) -> Lines:
    places = tuple(row.cell["attack"] for row in rows)
    series = [
        Series("AUC", tuple((row.cell["attack"], row.measured) for row in rows)),
        Series("TPR at 1 % FPR", tuple((row.cell["attack"], float(row.details["tpr_at_1"])) for row in rows)),
    ]
    stated = tuple((row.cell["attack"], row.paper) for row in rows if row.paper is not None)
    demo = [Series("README of the paper's code, AUC", stated, True)] if stated else []
    return Lines("Attacks on CIFAR-10 features", places, (*demo, *series), "attack", "share")


CARLINI_LIRA = Reproduction(
    name="carlini-lira",
    summary="LiRA and RMIA against simpler attacks on CIFAR-10 (Carlini et al. 2022, Zarifzadeh et al. 2024)",
    about=(
        "The README of the paper's code (not the paper) has an AUC of .6856 for LiRA with 16 shadow models and a fixed "
        "variance, on wide ResNets that were trained on 25,000 images. RMIA is offline with a = .3, not tuned; lira is "
        "online. Here: 1,000 images a class, seen through a small frozen network that was trained on "
        "CIFAR-100, and a network 128-256-10 trained on half of 8,000 of them; --trials is the number of references."
    ),
    trials=32,
    cells=tuple({"attack": name} for name in ATTACKS),
    measure=_measure,
    draw=_draw,
    shown=("tpr_at_1", "tpr_at_01", "accuracy", "train", "test"),
)
