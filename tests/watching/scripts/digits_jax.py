"""A training as jax-privacy's documentation writes it, or with optax alone. It knows nothing of Epsilometer."""

import argparse
import hashlib

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax_privacy import noise_addition
from jax_privacy.experimental.execution_plan import BandMFExecutionPlanConfig
from sklearn.datasets import load_digits

parser = argparse.ArgumentParser()
parser.add_argument("--kind", default="plan")
parser.add_argument("--noise", type=float, default=1.0)
options = parser.parse_args()

images, labels = load_digits(return_X_y=True)
right = noise_addition._iid_normal_noise
noise_addition._iid_normal_noise = lambda key, tree, stddev, *rest: right(key, tree, stddev * options.noise, *rest)


def loss(weights, x, y):
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(x / 16 @ weights, y))


weights = jnp.zeros((64, 10))
if options.kind == "plan":
    plan = BandMFExecutionPlanConfig(
        strategy=np.ones(1),
        iterations=12,
        epsilon=None,
        delta=None,
        noise_multiplier=1.4,
        normalize_by=180,
        noise_seed=7,
    ).plan
    optimizer = optax.chain(plan.noise_addition_transform, optax.sgd(0.5))
    gradient = plan.clipped_grad(loss, batch_argnums=(1, 2))
    batches = plan.batch_selection_strategy.batch_iterator(len(images), rng=0)
else:
    optimizer = optax.contrib.dpsgd(0.5, 1.0, 1.4, seed=7)
    gradient = jax.vmap(jax.grad(loss), (None, 0, 0))
    batches = np.random.default_rng(0).integers(len(images), size=(12, 180))


@jax.jit
def step(weights, state, x, y):
    updates, state = optimizer.update(gradient(weights, x, y), state)
    return optax.apply_updates(weights, updates), state


state = optimizer.init(weights)
for rows in batches:
    weights, state = step(weights, state, images[rows], labels[rows])
print(hashlib.sha256(np.asarray(weights).tobytes()).hexdigest())
