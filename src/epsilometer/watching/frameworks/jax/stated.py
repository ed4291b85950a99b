"""What a transformation or a plan states of its noise, where that can be read."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from typing import Any

from epsilometer.errors import InvalidInput
from epsilometer.watching.privatizer import Stated

_REMEDY = "say it: watch(..., noise_multiplier=..., clip_norm=...)"


def stated_by(transformation: Any, noise_multiplier: float | None, clip_norm: float | None) -> Stated:
    """What is given; otherwise what the transformation was made with (optax: both; jax-privacy: the noise)."""
    update = inspect.unwrap(transformation.update)
    made_with = inspect.getclosurevars(update).nonlocals if inspect.isfunction(update) else {}
    given = noise_multiplier is not None
    if clip_norm is None:
        clip_norm = _number(made_with.get("l2_norm_clip"))
        if clip_norm is None:
            raise InvalidInput("clip_norm", None, "the norm that gradients of records are clipped to", _REMEDY)
    if noise_multiplier is None:
        deviation = _number(made_with.get("noise_std", made_with.get("stddev")))
        if deviation is None or clip_norm <= 0:
            raise InvalidInput("noise_multiplier", None, "the noise multiplier that is accounted for", _REMEDY)
        noise_multiplier = deviation / clip_norm
    source = "given" if given else "of the transformation itself"
    return Stated(_name(update), float(noise_multiplier), float(clip_norm), {"stated": source})


def bound_of(plan: Any) -> tuple[float, float]:
    """What a plan of jax-privacy accounts for, and the most that a record has after its clipping."""
    found = list(_noise_multipliers(plan.dp_event))
    if not found:
        raise InvalidInput("noise_multiplier", None, "one in the event of the plan", _REMEDY)
    return min(found), float(plan.clipped_grad(lambda _: 0.0).l2_norm_bound)


def with_noise(plan: Any, transformation: Any) -> Any:
    """The same plan with another transformation that adds noise."""
    return dataclasses.replace(plan, noise_addition_transform=transformation)


def _noise_multipliers(event: Any) -> Iterator[float]:
    own = getattr(event, "noise_multiplier", None)
    if own is not None:
        yield float(own)
    for name in ("event", "events"):
        part = getattr(event, name, None)
        for one in part if isinstance(part, list | tuple) else [part] if part is not None else []:
            yield from _noise_multipliers(one)


def _number(value: Any) -> float | None:
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError):  # a schedule, or a value inside jit
        return None


def _name(update: Any) -> str:
    """Such as optax differentially_private_aggregate."""
    package = str(getattr(update, "__module__", "")).partition(".")[0]
    function = str(getattr(update, "__qualname__", "")).partition(".")[0].lstrip("_")
    return f"{package} {function}".strip() or "a transformation"
