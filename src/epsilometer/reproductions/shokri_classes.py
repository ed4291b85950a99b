"""Shokri et al. (2017), Table of section VI: the more classes and the more overfitting, the more a model leaks."""

from __future__ import annotations

from collections.abc import Sequence

from epsilometer.figures import Grid
from epsilometer.membership import MembershipPlan
from epsilometer.reproductions.membership import attacked, chart, precision, retail, split
from epsilometer.reproductions.reproduction import Cell, Reproduction, Row, Session
from epsilometer.subjects import PlainRecipe, PlainTraining

PAPER = {"2": 0.505, "10": 0.550, "20": 0.590, "50": 0.860, "100": 0.935}  # precision on Purchase
EPOCHS = ("2", "5", "10")
LAST = "30"
RECORDS, POPULATION = 6000, 2000


def _measure(cell: Cell, session: Session) -> Row:
    records, population = split(retail(session, int(cell["classes"])), session.seed, RECORDS, POPULATION)
    recipe = PlainRecipe(hidden=(128,), epochs=int(cell["epochs"]))
    plan = MembershipPlan(PlainTraining(recipe, records), population, references=session.trials, seed=session.seed)
    found = attacked(plan, ("loss", "shadow"), session)
    shadow = found.attack("shadow")
    accuracy = shadow.balanced_accuracy
    details = {
        "train": found.train_accuracy,
        "test": found.test_accuracy,
        "gap": (found.train_accuracy or 0.0) - (found.test_accuracy or 0.0),
        "attack": accuracy.value,
        "attack_low": accuracy.low,
        "attack_high": accuracy.high,
        "auc": shadow.auc.value,
        "auc_low": shadow.auc.low,
        "auc_high": shadow.auc.high,
        "loss_attack": found.attack("loss").balanced_accuracy.value,
        "certified": found.bound and found.bound.epsilon,
    }
    paper = PAPER[cell["classes"]] if cell["epochs"] == LAST else None
    return Row(cell, paper, precision(shadow), details)


def _draw(rows: Sequence[Row]) -> Grid:
    by_classes = [row for row in rows if row.cell["epochs"] == LAST]
    by_epochs = [row for row in rows if row.cell["classes"] == "100"]
    names = (("attack", "attack accuracy"), ("test", "test accuracy"), ("gap", "train − test"))
    charts = [
        chart("By the number of classes", by_classes, "classes", "classes", "share", *names),
        chart("By overfitting (100 classes)", by_epochs, "epochs", "epochs", "share", *names),
    ]
    return Grid("What a model leaks, by classes and by overfitting", tuple(one for one in charts if one.series))


SHOKRI_CLASSES = Reproduction(
    name="shokri-classes",
    summary="membership inference by the number of classes and by overfitting (Shokri et al. 2017)",
    about=(
        "The paper has the precision of shadow models' attack on Purchase, of models trained by Google's service on "
        "10,000 records. Here: market baskets made in the same way (not Purchase), a network 600-128-classes, 3,000 "
        "members, and an attack model for each class that is a logistic regression. Measured is the precision, too."
    ),
    trials=4,
    cells=(
        *({"classes": classes, "epochs": LAST} for classes in PAPER),
        *({"classes": "100", "epochs": epochs} for epochs in EPOCHS),
    ),
    measure=_measure,
    draw=_draw,
    shown=("train", "test", "attack", "auc"),
)
