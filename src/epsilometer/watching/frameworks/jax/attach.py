"""Where JAX scripts are taken hold of that nobody changes: optax's DP aggregate, and the plans of jax-privacy.

Modules are half imported when this is called, so what needs them is imported when it is used.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from epsilometer.watching.training import Trainings

_OPTAX = "optax.contrib._privacy"


def attach(module: Any, trainings: Trainings) -> None:
    """Watch what this module makes private."""
    (_watch_optax if module.__name__ == _OPTAX else _watch_plans)(module, trainings)


def _watch_optax(module: Any, trainings: Trainings) -> None:
    original = module.differentially_private_aggregate

    @functools.wraps(original)
    def differentially_private_aggregate(*arguments: Any, **named: Any) -> Any:
        made = original(*arguments, **named)
        return _or_as_it_was(made, lambda: _watched(made, None, None, None, trainings), trainings)

    module.differentially_private_aggregate = differentially_private_aggregate


def _watch_plans(module: Any, trainings: Trainings) -> None:
    """What a plan's event says is accounted for."""
    cached = next(vars(one)["plan"] for one in module.BandMFExecutionPlanConfig.__mro__ if "plan" in vars(one))
    original = cached.func

    def watched_plan(plan: Any) -> Any:
        from epsilometer.watching.frameworks.jax.stated import bound_of, with_noise

        noise = _watched(plan.noise_addition_transform, *bound_of(plan), plan.clipped_grad, trainings)
        return with_noise(plan, noise)

    @functools.wraps(original)
    def plan(config: Any) -> Any:
        made = original(config)
        return _or_as_it_was(made, lambda: watched_plan(made), trainings)

    cached.func = plan


def _watched(
    given: Any,
    noise_multiplier: float | None,
    clip_norm: float | None,
    clip: Callable[..., Any] | None,
    trainings: Trainings,
) -> Any:
    """What is not stated is asked of the transformation."""
    from epsilometer.watching.frameworks.jax.stated import stated_by
    from epsilometer.watching.frameworks.jax.transformation import Transformation

    return Transformation(given, stated_by(given, noise_multiplier, clip_norm), trainings, clip).wrapped()


def _or_as_it_was(made: Any, watch: Callable[[], Any], trainings: Trainings) -> Any:
    try:
        return watch()
    except Exception as error:
        trainings.failed("JAX", error)
        return made
