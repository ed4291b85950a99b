"""DP-SGD with optax on digits; one line has it audited while it runs: python jax_training.py"""

import secrets

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits

from epsilometer.jax import watch

images, labels = load_digits(return_X_y=True)
private = optax.contrib.differentially_private_aggregate(1.0, noise_multiplier=1.4, key=secrets.randbits(32))
private = watch(private, noise_multiplier=1.4, clip_norm=1.0)  # the line that is new
optimizer = optax.chain(private, optax.sgd(0.5))


@jax.jit
def step(weights, state, x, y):
    loss = lambda w, x, y: optax.softmax_cross_entropy_with_integer_labels(x / 16 @ w, y)  # noqa: E731
    updates, state = optimizer.update(jax.vmap(jax.grad(loss), (None, 0, 0))(weights, x, y), state)
    return optax.apply_updates(weights, updates), state


weights = jnp.zeros((64, 10))
state, draw = optimizer.init(weights), np.random.default_rng()
for rows in (draw.choice(len(images), 128, replace=False) for _ in range(100)):
    weights, state = step(weights, state, images[rows], labels[rows])
print("accuracy", float(jnp.mean((images @ weights).argmax(1) == labels)))
