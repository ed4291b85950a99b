"""Fully connected networks over one flat parameter vector, with per-example clipping that never forms
per-example gradients: ‖g‖² = Σ over layers of (‖input‖² + 1)·‖error‖², since a layer's gradient is the outer
product of its error and its input (and the error itself for the bias)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from epsilometer.arrays import Floats

Array = NDArray[np.floating]
Labels = NDArray[np.int64]
AUTOMATIC_STABILITY = 0.01  # γ of automatic clipping (Bu et al. 2023)


@dataclass(frozen=True, eq=False)
class RecordGradients:
    """The gradient of one record at each model of a stack, never formed (see above).

    `inputs` has every layer's input, the logits last, and `errors` every layer's error: models × 1 × units.
    """

    inputs: list[Array]
    errors: list[Array]

    @property
    def logits(self) -> Array:
        return self.inputs[-1][:, 0]

    def dot(self, other: RecordGradients) -> Floats:
        """Inner products, one a model."""
        pairs = zip(self.errors, other.errors, self.inputs[:-1], other.inputs[:-1], strict=True)
        products: Floats = np.sum([_dots(e, f) * (_dots(v, w) + 1) for e, f, v, w in pairs], axis=0)
        return products[:, 0, 0]


Combination = Sequence[tuple[Floats, RecordGradients]]  # the sum of factors (one a model) times gradients


@dataclass(frozen=True)
class Network:
    """A fully connected softmax classifier; `widths` are features, hidden units (if any) and classes.

    >>> Network((64, 10)).parameters
    650
    """

    fully_connected: ClassVar[bool] = True  # so that its layers are known one by one
    widths: tuple[int, ...]
    activation: str = "relu"
    loss: str = "cross-entropy"

    @property
    def parameters(self) -> int:
        return sum(a * b + b for a, b in pairwise(self.widths))

    def layers(self, flat: Array) -> list[tuple[Array, Array]]:
        """Views of the flat vector (or a stack of them): (weights of shape outputs × inputs, biases) of each layer."""
        views, at = [], 0
        for inputs, outputs in pairwise(self.widths):
            weights = flat[..., at : at + inputs * outputs].reshape(*flat.shape[:-1], outputs, inputs)
            at += inputs * outputs
            views.append((weights, flat[..., at : at + outputs]))
            at += outputs
        return views

    def initial(self, rng: np.random.Generator, scale: float) -> Array:
        """Glorot normal weights times `scale`; biases are 0."""
        flat = np.zeros(self.parameters)
        for weights, _ in self.layers(flat):
            spread = scale * np.sqrt(2.0 / sum(weights.shape))
            weights[:] = spread * rng.standard_normal(weights.shape)
        return flat

    def logits(self, flat: Array, x: Array) -> Array:
        """One row of class scores a record."""
        return self._forward(flat, x)[-1]

    def _forward(self, flat: Array, x: Array, moved: Combination = ()) -> list[Array]:
        """The input of every layer, and the logits last; of a model or, models × records × features, a stack of them.

        Products are one for each model, so that a model's are the same whichever stand beside it.
        """
        values = [x]
        for i, (weights, biases) in enumerate(self.layers(flat)):
            inner = values[i] @ weights.swapaxes(-1, -2) + biases[..., None, :]
            if moved:
                inner += _onward(moved, i, values[i])
            if i == len(self.widths) - 2:
                values.append(inner)
            else:
                values.append(np.tanh(inner) if self.activation == "tanh" else np.maximum(inner, 0))
        return values

    def clipped_gradient_sum(self, flat: Array, x: Array, y: Labels, clip_norm: float, clipping: str = "flat") -> Array:
        """Sum over records of the loss's gradient, each clipped so that its norm is `clip_norm` at most."""
        total = np.zeros_like(flat)
        if len(x) == 0:
            return total
        values, errors = self._backward(flat, x, y)
        scales = clip_factors(_squares(values, errors), clip_norm, clipping)
        for (weights, biases), value, error, scale in zip(self.layers(total), values, errors, scales, strict=False):
            scaled = error * scale[:, None]
            np.matmul(scaled.T, value, out=weights)
            scaled.sum(axis=0, out=biases)
        return total

    def clipped_products(
        self, flat: Array, x: Array, y: Labels, direction: Array, clip_norm: float, clipping: str = "flat"
    ) -> Floats:
        """⟨clipped gradient, direction⟩ for each record, without forming gradients: error·(W'·input + b') by layers."""
        values, errors = self._backward(flat, x.astype(flat.dtype), y)
        scales = clip_factors(_squares(values, errors), clip_norm, clipping)
        products = np.zeros(len(x))
        for (weights, biases), value, error, scale in zip(self.layers(direction), values, errors, scales, strict=False):
            products += scale * np.einsum("ij,ij->i", error, value @ weights.T + biases)
        return products

    def gradient_norms(self, flat: Array, x: Array, y: Labels) -> Array:
        """The norm of each record's gradient, before clipping."""
        norms: Array = np.sqrt(_squares(*self._backward(flat, x, y)).sum(axis=0))
        return norms

    def record_parts(self, flat: Array, x: Array, y: Labels) -> tuple[list[Array], list[Array]]:
        """The input of every layer (and the logits last), and the loss's derivative by every layer's output; a row a
        record. A record's gradient by a layer is the outer product of its error and its input."""
        return self._backward(flat, x, y)

    def clipped_norms(self, flat: Array, x: Array, y: Labels, clip_norm: float, clipping: str = "flat") -> Floats:
        """The norm of each record's gradient, after clipping."""
        return clipped_norms(_squares(*self._backward(flat, x, y)), clip_norm, clipping)

    def last_layer_norms(self, flat: Array, x: Array, y: Labels) -> Array:
        """The norm of the last layer's part of each record's gradient, before clipping: no backward pass is needed."""
        *_, inputs, logits = self._forward(flat, x)
        norms: Array = np.sqrt(_squares([inputs], [self._output_error(logits, y)])[0])
        return norms

    def input_gradients(self, flat: Array, x: Array, y: Labels) -> Array:
        """The gradient of each record's loss by its features."""
        _, errors = self._backward(flat, x.astype(flat.dtype), y)
        gradients: Array = errors[0] @ self.layers(flat)[0][0]
        return gradients

    def record_gradients(self, models: Array, x: Array, y: Labels, moved: Combination = ()) -> RecordGradients:
        """The gradient at each model (row) of the loss of a record (row) of its own, after the models moved."""
        return RecordGradients(*self._backward(models, x[:, None].astype(models.dtype), y[:, None], moved))

    def input_gradients_along(self, models: Array, x: Array, y: Labels, direction: Combination) -> Array:
        """How the gradient by a record's features changes as its model moves along `direction`: an exact derivative.

        Which is also the gradient by the features of ⟨gradient by the parameters, direction⟩. A row is a model, which
        has a record of its own.
        """
        layers = self.layers(models)
        values, errors = self._backward(models, x[:, None].astype(models.dtype), y[:, None])
        inner = [_onward(direction, 0, values[0])]  # the change of every layer's output before its activation
        for i, (weights, _) in enumerate(layers[1:], 1):
            change = inner[-1] * self._slope(values[i])
            inner.append(change @ weights.swapaxes(-1, -2) + _onward(direction, i, values[i]))
        error_change = self._output_error_along(values[-1], inner[-1])
        for i in range(len(layers) - 1, 0, -1):
            weights, slope = layers[i][0], self._slope(values[i])
            error_change = (error_change @ weights + _back(direction, i, errors[i])) * slope
            if self.activation == "tanh":
                error_change += (errors[i] @ weights) * (-2.0 * values[i] * slope * inner[i - 1])
        changes: Array = error_change @ layers[0][0] + _back(direction, 0, errors[0])
        return changes[:, 0]

    def _backward(self, flat: Array, x: Array, y: Labels, moved: Combination = ()) -> tuple[list[Array], list[Array]]:
        """The input of every layer (and the logits), and the loss's derivative by every layer's output."""
        layers, values = self.layers(flat), self._forward(flat, x, moved)
        errors = [self._output_error(values[-1], y)]
        for i in range(len(layers) - 1, 0, -1):
            error = errors[-1] @ layers[i][0]
            if moved:
                error += _back(moved, i, errors[-1])
            errors.append(error * self._slope(values[i]))
        return values, errors[::-1]

    def _slope(self, value: Array) -> Array:
        """The activation's derivative where its value is this."""
        slope: Array = 1 - value * value if self.activation == "tanh" else (value > 0).astype(value.dtype)
        return slope

    def _output_error(self, logits: Array, y: Labels) -> Array:
        """The derivative of the loss by the logits."""
        if self.loss == "cross-entropy":
            error = _softmax(logits)
        elif self.loss == "logistic":
            error = special.expit(logits)
        else:
            error = logits.copy()
        np.put_along_axis(error, y[..., None], np.take_along_axis(error, y[..., None], -1) - 1, -1)
        return error

    def _output_error_along(self, logits: Array, change: Array) -> Array:
        """How `_output_error` changes with the logits."""
        if self.loss == "squared":
            return change
        chance = special.expit(logits) if self.loss == "logistic" else _softmax(logits)
        shared = 0.0 if self.loss == "logistic" else (chance * change).sum(axis=-1, keepdims=True)
        own = 1 - chance if self.loss == "logistic" else 1.0
        changed: Array = chance * (own * change - shared)
        return changed


