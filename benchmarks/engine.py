"""The trial engine side by side with peers: milliseconds a step, one thread, interleaved in one run.

Made data of FMNIST's shape (6000 × 784, two classes), Poisson batches of 250 on average, so that it runs anywhere.
Every contender does DP-SGD: sample, per-example clipping to norm 1, noise, step. Compiled ones are warmed up first.
"""

from __future__ import annotations

import os

os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import argparse
import platform
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from importlib import metadata
from itertools import chain, islice, pairwise, repeat
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import torch
from opacus import PrivacyEngine
from torch import nn

from epsilometer import Recipe
from epsilometer.data import Dataset
from epsilometer.training import train
from epsilometer.training.modules import small_cnn

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
N, FEATURES, CLASSES, BATCH, SIGMA, RATE = 6000, 784, 2, 250, 1.01, 0.15
Q = BATCH / N
PAD = 320  # JAX needs one shape: a Poisson batch of 250 is larger with probability 1e-5
Run = Callable[[int], None]  # takes that many steps

RNG = np.random.default_rng(0)
X = RNG.random((N, FEATURES)).astype(np.float32)
Y = RNG.integers(0, CLASSES, N)


def engine(hidden: tuple[int, ...]) -> Run:
    data = Dataset("made", X, Y, CLASSES)

    def run(steps: int) -> None:
        shape = {"model": "mlp", "hidden": hidden} if hidden else {"model": "logistic"}
        recipe = Recipe(records=N, sample_rate=Q, steps=steps, noise_multiplier=SIGMA, learning_rate=RATE, **shape)  # type: ignore[arg-type]
        train(recipe, data, np.random.SeedSequence(1))

    return run


def module(hidden: tuple[int, ...]) -> nn.Sequential:
    widths, layers = (FEATURES, *hidden, CLASSES), []
    for a, b in pairwise(widths):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def opacus(net: nn.Module, mode: str, *, own_loader: bool = False) -> Run:
    """Opacus as its users run it (`own_loader`), or with batches by index, which spares it its loader's time."""
    x, y = torch.from_numpy(X), torch.from_numpy(Y)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=BATCH)
    criterion = nn.CrossEntropyLoss()
    made = PrivacyEngine().make_private(
        module=net, optimizer=torch.optim.SGD(net.parameters(), RATE), data_loader=loader, criterion=criterion,
        noise_multiplier=SIGMA, max_grad_norm=1.0, grad_sample_mode=mode, poisson_sampling=True,
    )  # fmt: skip
    net, optimizer, loader = made[0], made[1], made[-1]
    criterion = made[2] if mode == "ghost" else criterion

    def by_index() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        while True:
            rows = torch.nonzero(torch.rand(N) < Q).squeeze(1)
            yield x[rows], y[rows]

    batches = chain.from_iterable(repeat(loader)) if own_loader else by_index()

    def run(steps: int) -> None:
        for records, labels in islice(batches, steps):
            optimizer.zero_grad()
            criterion(net(records), labels).backward()
            optimizer.step()

    return run


def plain_torch(hidden: tuple[int, ...]) -> Run:
    """A careful torch loop with the norm trick, as one writes it without a compiler."""
    x, y = torch.from_numpy(X), torch.from_numpy(Y)
    squares = (x * x).sum(1)
    layers = [(m.weight.detach(), m.bias.detach()) for m in module(hidden) if isinstance(m, nn.Linear)]

    def run(steps: int) -> None:
        with torch.no_grad():
            for _ in range(steps):
                rows = torch.nonzero(torch.rand(N) < Q).squeeze(1)
                values = [x[rows]]
                for w, b in layers[:-1]:
                    values.append(torch.relu(torch.addmm(b, values[-1], w.T)))
                error = torch.softmax(torch.addmm(layers[-1][1], values[-1], layers[-1][0].T), 1)
                error[torch.arange(len(rows)), y[rows]] -= 1
                errors = [error]
                for (w, _), value in zip(reversed(layers[1:]), reversed(values[1:]), strict=True):
                    errors.insert(0, (errors[0] @ w) * (value > 0))
                inner = [squares[rows], *((v * v).sum(1) for v in values[1:])]
                norms = sum((a + 1) * (e * e).sum(1) for a, e in zip(inner, errors, strict=True)).sqrt()
                scale = (1.0 / norms).clamp(max=1.0)[:, None]
                for (w, b), value, e in zip(layers, values, errors, strict=True):
                    clipped = e * scale
                    w.sub_(RATE / BATCH * (clipped.T @ value + SIGMA * torch.randn_like(w)))
                    b.sub_(RATE / BATCH * (clipped.sum(0) + SIGMA * torch.randn_like(b)))

    return run


