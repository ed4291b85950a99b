"""Gradient inversion of a single record: a fully connected first layer with a bias gives its input away.

The gradient of a record's loss by the weights of unit i is δᵢ·x, and by its bias δᵢ: their ratio is the record,
whatever network, loss and label follow (Phong et al. 2018). Clipping scales both alike, so that it hides nothing;
only noise does.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.errors import InvalidInput
from epsilometer.training import Network


def invert_layer(weights: ArrayLike, biases: ArrayLike) -> Floats:
    """The input of a fully connected layer, from the gradient of one record's loss by its weights and biases.

    Weights are units × inputs. All units are used at once, each as much as its bias says of it: Σ bᵢWᵢ / Σ bᵢ². Without
    noise that is exact; with noise it is drawn towards 0, since the biases have noise as well.

    >>> invert_layer([[2.0, 4.0], [0.0, 0.0], [-1.0, -2.0]], [2.0, 0.0, -1.0]).tolist()
    [1.0, 2.0]
    """
    rows, shares = np.asarray(weights, np.float64), np.asarray(biases, np.float64)
    if rows.ndim != 2 or shares.shape != rows.shape[:1]:
        shapes = f"shapes {rows.shape} and {shares.shape}"
        raise InvalidInput("weights, biases", shapes, "a matrix of units × inputs, and a number a unit")
    power = float(shares @ shares)
    if not 0 < power < math.inf:
        expected = "a gradient in which some unit's bias has a share"
        raise InvalidInput("biases", f"norm {math.sqrt(power):g}", expected, "the record moved no unit: take another")
    found: Floats = shares @ rows / power
    return found


def invert_gradient(network: Network, gradient: ArrayLike) -> Floats:
    """The record behind a gradient of the whole network, as one flat vector, from a batch of one."""
    flat = np.asarray(gradient, np.float64)
    if flat.shape != (network.parameters,):
        raise InvalidInput("gradient", f"shape {flat.shape}", f"the {network.parameters} numbers of this network")
    return invert_layer(*network.layers(flat)[0])


def released_gradient(
    network: Network,
    parameters: ArrayLike,
    x: ArrayLike,
    y: int,
    *,
    clip_norm: float = math.inf,
    noise_multiplier: float = 0.0,
    rng: np.random.Generator | None = None,
) -> Floats:
    """What DP-SGD releases in a step whose batch is one record: its gradient, clipped, with noise of σ·C."""
    validate.real("clip_norm", clip_norm, above=0, closed="]", remedy="inf means no clipping")
    validate.real("noise_multiplier", noise_multiplier, above=0, closed="[")
    flat, record = np.asarray(parameters, np.float64), np.asarray(x, np.float64)[None]
    gradient: Floats = network.clipped_gradient_sum(flat, record, np.array([y]), clip_norm).astype(np.float64)
    if noise_multiplier:
        if math.isinf(clip_norm) or rng is None:
            given = "clip_norm" if math.isinf(clip_norm) else "rng"
            raise InvalidInput(given, clip_norm if rng else None, "one, as there is noise", "DP-SGD's noise is σ·C")
        gradient += noise_multiplier * clip_norm * rng.standard_normal(len(gradient))
    return gradient
