"""JAX trainings, audited while they run: one line, around what makes gradients private.

    tx = watch(optax.contrib.differentially_private_aggregate(1.0, 1.1, key), noise_multiplier=1.1, clip_norm=1.0)
    privatizer = watch(jax_privacy.noise_addition.gaussian_privatizer(stddev=1.1), noise_multiplier=1.1, clip_norm=1.0)
    plan = watch(config.plan)

What comes back is used in the place of what was given: state, outputs and random numbers are as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeVar

from epsilometer import validate
from epsilometer.errors import InvalidInput
from epsilometer.watching.watch import Watch

__all__ = ["Watch", "watch"]

T = TypeVar("T")


def watch(
    what: T,
    *,
    noise_multiplier: float | None = None,
    clip_norm: float | None = None,
    clipped_grad: Callable[..., Any] | None = None,
    canaries: int = 200,
    seed: int | None = None,
    confidence: float = 0.95,
    delta: float | None = None,
    ignore: Collection[str] = (),
    assume: Collection[str] = (),
    quiet: bool = False,
) -> T:
    """The same transformation, or the same plan of jax-privacy, which from now on is audited in every update.

    Stated are the noise multiplier that is accounted for, and the clip norm: the largest norm that one record has in
    what comes in (jax-privacy: `grad_fn.sensitivity()`). A plan states both, optax's DP aggregate is asked for both,
    jax-privacy's noise for its deviation. With `clipped_grad`, such as `partial(jax_privacy.clipped_grad,
    l2_clip_norm=1.0)`, canaries of sums go through that clipping; a plan brings its own.

    `.audit` of what is returned (of a plan: of its `noise_addition_transform`) has `.verdict` and `.result()` at any
    time. At the end of the process lines on stderr say the verdict, unless `quiet`. Checks to `ignore` may fail, and
    are shown as ignored; statements to `assume`, such as "sampling", need no test. `delta` is that of an ε which is
    shown.
    """
    from epsilometer.watching.frameworks.jax.stated import bound_of, stated_by, with_noise
    from epsilometer.watching.frameworks.jax.transformation import Transformation

    for name, value in (("noise_multiplier", noise_multiplier), ("clip_norm", clip_norm)):
        if value is not None:
            validate.real(name, value, above=0)
    plan = all(hasattr(what, part) for part in ("noise_addition_transform", "clipped_grad", "dp_event"))
    if not plan and not (callable(getattr(what, "init", None)) and callable(getattr(what, "update", None))):
        expected = "an optax.GradientTransformation or a plan of jax-privacy"
        raise InvalidInput("what", what, expected, "watch what adds the noise, before init")
    noise: Any = getattr(what, "noise_addition_transform", what)
    clip = getattr(what, "clipped_grad", clipped_grad)
    if plan:
        accounted, bound = bound_of(what)
        noise_multiplier = accounted if noise_multiplier is None else noise_multiplier
        clip_norm = bound if clip_norm is None else clip_norm
    elif clip is not None and clip_norm is None:
        clip_norm = float(clip(lambda _: 0.0).l2_norm_bound)
    noise = getattr(noise, "original", noise)  # under `epsilometer watch` it is being watched already
    stated = stated_by(noise, noise_multiplier, clip_norm)
    audit = Watch(
        canaries=canaries, seed=seed, confidence=confidence, delta=delta, ignore=ignore, assume=assume, quiet=quiet
    )
    transformation = Transformation(noise, stated, audit.hooks, clip)
    transformation.begin()
    made = transformation.wrapped()
    made.audit = audit
    used: T = with_noise(what, made) if plan else made
    return used
