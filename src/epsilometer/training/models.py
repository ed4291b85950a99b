"""Fully connected networks over one flat parameter vector, with per-example clipping that never forms
per-example gradients: ‖g‖² = Σ over layers of (‖input‖² + 1)·‖error‖², since a layer's gradient is the outer
product of its error and its input (and the error itself for the bias)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Network:
    """A fully connected softmax classifier; `widths` are features, hidden units (if any) and classes.

    >>> Network((64, 10)).parameters
    650
    """

    widths: tuple[int, ...]
    activation: str = "relu"

    @property
    def parameters(self) -> int:
        return sum(a * b + b for a, b in zip(self.widths, self.widths[1:], strict=False))

    def layers(self, flat: Array) -> list[tuple[Array, Array]]:
        """Views of the flat vector: (weights of shape outputs × inputs, biases) of each layer."""
        views, at = [], 0
        for inputs, outputs in zip(self.widths, self.widths[1:], strict=False):
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

    def clipped_gradient_sum(self, flat: Array, x: Array, y: Labels, clip_norm: float) -> Array:
        """Sum over records of the cross-entropy gradient, each scaled down to norm `clip_norm` at most."""
        total = np.zeros_like(flat)
        if len(x) == 0:
            return total
        values = self._forward(flat, x)
        error = _softmax(values[-1])
        error[np.arange(len(y)), y] -= 1
        errors = [error]
        for (weights, _), value in zip(reversed(self.layers(flat)[1:]), reversed(values[1:-1]), strict=True):
            slope = 1 - value * value if self.activation == "tanh" else value > 0
            errors.append((errors[-1] @ weights) * slope)
        errors.reverse()
        squares = sum(
            (np.einsum("ij,ij->i", value, value) + 1) * np.einsum("ij,ij->i", error, error)
            for value, error in zip(values, errors, strict=False)
        )
        scale = np.minimum(1, clip_norm / np.maximum(np.sqrt(squares), np.finfo(flat.dtype).tiny))
        for (weights, biases), value, error in zip(self.layers(total), values, errors, strict=False):
            scaled = error * scale[:, None]
            np.matmul(scaled.T, value, out=weights)
            scaled.sum(axis=0, out=biases)
        return total


def _softmax(logits: Array) -> Array:
    shifted: Array = np.exp(logits - logits.max(axis=1, keepdims=True))
    shifted /= shifted.sum(axis=1, keepdims=True)
    return shifted
