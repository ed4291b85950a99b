"""Fully connected networks over one flat parameter vector, with per-example clipping that never forms
per-example gradients: ‖g‖² = Σ over layers of (‖input‖² + 1)·‖error‖², since a layer's gradient is the outer
product of its error and its input (and the error itself for the bias)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import special

from epsilometer.claims import Floats

Array = NDArray[np.floating]
Labels = NDArray[np.int64]
AUTOMATIC_STABILITY = 0.01  # γ of automatic clipping (Bu et al. 2023)


@dataclass(frozen=True)
class Network:
    """A fully connected softmax classifier; `widths` are features, hidden units (if any) and classes.

    >>> Network((64, 10)).parameters
    650
    """

    widths: tuple[int, ...]
    activation: str = "relu"
    loss: str = "cross-entropy"

    @property
    def parameters(self) -> int:
        return sum(a * b + b for a, b in pairwise(self.widths))

    def layers(self, flat: Array) -> list[tuple[Array, Array]]:
        """Views of the flat vector: (weights of shape outputs × inputs, biases) of each layer."""
        views, at = [], 0
        for inputs, outputs in pairwise(self.widths):
            weights = flat[at : at + inputs * outputs].reshape(outputs, inputs)
            at += inputs * outputs
            views.append((weights, flat[at : at + outputs]))
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

    def _forward(self, flat: Array, x: Array) -> list[Array]:
        """The input of every layer, and the logits last."""
        values = [x]
        layers = self.layers(flat)
        for weights, biases in layers[:-1]:
            inner = values[-1] @ weights.T + biases
            values.append(np.tanh(inner) if self.activation == "tanh" else np.maximum(inner, 0))
        weights, biases = layers[-1]
        values.append(values[-1] @ weights.T + biases)
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

    def input_gradients(self, flat: Array, x: Array, y: Labels) -> Array:
        """The gradient of each record's loss by its features."""
        _, errors = self._backward(flat, x.astype(flat.dtype), y)
        gradients: Array = errors[0] @ self.layers(flat)[0][0]
        return gradients

    def input_gradients_along(self, flat: Array, x: Array, y: Labels, direction: Array) -> Array:
        """How `input_gradients` changes as the parameters move along `direction`: an exact derivative.

        Which is also the gradient by the features of ⟨gradient by the parameters, direction⟩.
        """
        layers, moves = self.layers(flat), self.layers(direction)
        values, errors = self._backward(flat, x.astype(flat.dtype), y)
        change = np.zeros_like(values[0])
        inner = []  # of every layer's output before its activation
        for (weights, _), (move, shift), value in zip(layers, moves, values, strict=False):
            inner.append(change @ weights.T + value @ move.T + shift)
            change = inner[-1] * self._slope(values[len(inner)])
        error_change = self._output_error_along(values[-1], inner[-1])
        for i in range(len(layers) - 1, 0, -1):
            value, slope = values[i], self._slope(values[i])
            error_change = (error_change @ layers[i][0] + errors[i] @ moves[i][0]) * slope
            if self.activation == "tanh":
                error_change += (errors[i] @ layers[i][0]) * (-2.0 * value * slope * inner[i - 1])
        changes: Array = error_change @ layers[0][0] + errors[0] @ moves[0][0]
        return changes

    def _backward(self, flat: Array, x: Array, y: Labels) -> tuple[list[Array], list[Array]]:
        """The input of every layer (and the logits), and the loss's derivative by every layer's output."""
        values = self._forward(flat, x)
        errors = [self._output_error(values[-1], y)]
        for (weights, _), value in zip(reversed(self.layers(flat)[1:]), reversed(values[1:-1]), strict=True):
            errors.append((errors[-1] @ weights) * self._slope(value))
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
        error[np.arange(len(y)), y] -= 1
        return error

    def _output_error_along(self, logits: Array, change: Array) -> Array:
        """How `_output_error` changes with the logits."""
        if self.loss == "squared":
            return change
        chance = special.expit(logits) if self.loss == "logistic" else _softmax(logits)
        shared = 0.0 if self.loss == "logistic" else (chance * change).sum(axis=1, keepdims=True)
        own = 1 - chance if self.loss == "logistic" else 1.0
        changed: Array = chance * (own * change - shared)
        return changed


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


def _softmax(logits: Array) -> Array:
    shifted: Array = np.exp(logits - logits.max(axis=1, keepdims=True))
    shifted /= shifted.sum(axis=1, keepdims=True)
    return shifted
