"""Loops that step no optimizer, with the one line that watches them."""

import argparse

import numpy as np
from sklearn.datasets import load_digits

import epsilometer

parser = argparse.ArgumentParser()
parser.add_argument("kind", choices=["numpy", "torch", "jax"])
parser.add_argument("fault", nargs="?", default="right")
parser.add_argument("--steps", type=int, default=30)
options = parser.parse_args()
kind, fault, SIGMA, C, RATE = options.kind, options.fault, 1.0, 1.0, 0.2

rng = np.random.default_rng(0)
X, y = load_digits(return_X_y=True)
X, Y = X[:400] / 16, np.eye(10)[y[:400]]
weights = np.zeros((64, 10))
if kind == "torch":
    import torch

    X, Y, weights = (torch.tensor(one) for one in (X, Y, weights))
if kind == "jax":
    import jax
    import jax.numpy as jnp

    X, Y, weights = (jnp.asarray(one) for one in (X, Y, weights))
    key = jax.random.key(1)


def softmax(scores):
    scores = scores - scores.max()
    powers = np.exp(scores) if kind == "numpy" else scores.exp() if kind == "torch" else jnp.exp(scores)
    return powers / powers.sum()


def noise(step):
    deviation = {"no-noise": 0.0, "half-noise": 0.5}.get(fault, 1.0) * SIGMA * C
    if not deviation:
        return 0.0
    if kind == "torch":
        return torch.randn(weights.shape) * deviation
    if kind == "jax":
        return jax.random.normal(jax.random.fold_in(key, step), weights.shape) * deviation
    return rng.normal(0.0, deviation, weights.shape)


for step in range(options.steps):
    total = weights * 0.0
    for i in np.flatnonzero(rng.random(len(X)) < RATE):
        error = softmax(X[i] @ weights) - Y[i]
        one = X[i][:, None] * error[None, :]
        norm = float((one * one).sum()) ** 0.5
        total = total + one * (1.0 if fault == "no-clipping" else min(1.0, C / (norm + 1e-12)))
    gradient = epsilometer.watch_step((total + noise(step)) / (RATE * len(X)))
    weights = weights - 0.5 * gradient
print(f"{float((weights * weights).sum()):.4f}")
