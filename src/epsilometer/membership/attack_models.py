"""Attack models: fitted on examples whose membership is known, they score others; higher means member."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from epsilometer.adversaries.logistic import logistic_weights
from epsilometer.arrays import Floats
from epsilometer.evidence import Coins
from epsilometer.training import Labels

FEWEST = 40  # examples of a class from which a model of its own is learned
PENALTY = 1e-3
UNITS, STEPS, BATCH, MOST_EPOCHS = 64, 2500, 512, 100  # of a network
_LARGEST = 8.0  # deviations: rarer values would decide alone


@dataclass(frozen=True, eq=False)
class Examples:
    """Signals of records at references, a row each, with the record's label and whether it was in."""

    x: Floats
    y: Labels
    inside: Coins
    classes: int


Scores = Callable[[Floats], Floats]  # signals, a row a record → log-odds of being in
Fit = Callable[[Floats, Coins], Scores]


def standard(examples: Floats, other: Floats) -> tuple[Floats, Floats]:
    """Both in the examples' deviations from their mean, without extremes."""
    centre, spread = examples.mean(axis=0), examples.std(axis=0) + 1e-12
    both = (np.clip((values - centre) / spread, -_LARGEST, _LARGEST) for values in (examples, other))
    return next(both), next(both)


def scores_by_class(fit: Fit, examples: Examples, x: Floats, y: Labels) -> Floats:
    """By a model for each class that has enough examples, and one of all examples for the rest (Shokri et al. 2017)."""
    known, asked = standard(examples.x, x)
    everybody: Scores | None = None
    scores = np.zeros(len(y))
    for label in range(examples.classes):
        rows = y == label
        if not rows.any():
            continue
        mine = examples.y == label
        inside = examples.inside[mine]
        if len(inside) >= FEWEST and inside.any() and not inside.all():
            scores[rows] = fit(known[mine], inside)(asked[rows])
        else:
            everybody = everybody or fit(known, examples.inside)
            scores[rows] = everybody(asked[rows])
    return scores


def scores_with_label(fit: Fit, examples: Examples, x: Floats, y: Labels) -> Floats:
    """By one model that is told the label beside the signals (Nasr et al. 2019)."""
    known, asked = standard(examples.x, x)
    labels = np.eye(examples.classes)
    return fit(np.column_stack([known, labels[examples.y]]), examples.inside)(np.column_stack([asked, labels[y]]))


def logistic(x: Floats, inside: Coins) -> Scores:
    """Logistic regression on signals and their squares."""
    weights = logistic_weights(_with_squares(x), inside.astype(np.int64), PENALTY)
    return lambda asked: _with_squares(asked) @ weights[:-1] + weights[-1]


def _with_squares(values: Floats) -> Floats:
    return np.concatenate([values, values**2], axis=-1)


def network(x: Floats, inside: Coins) -> Scores:
    """One hidden layer, trained by Adam for about as many steps however many examples there are."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier  # half a second: only when it is needed

    batch = min(BATCH, len(x))
    epochs = int(np.clip(STEPS * batch / len(x), 5, MOST_EPOCHS))
    model = MLPClassifier((UNITS,), alpha=PENALTY, batch_size=batch, max_iter=epochs, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it ends after as many epochs as were planned
        model.fit(x, inside)

    def scores(asked: Floats) -> Floats:
        chance = np.clip(model.predict_proba(asked)[:, 1], 1e-12, 1.0 - 1e-12)
        return np.asarray(special.logit(chance), np.float64)

    return scores


FITS: dict[str, Fit] = {"logistic": logistic, "network": network}
