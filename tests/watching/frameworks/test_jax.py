"""Watching JAX changes nothing, accuses nobody who adds the stated noise, and sees who does not."""

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jax_privacy
import numpy as np
import optax
import pytest
from jax_privacy.experimental.execution_plan import BandMFExecutionPlanConfig
from jax_privacy.noise_addition import gaussian_privatizer

from epsilometer.errors import InvalidInput
from epsilometer.jax import watch
from epsilometer.watching.judging import Judging

pytestmark = pytest.mark.filterwarnings("ignore")
SIGMA, CLIP, STEPS = 1.4, 2.0, 10
PARAMS = {"w": jnp.zeros((3, 4)), "b": jnp.zeros(4)}
EXAMPLES = Path(__file__).parents[3] / "examples"
SCRIPT = Path(__file__).parents[1] / "scripts" / "digits_jax.py"
STATED = {"noise_multiplier": SIGMA, "clip_norm": CLIP, "seed": 0, "quiet": True}


def random_like(shape: tuple[int, ...]) -> jax.Array:
    return jnp.asarray(np.random.default_rng(0).normal(size=shape), jnp.float32)


SUMS = jax.tree.map(lambda one: random_like(one.shape), PARAMS)
RECORDS = jax.tree.map(lambda one: random_like((7, *one.shape)), PARAMS)


def aggregate(noise: float, seed: int) -> Any:
    return optax.contrib.differentially_private_aggregate(CLIP, noise, jax.random.key(seed))


def gaussian(noise: float, seed: int) -> Any:
    return gaussian_privatizer(stddev=noise * CLIP, prng_key=seed)


def plan(noise: float, seed: int, bands: int = 1) -> Any:
    """Divided by 10 and rescaled: one record has .1 at most."""
    return BandMFExecutionPlanConfig(
        iterations=100, strategy=np.array([1.0, 0.5, 0.25][:bands]), epsilon=None, delta=None, noise_multiplier=noise,
        l2_clip_norm=CLIP, normalize_by=10.0, noise_seed=seed,
    ).plan  # fmt: skip


def planned(noise: float, seed: int, bands: int = 1) -> Any:
    return plan(noise, seed, bands).noise_addition_transform


def watched_plan(given: Any) -> Any:
    return watch(given, noise_multiplier=SIGMA, seed=0, quiet=True).noise_addition_transform


KINDS: dict[str, tuple[Callable[..., Any], Callable[..., Any], Any]] = {
    "optax": (aggregate, lambda *made: watch(aggregate(*made), **STATED), RECORDS),
    "gaussian": (gaussian, lambda *made: watch(gaussian(*made), **STATED), SUMS),
    "plan": (planned, lambda *made: watched_plan(plan(*made)), SUMS),
}


def train(transformation: Any, updates: Any, steps: int = STEPS, jit: bool = True) -> tuple[list[Any], Any]:
    """Outputs of all steps, and the last state in numbers."""
    update = jax.jit(transformation.update) if jit else transformation.update
    state, outputs = transformation.init(PARAMS), []
    for _ in range(steps):
        output, state = update(updates, state)
        outputs.append(output)
    keys = [one for one in jax.tree.leaves(state) if jnp.issubdtype(one.dtype, jax.dtypes.prng_key)]
    return outputs, (jax.tree.structure(state), [jax.random.key_data(key) for key in keys])


def train_at_once(transformation: Any, updates: Any, steps: int) -> None:
    """The whole loop is compiled."""

    def step(state: Any, _: Any) -> tuple[Any, Any]:
        output, state = transformation.update(updates, state)
        return state, output

    jax.jit(lambda state: jax.lax.scan(step, state, length=steps))(transformation.init(PARAMS))


def only(transformation: Any) -> Any:
    transformation.audit.finish()
    (training,) = transformation.audit.trainings
    return training


def failed(transformation: Any) -> list[str]:
    return [check.name for check in only(transformation).checks if check.status == "failed"]


