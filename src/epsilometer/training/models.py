"""Fully connected networks over one flat parameter vector, with per-example clipping that never forms
per-example gradients: ‖g‖² = Σ over layers of (‖input‖² + 1)·‖error‖², since a layer's gradient is the outer
product of its error and its input (and the error itself for the bias)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array32 = NDArray[np.float32]
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Network:
    """A fully connected softmax classifier; `widths` are features, hidden units (if any) and classes.

    >>> Network((64, 10)).parameters
    650
    """

    widths: tuple[int, ...]

    @property
    def parameters(self) -> int:
        return sum(a * b + b for a, b in zip(self.widths, self.widths[1:], strict=False))

    def layers(self, flat: NDArray[np.floating]) -> list[tuple[NDArray[np.floating], NDArray[np.floating]]]:
        """Views of the flat vector: (weights of shape outputs × inputs, biases) of each layer."""
        views, at = [], 0
        for inputs, outputs in zip(self.widths, self.widths[1:], strict=False):
            weights = flat[at : at + inputs * outputs].reshape(outputs, inputs)
            at += inputs * outputs
            views.append((weights, flat[at : at + outputs]))
            at += outputs
        return views

    def initial(self, rng: np.random.Generator, scale: float) -> Array32:
        """Glorot normal weights times `scale`; biases are 0."""
        flat = np.zeros(self.parameters, dtype=np.float32)
        for weights, _ in self.layers(flat):
            spread = scale * np.sqrt(2.0 / sum(weights.shape))
            weights[:] = spread * rng.standard_normal(weights.shape)
        return flat

    def logits(self, flat: NDArray[np.floating], x: NDArray[np.floating]) -> NDArray[np.floating]:
        """One row of class scores a record."""
        return self._forward(flat, x)[-1]

    def _forward(self, flat: NDArray[np.floating], x: NDArray[np.floating]) -> list[NDArray[np.floating]]:
        """The input of every layer, and the logits last."""
        values = [x]
        layers = self.layers(flat)
        for weights, biases in layers[:-1]:
            values.append(np.maximum(values[-1] @ weights.T + biases, 0))
        weights, biases = layers[-1]
        values.append(values[-1] @ weights.T + biases)
        return values

    def clipped_gradient_sum(
        self, flat: NDArray[np.floating], x: NDArray[np.floating], y: Labels, clip_norm: float
    ) -> NDArray[np.floating]:
        """Sum over records of the cross-entropy gradient, each scaled down to norm `clip_norm` at most."""
        total = np.zeros_like(flat)
        if len(x) == 0:
            return total
        values = self._forward(flat, x)
        error = _softmax(values[-1])
        error[np.arange(len(y)), y] -= 1
        errors = [error]
        for (weights, _), value in zip(reversed(self.layers(flat)[1:]), reversed(values[1:-1]), strict=True):
            errors.append((errors[-1] @ weights) * (value > 0))
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


def _softmax(logits: NDArray[np.floating]) -> NDArray[np.floating]:
    shifted: NDArray[np.floating] = np.exp(logits - logits.max(axis=1, keepdims=True))
    shifted /= shifted.sum(axis=1, keepdims=True)
    return shifted