def jax_start(hidden: tuple[int, ...]) -> list[tuple[jax.Array, jax.Array]]:
    return [(jnp.asarray(m.weight.detach().numpy()), jnp.asarray(m.bias.detach().numpy()))
            for m in module(hidden) if isinstance(m, nn.Linear)]  # fmt: skip


def jax_loop(step: Callable, hidden: tuple[int, ...]) -> Run:
    """A jitted scan over steps: no Python between them."""
    x, y = jnp.asarray(X), jnp.asarray(Y)
    start = jax_start(hidden)

    def body(carry, key):
        a, b = jax.random.split(key)
        chosen = jax.random.uniform(a, (N,)) < Q
        rows = jnp.nonzero(chosen, size=PAD, fill_value=N)[0]
        mask = rows < N
        rows = jnp.where(mask, rows, 0)
        sums = step(carry, x[rows], y[rows], mask)
        leaves, shape = jax.tree.flatten(sums)
        keys = jax.random.split(b, len(leaves))
        noisy = [g + SIGMA * jax.random.normal(k, g.shape) for g, k in zip(leaves, keys, strict=True)]
        update = jax.tree.unflatten(shape, noisy)
        return jax.tree.map(lambda p, g: p - RATE / BATCH * g, carry, update), None

    @jax.jit
    def many(keys):
        return jax.lax.scan(body, start, keys)[0]

    def run(steps: int) -> None:
        jax.block_until_ready(many(jax.random.split(jax.random.key(0), steps)))

    return run


def jax_vmap(hidden: tuple[int, ...]) -> Run:
    def loss(layers, x, y):
        for w, b in layers[:-1]:
            x = jax.nn.relu(w @ x + b)
        return -jax.nn.log_softmax(layers[-1][0] @ x + layers[-1][1])[y]

    def step(layers, x, y, mask):
        gradients = jax.vmap(jax.grad(loss), (None, 0, 0))(layers, x, y)
        norms = jnp.sqrt(sum(jnp.sum(g.reshape(len(x), -1) ** 2, 1) for g in jax.tree.leaves(gradients)))
        scale = jnp.minimum(1.0, 1.0 / norms) * mask
        return jax.tree.map(lambda g: jnp.tensordot(scale, g, 1), gradients)

    return jax_loop(step, hidden)


def jax_by_hand(hidden: tuple[int, ...]) -> Run:
    """The norm trick, written out."""

    def step(layers, x, y, mask):
        values = [x]
        for w, b in layers[:-1]:
            values.append(jax.nn.relu(values[-1] @ w.T + b))
        error = jax.nn.softmax(values[-1] @ layers[-1][0].T + layers[-1][1]) - jax.nn.one_hot(y, CLASSES)
        errors = [error]
        for (w, _), value in zip(reversed(layers[1:]), reversed(values[1:]), strict=True):
            errors.insert(0, (errors[0] @ w) * (value > 0))
        squares = sum((jnp.sum(v * v, 1) + 1) * jnp.sum(e * e, 1) for v, e in zip(values, errors, strict=True))
        scale = (jnp.minimum(1.0, jax.lax.rsqrt(squares)) * mask)[:, None]
        return [((e * scale).T @ v, jnp.sum(e * scale, 0)) for v, e in zip(values, errors, strict=True)]

    return jax_loop(step, hidden)