@pytest.mark.parametrize(
    ("kind", "jit"), [("optax", True), ("optax", False), ("gaussian", True), ("gaussian", False), ("plan", True)]
)
def test_the_training_is_the_same_bit_for_bit(kind: str, jit: bool) -> None:
    make, watched, updates = KINDS[kind]
    with_canaries = watched(SIGMA, 3)
    np.random.seed(1)  # noqa: NPY002
    outputs, state = train(make(SIGMA, 3), updates, 3, jit)
    drawn = np.random.rand()  # noqa: NPY002
    np.random.seed(1)  # noqa: NPY002
    seen, kept = train(with_canaries, updates, 3, jit)
    assert np.random.rand() == drawn  # noqa: NPY002
    assert jax.tree.all(jax.tree.map(np.array_equal, outputs, seen))
    assert state[0] == kept[0]
    assert jax.tree.all(jax.tree.map(np.array_equal, state[1], kept[1]))
    training = only(with_canaries)
    assert training.process.steps == 3
    assert training.not_audited == ""
    assert not training.faults


@pytest.mark.parametrize("kind", KINDS)
def test_half_of_the_noise_is_refuted_and_the_stated_is_not(kind: str) -> None:
    _, watched, updates = KINDS[kind]
    half = watched(SIGMA / 2, 1)
    train(half, updates)
    assert half.audit.verdict.outcome.value == "violated"
    assert only(half).noise_factor() < 1
    right = watched(SIGMA, 1)
    train_at_once(right, updates, 60)
    assert only(right).process.steps == 60
    verdict = right.audit.verdict
    assert verdict.outcome.value == "inconclusive"  # nothing here sees how batches are drawn, or what is accounted
    assert all(f"--assume {name}" in verdict.reason for name in ("sampling", "accounting"))
    training = only(right)
    training.judging = Judging(assume=("clipping", "sampling", "accounting"))
    assert training.verdict().outcome.value == "consistent"
    assert "assumed by whoever runs the audit: clipping, sampling, accounting" in training.verdict().reason
    assert 1 < only(right).noise_factor() < 1.2


def test_a_few_seeds_are_not_accused() -> None:
    """Each with probability .05 at most, by far less in fact; with half of the noise all are."""
    for noise, expected in ((SIGMA, 0), (SIGMA / 2, 12)):
        watched = watch(gaussian(noise, 0), **STATED)
        update = jax.jit(watched.update)
        for seed in range(1, 13):
            watched.init(PARAMS)
            state = jax.random.key(seed), ()
            for _ in range(STEPS):
                _, state = update(SUMS, state)
        assert sum(one.process.refuted for one in watched.audit.trainings) == expected


@pytest.mark.full
def test_correlated_noise_has_the_stated_noise_in_every_step() -> None:
    """Given the past, a step has at least the stated noise: other steps' noise only comes on top."""
    right, little = (watched_plan(plan(noise, 2, 3)) for noise in (SIGMA, SIGMA * 0.4))
    for watched in (right, little):
        train_at_once(watched, SUMS, 40)
    assert not only(right).process.refuted
    assert only(little).process.refuted
    outputs, _ = train(watched_plan(plan(SIGMA, 2, 3)), SUMS)
    assert jax.tree.all(jax.tree.map(np.array_equal, outputs, train(planned(SIGMA, 2, 3), SUMS)[0]))


def test_clipping_is_under_test(monkeypatch: pytest.MonkeyPatch) -> None:
    double = partial(jax_privacy.clipped_grad, l2_clip_norm=2 * CLIP)
    for clip, expected in ((double, True), (partial(jax_privacy.clipped_grad, l2_clip_norm=CLIP), False)):
        watched = watch(gaussian(SIGMA, 0), clipped_grad=clip, **STATED)
        train(watched, SUMS)
        assert only(watched).process.refuted is expected

    def unclipped(rows: Any, norm: float) -> Any:
        return [row.sum(0) for row in rows], 0

    monkeypatch.setattr("optax.transforms.per_example_global_norm_clip", unclipped)
    watched = watch(aggregate(SIGMA, 0), **STATED)
    train(watched, RECORDS, 3)
    assert only(watched).process.refuted_at in (1, 2)


