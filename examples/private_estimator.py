"""An estimator of scikit-learn's kind with noise of its own: sums of clipped records, by class."""

import numpy as np


class PrivateSums:
    def fit(self, x, y, noise, rng):
        x = x / np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True))
        sums = np.stack([x[y == label].sum(axis=0) for label in range(2)])
        self.sums_ = sums + noise * rng.normal(size=sums.shape)
        return self

    def decision_function(self, x):
        return x @ (self.sums_[1] - self.sums_[0]) / 900


def train(data, seed, noise=1.0):
    return PrivateSums().fit(data.x, data.y, noise, np.random.default_rng(seed))
