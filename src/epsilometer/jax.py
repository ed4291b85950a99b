"""JAX trainings, audited while they run: one line, around what makes gradients private.

    tx = watch(optax.contrib.differentially_private_aggregate(1.0, 1.1, key), noise_multiplier=1.1, clip_norm=1.0)
    privatizer = watch(jax_privacy.noise_addition.gaussian_privatizer(stddev=1.1), noise_multiplier=1.1, clip_norm=1.0)
    plan = watch(config.plan)

What comes back is used in the place of what was given: state, outputs and random numbers are as they were.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from epsilometer import validate
from epsilometer.errors import InvalidInput
from epsilometer.watching.settings import EXTRA, MOST, Settings

if TYPE_CHECKING:
    from epsilometer.auditing.verdict import Verdict
    from epsilometer.watching.jax.training import Training
    from epsilometer.watching.monitor import Monitor
    from epsilometer.watching.monitor import Watched as Judged

__all__ = ["Watch", "watch"]

T = TypeVar("T")


class Watch:
    """What is known of the trainings of one transformation, at any time. A new state begins a new training."""

    def __init__(self, training: Training, monitor: Monitor) -> None:
        self._training, self._monitor = training, monitor

    @property
    def trainings(self) -> list[Judged]:
        """Each with its verdict, in order, with what the checks find by now; steps under way are waited for."""
        import jax

        jax.effects_barrier()  # type: ignore[no-untyped-call]
        self._training.tell()
        return list(self._monitor)

    @property
    def verdict(self) -> Verdict:
        """On the last training."""
        return self.trainings[-1].verdict()

    def finish(self) -> None:
        """No more steps will come: checks that need no statistics are made."""
        if self.trainings:
            self._training.finish()

    def result(self) -> list[dict[str, Any]]:
        """All trainings as plain data."""
        return [one.to_dict() for one in self.trainings]

    def __str__(self) -> str:
        lines = []
        for number, one in enumerate(self.trainings, 1):
            lines.append(f"epsilometer: training {number}: {one.verdict()}")
            failed = [f"{check['name']}: {check['reason']}" for check in one.checks if check["status"] == "failed"]
            lines += [f"epsilometer: training {number}: check failed: {why}" for why in failed]
        return "\n".join(lines)

    def _at_exit(self) -> None:
        with suppress(Exception):
            self.finish()
            print(self, file=sys.stderr, flush=True)


def watch(
    what: T,
    *,
    noise_multiplier: float | None = None,
    clip_norm: float | None = None,
    clipped_grad: Callable[..., Any] | None = None,
    canaries: int = 200,
    seed: int | None = None,
    confidence: float = 0.95,
    quiet: bool = False,
) -> T:
    """The same transformation, or the same plan of jax-privacy, which from now on is audited in every update.

    Stated are the noise multiplier that is accounted for, and the clip norm: the largest norm that one record has in
    what comes in (jax-privacy: `grad_fn.sensitivity()`). A plan states both, optax's DP aggregate is asked for both,
    jax-privacy's noise for its deviation. With `clipped_grad`, such as `partial(jax_privacy.clipped_grad,
    l2_clip_norm=1.0)`, canaries of sums go through that clipping; a plan brings its own.

    `.audit` of what is returned (of a plan: of its `noise_addition_transform`) has `.verdict` and `.result()` at any
    time. At the end of the process lines on stderr say the verdict, unless `quiet`.
    """
    validate.whole("canaries", canaries, least=1, most=MOST)
    validate.real("confidence", confidence, above=0, below=1)
    for name, value in (("noise_multiplier", noise_multiplier), ("clip_norm", clip_norm)):
        if value is not None:
            validate.real(name, value, above=0)
    if seed is not None:
        validate.whole("seed", seed, least=0)
    settings = Settings(canaries, EXTRA, seed)
    if all(hasattr(what, part) for part in ("noise_addition_transform", "clipped_grad", "dp_event")):
        plan: T = _plan(what, noise_multiplier, clip_norm, settings, confidence, quiet)
        return plan
    if not (callable(getattr(what, "init", None)) and callable(getattr(what, "update", None))):
        expected = "an optax.GradientTransformation or a plan of jax-privacy"
        raise InvalidInput("what", what, expected, "watch what adds the noise, before init")
    if clipped_grad is not None and clip_norm is None:
        clip_norm = float(clipped_grad(lambda _: 0.0).l2_norm_bound)
    watched: T = _transformation(what, noise_multiplier, clip_norm, clipped_grad, settings, confidence, quiet)
    return watched


def _plan(
    plan: Any, noise_multiplier: float | None, clip_norm: float | None, settings: Settings, confidence: float,
    quiet: bool,
) -> Any:  # fmt: skip
    from epsilometer.watching.jax.stated import bound_of, with_noise

    stated, bound, clip = bound_of(plan)
    noise = _transformation(
        plan.noise_addition_transform,
        stated if noise_multiplier is None else noise_multiplier,
        bound if clip_norm is None else clip_norm,
        clip, settings, confidence, quiet,
    )  # fmt: skip
    return with_noise(plan, noise)


def _transformation(
    given: Any, noise_multiplier: float | None, clip_norm: float | None, clip: Callable[..., Any] | None,
    settings: Settings, confidence: float, quiet: bool,
) -> Any:  # fmt: skip
    from epsilometer.watching.jax.stated import stated_by
    from epsilometer.watching.jax.training import Training
    from epsilometer.watching.jax.transformation import Watched
    from epsilometer.watching.monitor import Monitor

    given = getattr(given, "original", given)  # under `epsilometer watch` it is being watched already
    stated = stated_by(given, noise_multiplier, clip_norm)
    monitor = Monitor(confidence)
    training = Training(stated, settings, monitor, clip is not None, partial(next, count(1)))
    training.begin()
    audit = Watch(training, monitor)
    made = Watched(given, training, clip).wrapped()
    made.audit = audit
    if not quiet:
        atexit.register(audit._at_exit)
    return made