def test_what_a_transformation_was_made_with() -> None:
    assert (made := only(watch(aggregate(SIGMA, 0), quiet=True)).made).noise_multiplier == pytest.approx(SIGMA)
    assert (made.clip_norm, made.optimizer) == (CLIP, "optax differentially_private_aggregate")
    made = only(watch(gaussian(SIGMA, 0), clip_norm=CLIP, quiet=True)).made
    assert made.noise_multiplier == pytest.approx(SIGMA)
    made = only(watch(plan(SIGMA, 0), quiet=True).noise_addition_transform).made
    assert (made.noise_multiplier, made.clip_norm) == (SIGMA, pytest.approx(0.1))
    with pytest.raises(InvalidInput, match=r"clip_norm.*say it"):
        watch(gaussian(SIGMA, 0), noise_multiplier=SIGMA)
    with pytest.raises(InvalidInput, match=r"noise_multiplier"):
        watch(optax.sgd(0.1), clip_norm=CLIP)
    with pytest.raises(InvalidInput, match=r"an optax\.GradientTransformation"):
        watch("sgd", **STATED)  # type: ignore[arg-type]


def test_a_chain_is_watched_too() -> None:
    chain = optax.chain(aggregate(SIGMA / 2, 0), optax.scale_by_learning_rate(0.1))
    train(watched := watch(chain, **STATED), RECORDS)
    assert only(watched).process.refuted
    assert only(watched).noise_factor() < 1


def test_faults_that_need_no_statistics() -> None:
    with pytest.warns(UserWarning, match="key"):
        by_default = optax.contrib.differentially_private_aggregate(CLIP, SIGMA)
    watched = watch(by_default, **STATED)
    state = watched.init(PARAMS)
    for rows in (5, 6):
        _, state = watched.update(jax.tree.map(lambda one, rows=rows: one[:rows], RECORDS), state)
    assert failed(watched) == ["fresh-noise", "size-dependence"]

    watched = watch(gaussian(SIGMA, 1), **STATED)
    state, update = watched.init(PARAMS), jax.jit(watched.update)
    for _ in range(3):
        update(SUMS, state)  # the new state is thrown away
    assert watched.audit.verdict.refuted == "the stated mechanism: noise"  # before the end, too
    update(SUMS, state)
    assert "3 of 4 steps had a random key of a step before" in watched.audit.verdict.reason
    assert failed(watched) == ["independent-steps"]


def test_noise_of_leaves_and_of_steps_that_are_counted() -> None:
    def noisy(one_key: bool) -> Any:
        def update(updates: Any, state: Any, params: Any = None) -> Any:
            key, count = state
            leaves, structure = jax.tree.flatten(updates)
            here = jax.random.fold_in(key, count)
            keys = [here] * len(leaves) if one_key else jax.random.split(here, len(leaves))
            noise = [SIGMA * CLIP * jax.random.normal(k, x.shape) for k, x in zip(keys, leaves, strict=True)]
            added = [x + z for x, z in zip(leaves, noise, strict=True)]
            return jax.tree.unflatten(structure, added), (key, count + 1)

        return optax.GradientTransformation(lambda _: (jax.random.PRNGKey(1), jnp.array(0)), update)

    for one_key, expected in ((True, ["independent-leaves"]), (False, [])):
        train(watched := watch(noisy(one_key), **STATED), SUMS, 3)
        assert failed(watched) == expected


def noisy_but_biases(frozen: bool) -> Any:
    """Noise for all leaves but those of four numbers, which go as they are, or nowhere."""

    def update(updates: Any, key: Any, params: Any = None) -> Any:
        leaves, structure = jax.tree.flatten(updates)
        key, *keys = jax.random.split(key, len(leaves) + 1)
        made = [
            x * (not frozen) if x.size == 4 else x + SIGMA * CLIP * jax.random.normal(k, x.shape)
            for k, x in zip(keys, leaves, strict=True)
        ]
        return jax.tree.unflatten(structure, made), key

    return optax.GradientTransformation(lambda _: jax.random.key(1), update)


