"""Private linear models as scikit-learn estimators.

All promise (`claim`) that whoever sees what was fitted learns little of any one record: (ε, δ)-DP where a record has
another value. Public are the settings, the number of records and, unless `classes` states them, the two labels.
`data_norm` (and `target_norm`) say how large records can be; longer ones are clipped. They must not be computed from
the data, and neither must scaling that comes before: a `StandardScaler` in a pipeline is fitted on the records and is
not private.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from epsilometer.arrays import Floats
from epsilometer.claims import PointClaim, Relation
from epsilometer.errors import InvalidInput
from epsilometer.mechanisms.erm.lipschitz_sgd import LipschitzSgd
from epsilometer.mechanisms.erm.losses import loss_named
from epsilometer.mechanisms.erm.mechanism import PrivateErm
from epsilometer.mechanisms.erm.objective_perturbation import ObjectivePerturbation
from epsilometer.mechanisms.erm.output_perturbation import OutputPerturbation
from epsilometer.mechanisms.erm.problem import Problem


class _PrivateLinear(BaseEstimator):  # type: ignore[misc]
    """What all have in common; subclasses make the mechanism from their settings."""

    loss: str
    epsilon: float
    delta: float = 0.0
    regularisation: float
    data_norm: float
    target_norm: float = math.inf
    corner: float
    fit_intercept: bool
    random_state: Any
    _classifies: bool

    @property
    def claim(self) -> PointClaim:
        """What a fit promises: known before there is one."""
        return PointClaim(self.epsilon, self.delta, Relation.REPLACE)

    def mechanism(self) -> PrivateErm:
        """The mechanism that these settings describe, or one line that says which of them cannot be used."""
        raise NotImplementedError

    def _problem(self) -> Problem:
        return Problem(
            loss_named(self.loss, classifies=self._classifies, corner=self.corner),
            self.regularisation,
            self.data_norm,
            self.target_norm,
            self.data_norm if self.fit_intercept else 0.0,  # public, and of the size of a record
        )

    def _fit(self, x: Floats, targets: Floats) -> Self:
        mechanism = self.mechanism()
        model = mechanism.release(x, targets, _generator(self.random_state))
        weights = model[: x.shape[1]]
        self.coef_ = weights[None] if self._classifies else weights
        offset = float(model[-1]) * mechanism.problem.intercept if self.fit_intercept else 0.0
        self.intercept_ = np.array([offset]) if self._classifies else offset
        self.mechanism_ = mechanism
        return self

    def _scores(self, X: ArrayLike) -> Floats:
        """Of records as they are: what is asked of a released model needs no clipping."""
        check_is_fitted(self)
        x = validate_data(self, X, reset=False, dtype=np.float64)
        scores: Floats = x @ np.ravel(self.coef_) + np.ravel(self.intercept_)[0]
        return scores


class _PrivateClassifier(ClassifierMixin, _PrivateLinear):  # type: ignore[misc]
    _classifies = True
    classes: Any

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to records of two classes."""
        x, labels = validate_data(self, X, y, dtype=np.float64)
        labels = column_or_1d(labels, warn=True)
        check_classification_targets(labels)
        self.classes_ = _two(labels) if self.classes is None else _stated(self.classes, labels)
        return self._fit(x, np.where(labels == self.classes_[1], 1.0, -1.0))

    def decision_function(self, X: ArrayLike) -> Floats:
        """Scores; above 0 for the second class."""
        return self._scores(X)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The more likely class of each record."""
        scores = self._scores(X)
        found: NDArray[Any] = self.classes_[(scores > 0).astype(np.intp)]
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # on the few records of a check, noise is all that is seen
        return tags


class _PrivateRegressor(RegressorMixin, _PrivateLinear):  # type: ignore[misc]
    _classifies = False

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to records with a number each."""
        x, targets = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        return self._fit(x, column_or_1d(targets, warn=True).astype(np.float64))

    def predict(self, X: ArrayLike) -> Floats:
        """A number for each record."""
        return self._scores(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags


class OutputPerturbationClassifier(_PrivateClassifier):
    """Noise on the optimum of a regularised risk (see `OutputPerturbation`), for two classes.

    `loss` is "logistic" or "smoothed-hinge" (`corner` is half the width of its rounded part); `delta = 0` gives pure
    ε-DP.

    >>> x, y = np.repeat([[-0.5, 0.1], [0.5, 0.1]], 5000, axis=0), np.repeat(["no", "yes"], 5000)
    >>> model = OutputPerturbationClassifier(epsilon=1.0, delta=1e-5, random_state=0).fit(x, y)
    >>> model.score(x, y), model.claim.describe()
    (1.0, '(ε = 1, δ = 1e-05), replace')
    """

    def __init__(
        self,
        loss: str = "logistic",
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        regularisation: float = 0.01,
        data_norm: float = 1.0,
        fit_intercept: bool = False,
        corner: float = 0.5,
        calibration: str = "analytic",
        solver: str = "newton",
        tolerance: float = 1e-10,
        steps: int | None = None,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.loss, self.epsilon, self.delta, self.regularisation = loss, epsilon, delta, regularisation
        self.data_norm, self.fit_intercept, self.corner, self.calibration = (
            data_norm,
            fit_intercept,
            corner,
            calibration,
        )
        self.solver, self.tolerance, self.steps, self.classes = solver, tolerance, steps, classes
        self.random_state = random_state

    def mechanism(self) -> OutputPerturbation:
        return _output(self)

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Probabilities by the logistic function, whatever the loss."""
        return _probabilities(self._scores(X))


class OutputPerturbationRegressor(_PrivateRegressor):
    """The same for numbers: `loss` "huber" (linear beyond residuals of `corner`), or "squared", which needs
    `target_norm`.

    >>> x = np.repeat([[0.5], [1.0]], 5000, axis=0)
    >>> model = OutputPerturbationRegressor(epsilon=1.0, regularisation=0.01, random_state=0).fit(x, x[:, 0])
    >>> bool(abs(model.coef_[0] - 1.0) < 0.1)
    True
    """

    def __init__(
        self,
        loss: str = "huber",
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        regularisation: float = 0.01,
        data_norm: float = 1.0,
        target_norm: float = math.inf,
        fit_intercept: bool = False,
        corner: float = 1.0,
        calibration: str = "analytic",
        solver: str = "newton",
        tolerance: float = 1e-10,
        steps: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.loss, self.epsilon, self.delta, self.regularisation = loss, epsilon, delta, regularisation
        self.data_norm, self.target_norm, self.fit_intercept, self.corner = (
            data_norm,
            target_norm,
            fit_intercept,
            corner,
        )
        self.calibration, self.solver, self.tolerance, self.steps = calibration, solver, tolerance, steps
        self.random_state = random_state

    def mechanism(self) -> OutputPerturbation:
        return _output(self)


class ObjectivePerturbationClassifier(_PrivateClassifier):
    """The optimum of a randomly tilted risk (see `ObjectivePerturbation`), for two classes: ε-DP, δ = 0.

    >>> x, y = np.repeat([[-0.5, 0.1], [0.5, 0.1]], 5000, axis=0), np.repeat([0, 1], 5000)
    >>> ObjectivePerturbationClassifier(epsilon=1.0, random_state=0).fit(x, y).score(x, y)
    1.0
    """

    def __init__(
        self,
        loss: str = "logistic",
        *,
        epsilon: float = 1.0,
        regularisation: float = 0.01,
        data_norm: float = 1.0,
        fit_intercept: bool = False,
        corner: float = 0.5,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.loss, self.epsilon, self.regularisation, self.data_norm = loss, epsilon, regularisation, data_norm
        self.fit_intercept, self.corner, self.classes, self.random_state = fit_intercept, corner, classes, random_state

    def mechanism(self) -> ObjectivePerturbation:
        return ObjectivePerturbation(self._problem(), self.epsilon)

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Probabilities by the logistic function, whatever the loss."""
        return _probabilities(self._scores(X))


class ObjectivePerturbationRegressor(_PrivateRegressor):
    """The same for numbers, with "huber": squared loss is somewhere steeper than any limit."""

    def __init__(
        self,
        loss: str = "huber",
        *,
        epsilon: float = 1.0,
        regularisation: float = 0.01,
        data_norm: float = 1.0,
        fit_intercept: bool = False,
        corner: float = 1.0,
        random_state: Any = None,
    ) -> None:
        self.loss, self.epsilon, self.regularisation, self.data_norm = loss, epsilon, regularisation, data_norm
        self.fit_intercept, self.corner, self.random_state = fit_intercept, corner, random_state

    def mechanism(self) -> ObjectivePerturbation:
        return ObjectivePerturbation(self._problem(), self.epsilon)


class DpSgdClassifier(_PrivateClassifier):
    """One record a step, noise on its gradient, projection on a ball (see `LipschitzSgd`), for two classes.

    >>> x, y = np.repeat([[-0.5, 0.1], [0.5, 0.1]], 5000, axis=0), np.repeat([0, 1], 5000)
    >>> model = DpSgdClassifier(epsilon=1.0, steps=4000, calibration="rdp", random_state=0).fit(x, y)
    >>> model.score(x, y)
    1.0
    """

    def __init__(
        self,
        loss: str = "logistic",
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        regularisation: float = 0.0,
        data_norm: float = 1.0,
        fit_intercept: bool = False,
        corner: float = 0.5,
        steps: int = 1000,
        radius: float = 1.0,
        calibration: str = "bassily",
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.loss, self.epsilon, self.delta, self.regularisation = loss, epsilon, delta, regularisation
        self.data_norm, self.fit_intercept, self.corner, self.steps = data_norm, fit_intercept, corner, steps
        self.radius, self.calibration, self.classes, self.random_state = radius, calibration, classes, random_state

    def mechanism(self) -> LipschitzSgd:
        return _sgd(self)

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Probabilities by the logistic function, whatever the loss."""
        return _probabilities(self._scores(X))


class DpSgdRegressor(_PrivateRegressor):
    """The same for numbers: "huber", or "squared", which needs `target_norm`."""

    def __init__(
        self,
        loss: str = "huber",
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        regularisation: float = 0.0,
        data_norm: float = 1.0,
        target_norm: float = math.inf,
        fit_intercept: bool = False,
        corner: float = 1.0,
        steps: int = 1000,
        radius: float = 1.0,
        calibration: str = "bassily",
        random_state: Any = None,
    ) -> None:
        self.loss, self.epsilon, self.delta, self.regularisation = loss, epsilon, delta, regularisation
        self.data_norm, self.target_norm, self.fit_intercept, self.corner = (
            data_norm,
            target_norm,
            fit_intercept,
            corner,
        )
        self.steps, self.radius, self.calibration, self.random_state = steps, radius, calibration, random_state

    def mechanism(self) -> LipschitzSgd:
        return _sgd(self)


ESTIMATORS = (
    OutputPerturbationClassifier,
    OutputPerturbationRegressor,
    ObjectivePerturbationClassifier,
    ObjectivePerturbationRegressor,
    DpSgdClassifier,
    DpSgdRegressor,
)


def _output(of: Any) -> OutputPerturbation:
    return OutputPerturbation(
        of._problem(), of.epsilon, of.delta, of.calibration, of.solver, of.tolerance, of.steps
    )  # fmt: skip


def _sgd(of: Any) -> LipschitzSgd:
    return LipschitzSgd(of._problem(), of.epsilon, of.delta, of.steps, of.radius, of.calibration)


def _generator(random_state: Any) -> np.random.Generator:
    """One of our own, also from what scikit-learn takes for `random_state`."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None:
        return np.random.default_rng()  # of the system's entropy: seconds and process numbers can be guessed
    words = check_random_state(random_state).randint(0, 2**32, size=8, dtype=np.uint32)
    return np.random.default_rng(words)


def _two(labels: NDArray[Any]) -> NDArray[Any]:
    kind = type_of_target(labels, input_name="y", raise_unknown=True)
    found = np.unique(labels)
    if len(found) > 2:
        said = f"Only binary classification is supported. The type of the target is {kind}."
        raise InvalidInput("y", f"{len(found)} classes", "2 classes", said)
    if len(found) < 2:
        raise InvalidInput("y", "1 class", "2 classes", "state both with `classes`, if that is how the records are")
    return found


def _stated(classes: Any, labels: NDArray[Any]) -> NDArray[Any]:
    stated = np.asarray(classes)
    if stated.shape != (2,) or stated[0] == stated[1]:
        raise InvalidInput("classes", classes, "2 labels that differ")
    other = ~np.isin(labels, stated)
    if other.any():
        raise InvalidInput("y", labels[other][0], f"one of the two stated classes {stated.tolist()}")
    return stated


def _probabilities(scores: Floats) -> Floats:
    return np.column_stack([special.expit(-scores), special.expit(scores)])
