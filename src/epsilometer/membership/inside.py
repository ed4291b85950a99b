"""What is read off the layers of a network whose parameters are seen (Nasr et al. 2019).

A record's gradient by a layer is the outer product of the layer's error and its input. The hidden units of two
networks have nothing to do with each other, so an attack model that learned from references could make nothing of
gradients and outputs unit by unit. What is kept are numbers that stay the same however hidden units are numbered:
norms, shapes, lengths in the measure of all records' gradients, and projections on directions that every network has
(its own weights, the mean gradient of all records, the centres of classes).
"""

from __future__ import annotations

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.training import Array, Labels, Network

_OF_GRADIENT = ("gradient", "error_length", "error_evenness", "along_weights", "along_mean")
_OF_HIDDEN = ("activation", "activation_length", "activation_evenness", "to_own_centre", "to_next_centre")
_RIDGE = 1e-3  # of the mean eigenvalue: directions that hardly occur have no length of their own
_TINY = 1e-12


def white_box_names(layers: int) -> tuple[str, ...]:
    """The signals of `white_box`: those of each layer's gradient, and then those of each hidden layer's outputs."""
    gradients = [f"{name}_{layer}" for layer in range(1, layers + 1) for name in _OF_GRADIENT]
    return (*gradients, *(f"{name}_{layer}" for layer in range(1, layers) for name in _OF_HIDDEN))


def white_box(network: Network, parameters: Array, x: Array, y: Labels) -> Floats:
    """A row of signals for each record.

    Of each layer's gradient: its norm (ln); the length of its error where all records' errors have unit spread in
    every direction (ln); how even the error is over units; its cosines with the layer's weights and with the mean
    gradient of all records. Of hidden outputs: norm and length (ln), evenness, and distances to the centre of the
    record's class and to the nearest other one (ln). The two lengths of a layer multiply to that of the gradient in the
    Fisher metric, as K-FAC factors it (Martens & Grosse 2015). Who asks knows all records, and not who was in.
    """
    values, errors = (
        [part.astype(np.float64) for part in parts]
        for parts in network.record_parts(parameters, x.astype(parameters.dtype), y)
    )
    found: list[Floats] = []
    for (weights, biases), value, error in zip(network.layers(parameters), values, errors, strict=False):
        wide = _with_ones(value)
        norm = _norms(wide) * _norms(error)
        found += [
            _log(norm),
            _log(_lengths(error)),
            _evenness(error),
            _along(np.column_stack([weights, biases]), wide, error, norm),
            _along(error.T @ wide, wide, error, norm),
        ]
    for value in values[1:-1]:
        own, other = _distances(value, y)
        found += [_log(_norms(value)), _log(_lengths(_with_ones(value))), _evenness(value), _log(own), _log(other)]
    return np.column_stack(found)


def _with_ones(rows: Floats) -> Floats:
    """With the input of the biases."""
    return np.column_stack([rows, np.ones(len(rows))])


def _norms(rows: Floats) -> Floats:
    norms: Floats = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return norms


def _log(values: Floats) -> Floats:
    return np.log(values + _TINY)


def _evenness(rows: Floats) -> Floats:
    """‖·‖₁/‖·‖₂ as a share of its largest: 1 for a row of equal sizes."""
    shares: Floats = np.abs(rows).sum(axis=1) / (np.sqrt(rows.shape[1]) * _norms(rows) + _TINY)
    return shares


def _lengths(rows: Floats) -> Floats:
    """Of each row r, √(rᵀM⁻¹r) with M the mean of all rᵀr and a little of the identity."""
    second = rows.T @ rows / len(rows)
    width = len(second)
    second += (_RIDGE * np.trace(second) / width + _TINY) * np.eye(width)
    return _norms(rows @ np.linalg.inv(np.linalg.cholesky(second)).T)


def _along(direction: Floats, wide: Floats, error: Floats, norm: Floats) -> Floats:
    """The cosine of each record's gradient and a direction, without forming gradients."""
    products = np.einsum("ij,ij->i", error, wide @ direction.T)
    cosines: Floats = products / (norm * np.linalg.norm(direction) + _TINY)
    return cosines


def _distances(rows: Floats, y: Labels) -> tuple[Floats, Floats]:
    """To the centre of a record's own class, and to the nearest of the others (the same, if there is no other)."""
    labels, places = np.unique(y, return_inverse=True)
    centres = np.array([rows[y == label].mean(axis=0) for label in labels])
    squares = (rows**2).sum(axis=1)[:, None] - 2.0 * rows @ centres.T + (centres**2).sum(axis=1)
    distances = np.sqrt(np.maximum(squares, 0.0))
    own = distances[np.arange(len(rows)), places]
    if len(labels) == 1:
        return own, own
    distances[np.arange(len(rows)), places] = np.inf
    return own, distances.min(axis=1)