def _onward(moves: Combination, layer: int, values: Array) -> Array:
    """What a layer's outputs gain as it moves: outer products act on a vector by an inner product."""
    gained = np.zeros((), values.dtype)
    for factors, gradients in moves:
        lengths = _column(factors) * (_dots(gradients.inputs[layer], values) + 1)
        gained = gained + lengths.astype(values.dtype) * gradients.errors[layer]
    return gained


def _back(moves: Combination, layer: int, errors: Array) -> Array:
    """What the errors that a layer hands down gain as it moves."""
    gained = np.zeros((), errors.dtype)
    for factors, gradients in moves:
        lengths = _column(factors) * _dots(gradients.errors[layer], errors)
        gained = gained + lengths.astype(errors.dtype) * gradients.inputs[layer]
    return gained


def _column(factors: Floats) -> Floats:
    return factors[:, None, None]


def _dots(a: Array, b: Array) -> Floats:
    """Inner products of vectors, in double precision and in the same order of additions for any number of them."""
    products: Floats = np.sum(a.astype(np.float64) * b, axis=-1, keepdims=True)
    return products


def _squares(values: list[Array], errors: list[Array]) -> Array:
    """Squared norms of each layer's part (row) of each record's gradient (column)."""
    return np.array([
        (np.einsum("ij,ij->i", value, value) + 1) * np.einsum("ij,ij->i", error, error)
        for value, error in zip(values, errors, strict=False)
    ])  # fmt: skip


def clip_factors(squares: Array, clip_norm: float, clipping: str) -> Array:
    """By what each layer's part (row) of each record's gradient (column) is multiplied, from squared norms."""
    layers = len(squares)
    if clipping == "per-layer":
        norms, limit = np.sqrt(squares), clip_norm / np.sqrt(layers)
    else:
        norms, limit = np.sqrt(squares.sum(axis=0, keepdims=True)), clip_norm
    if clipping == "automatic":
        factors = limit / (norms + AUTOMATIC_STABILITY)
    else:
        factors = np.minimum(1.0, limit / np.maximum(norms, np.finfo(squares.dtype).tiny))
    return np.broadcast_to(factors, squares.shape).astype(squares.dtype)


def clipped_norms(squares: Array, clip_norm: float, clipping: str) -> Floats:
    """The norm of each record's clipped gradient (column), from squared norms of its layers' parts (rows)."""
    factors = clip_factors(squares, clip_norm, clipping).astype(np.float64)
    norms: Floats = np.sqrt((np.square(factors) * squares).sum(axis=0))
    return norms


def _softmax(logits: Array) -> Array:
    shifted: Array = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shifted /= shifted.sum(axis=-1, keepdims=True)
    return shifted