def library_limit(hidden: tuple[int, ...]) -> Run:
    """The calls that no implementation can do without: gather, forward and backward products, normals."""
    x = torch.from_numpy(X)
    widths = (FEATURES, *hidden, CLASSES)
    weights = [torch.randn(b, a) for a, b in pairwise(widths)]
    values = [torch.randn(BATCH, w) for w in widths]
    parameters = sum(w.numel() + w.shape[0] for w in weights)

    def run(steps: int) -> None:
        with torch.no_grad():
            for _ in range(steps):
                batch = x[torch.randint(N, (BATCH,))]
                for i, w in enumerate(weights):
                    (batch if i == 0 else values[i]) @ w.T
                    values[i + 1].T @ (batch if i == 0 else values[i])
                torch.randn(parameters)

    return run


CONTENDERS: dict[str, Callable[[tuple[int, ...]], Run]] = {
    "Opacus hooks, its loader": lambda h: opacus(module(h), "hooks", own_loader=True),
    "Opacus hooks": lambda h: opacus(module(h), "hooks"),
    "Opacus ghost, its loader": lambda h: opacus(module(h), "ghost", own_loader=True),
    "Opacus ghost": lambda h: opacus(module(h), "ghost"),
    "JAX vmap of grad": jax_vmap,
    "JAX by hand": jax_by_hand,
    "plain torch loop": plain_torch,
    "library limit": library_limit,
    "epsilometer": engine,
}
SHAPES = {"784-32-2": (32,), "logistic 784-2": (), "784-64-32-2": (64, 32)}


def engine_cnn(_: object) -> Run:
    data = Dataset("made", X, Y, CLASSES)

    def run(steps: int) -> None:
        recipe = Recipe(records=N, sample_rate=Q, steps=steps, noise_multiplier=SIGMA, learning_rate=RATE, model="cnn")
        train(recipe, data, np.random.SeedSequence(1))

    return run


CNN_CONTENDERS: dict[str, Callable[[object], Run]] = {
    "Opacus hooks, its loader": lambda _: opacus(small_cnn(FEATURES, CLASSES), "hooks", own_loader=True),
    "Opacus hooks": lambda _: opacus(small_cnn(FEATURES, CLASSES), "hooks"),
    "Opacus ghost": lambda _: opacus(small_cnn(FEATURES, CLASSES), "ghost"),
    "epsilometer": engine_cnn,
}


def measure(contenders: dict, shape: object, rounds: int) -> dict[str, float]:
    """Median milliseconds a step; contenders take turns, so that a noisy neighbour hits all of them."""
    runs = {name: make(shape) for name, make in contenders.items()}
    slow = contenders is CNN_CONTENDERS
    steps = {name: 5 if slow else 20 if "Opacus" in name or "vmap" in name else 200 for name in runs}
    for name, run in runs.items():
        run(steps[name])
    seen: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            started = time.perf_counter()
            run(steps[name])
            seen[name].append(1000 * (time.perf_counter() - started) / steps[name])
    return {name: statistics.median(times) for name, times in seen.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", help="one subject")
    parser.add_argument("--write", type=Path, help="a Markdown file for the table")
    options = parser.parse_args()
    subjects = [(name, CONTENDERS, shape) for name, shape in SHAPES.items()] + [("cnn", CNN_CONTENDERS, None)]
    subjects = [subject for subject in subjects if options.only in (None, subject[0])]
    lines = []
    for name, contenders, shape in subjects:
        found = measure(contenders, shape, options.rounds)
        rows = [f"| {who} | {ms:.3f} | {ms / found['epsilometer']:.2f} × |" for who, ms in found.items()]
        table = ["| contender | ms a step | epsilometer is faster by |", "|---|---|---|", *rows]
        lines += [f"## {name}, batches of about {BATCH} of {N}, Poisson", "", *table, ""]
        print("\n".join(lines[-len(table) - 3 :]), flush=True)
    if options.write:
        names = ("torch", "opacus", "jax", "numba", "numpy", "scipy")
        versions = ", ".join(f"{name} {metadata.version(name)}" for name in names)
        head = ["# Trial engine", "", f"`make bench`: one thread, median of {options.rounds} interleaved rounds.", ""]
        foot = [f"{_processor()}, Python {platform.python_version()}, {versions}.", ""]
        options.write.write_text("\n".join([*head, *foot, *lines]).rstrip() + "\n")


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    names = [row.split(":")[1].strip() for row in info.read_text().splitlines() if row.startswith("model name")]
    return names[0] if names else platform.processor()


if __name__ == "__main__":
    main()
