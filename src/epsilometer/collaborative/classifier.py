"""Updates with and without a property, told apart: what is looked at in an update, and a straight line through it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.errors import InvalidInput
from epsilometer.training import Array, Network

_SHRINKAGE = 0.1  # of correlations: rehearsals are few beside what is looked at


def update_features(network: Network, update: Array, direction: Floats) -> Floats:
    """What is looked at in an update: how much of it belongs to each input of each layer, and to which side.

    Norms over units show inputs that no record of the batch has, where the gradient is 0, but noise drowns them first.
    Along the `direction` in which the first layer's units move most (errors of one record move them alike), noise of
    all other directions is out of the way, and signs are kept.
    """
    layers = [weights for weights, _ in network.layers(update)]
    along = direction @ layers[0]
    return np.concatenate([*(np.sqrt(np.sum(weights**2, axis=0)) for weights in layers), along, np.abs(along)])


def common_direction(network: Network, updates: Sequence[Array], before: Floats | None) -> Floats:
    """The direction, among the first layer's units, in which updates are largest; as the one `before` points."""
    firsts = [network.layers(one)[0][0] for one in updates]
    found: Floats = np.linalg.eigh(sum(one @ one.T for one in firsts))[1][:, -1]
    return -found if before is not None and found @ before < 0 else found


@dataclass(frozen=True, eq=False)
class UpdateClassifier:
    """A score for an update's features: higher means that the property is there (Fisher's linear discriminant)."""

    direction: Floats

    @classmethod
    def fitted(cls, without: Floats, having: Floats) -> UpdateClassifier:
        """From rehearsals, a row each: (Σ + λ)⁻¹(μ₁ − μ₀), features scaled to a variance of 1."""
        if min(len(without), len(having)) < 2 or without.shape[1:] != having.shape[1:]:
            shapes = f"shapes {without.shape} and {having.shape}"
            raise InvalidInput("without, having", shapes, "two rows or more of each, of features of one network")
        centred = np.concatenate([without - without.mean(axis=0), having - having.mean(axis=0)])
        scale = np.sqrt(np.mean(centred**2, axis=0))
        scale[scale == 0] = 1.0  # an input that nobody has
        covariance = (centred / scale).T @ (centred / scale) / len(centred)
        covariance += _SHRINKAGE * np.eye(len(scale))
        gap = (having.mean(axis=0) - without.mean(axis=0)) / scale
        return cls(np.linalg.solve(covariance, gap) / scale)

    def scores(self, features: Floats) -> Floats:
        found: Floats = features @ self.direction
        return found