@pytest.mark.parametrize("jit", [True, False])
def test_a_leaf_without_noise(jit: bool) -> None:
    train(watched := watch(noisy_but_biases(frozen=False), **STATED), SUMS, 3, jit)
    (check,) = [one for one in only(watched).checks if one.name == "leaf-noise"]
    assert (check.status, check.statement, check.basis) == ("failed", "noise", "counterexample"), check
    assert check.reason.startswith("what comes into b goes out without noise")
    for right in (noisy_but_biases(frozen=True), gaussian(SIGMA, 1)):
        train(watched := watch(right, **STATED), SUMS, 3, jit)
        assert "leaf-noise" not in failed(watched)


@pytest.mark.parametrize("kind", KINDS)
def test_leaves_of_all_kinds_are_looked_at(kind: str) -> None:
    _, watched, updates = KINDS[kind]
    train(made := watched(SIGMA, 1), updates, 3)
    (check,) = [one for one in only(made).checks if one.name == "leaf-noise"]
    assert (check.status, check.reason) == ("passed", "2 leaves")


def test_a_new_state_in_every_step() -> None:
    """Each would be a training of one step, with nothing to compare."""
    watched = watch(gaussian(SIGMA, 1), **STATED)
    update = jax.jit(watched.update)
    for _ in range(6):
        update(SUMS, watched.init(PARAMS))
    watched.audit.finish()
    (check,) = [one for one in watched.audit.trainings[-1].checks if one.name == "independent-steps"]
    assert check.reason.startswith("init was called again before every step")
    assert (check.status, check.basis) == ("failed", "counterexample")

    warm = watch(gaussian(SIGMA, 1), **STATED)
    update = jax.jit(warm.update)
    update(SUMS, warm.init(PARAMS))  # to compile it
    train(warm, SUMS, 4)
    assert not any(one.faults for one in warm.audit.trainings)


def test_a_new_state_is_a_new_training_and_what_cannot_be_watched_goes_on() -> None:
    watched = watch(gaussian(SIGMA, 1), **STATED)
    for _ in range(2):
        train(watched, SUMS, 3)
    watched.audit.finish()
    assert [one.process.steps for one in watched.audit.trainings] == [3, 3]
    assert not any(one.faults for one in watched.audit.trainings)

    twice = jax.tree.map(lambda one: jnp.stack([one, one]), SUMS)
    watched, plain = watch(gaussian(SIGMA, 1), **STATED), gaussian(SIGMA, 1)
    seen, without = (
        jax.vmap(lambda u, one=one: one.update(u, (jax.random.key(3), ()))[0])(twice) for one in (watched, plain)
    )
    assert jax.tree.all(jax.tree.map(np.array_equal, seen, without))


def run(*command: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "ignore", *map(str, command)], capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.full
def test_the_example_says_its_verdict_at_the_end() -> None:
    done = run(EXAMPLES / "jax_training.py")
    assert done.returncode == 0, done.stderr
    assert "100 steps do not refute the stated noise" in done.stderr


@pytest.mark.full
@pytest.mark.parametrize(("kind", "noise"), [("plan", 0.5), pytest.param("optax", 1.0, marks=pytest.mark.full)])
def test_a_script_that_nobody_changed(kind: str, noise: float) -> None:
    command = [SCRIPT, "--kind", kind, "--noise", noise]
    settings = ["--seed", 0, "--require", "not-violated", "--", sys.executable, "-W", "ignore"]
    without, seen = run(*command), run("-m", "epsilometer", "watch", *settings, *command)
    assert without.stdout == seen.stdout != ""
    faulty = noise < 1
    assert seen.returncode == faulty, seen.stderr
    assert ("noise is broken at step" if faulty else "12 steps do not refute") in seen.stderr
