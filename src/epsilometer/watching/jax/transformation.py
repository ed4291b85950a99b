"""A transformation that does what it did, and plays canaries after each update, also inside jit."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.experimental import io_callback

from epsilometer.watching.jax.canaries import Call, Canaries, keys_of, source_of_noise
from epsilometer.watching.jax.randomness import apart
from epsilometer.watching.jax.training import Training


class Watched:
    """Around one transformation. Its state, outputs and random numbers are as they were."""

    def __init__(self, transformation: Any, training: Training, clip: Callable[..., Any] | None) -> None:
        self._own, self.training, self._clip = transformation, training, clip
        self._parameters = list(inspect.signature(transformation.update).parameters)
        self._canaries: Canaries | None = None

    def wrapped(self) -> Any:
        """In the place of the transformation."""

        @functools.wraps(self._own.init)
        def init(*arguments: Any, **named: Any) -> Any:
            state = self._own.init(*arguments, **named)
            self._guarded(self._made, state)
            return state

        @functools.wraps(self._own.update)
        def update(*arguments: Any, **named: Any) -> Any:
            result = self._own.update(*arguments, **named)
            self._guarded(self._play, arguments, named)
            return result

        made = _like(self._own)(init, update)
        made.original = self._own
        return made

    def _made(self, state: Any) -> None:
        if _traced(state):
            return
        jax.effects_barrier()  # type: ignore[no-untyped-call]
        self.training.restart()
        self.training.saw(None, keys_of(state))

    def _play(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        if jax.process_count() > 1:
            return self.training.lose(f"it trains on {jax.process_count()} processes, which share one step")
        call = self._call(arguments, named)
        number = self.training.settings.canaries
        if self._canaries is None:
            clip_norm = self.training.stated.clip_norm
            self._canaries = Canaries(self._own, call, number, clip_norm, self._clip, self.training.draw)
        canaries = self._canaries
        if canaries.records:
            self.training.saw(jax.tree.leaves(call.updates)[0].shape[0], None)
        if not _traced((call.updates, call.state, call.others)):
            with apart(self.training.draw):
                coins, salt, kept = self.training.toss()
                scores, twin, own = canaries.scores(call, coins, salt, canaries.own if kept is None else kept)
                self.training.take(scores, twin, source_of_noise(call.state), own)
            return None
        tossed = jax.eval_shape(lambda: (jnp.zeros(number, jnp.bool_), jnp.uint32(0), canaries.own))
        coins, salt, own = io_callback(self._toss, tossed, ordered=True)
        scores, twin, own = canaries.scores(call, coins, salt, own)
        io_callback(self.training.take, None, scores, twin, source_of_noise(call.state), own, ordered=True)
        return None

    def _toss(self) -> tuple[Any, Any, list[Any]]:
        """Inside jit nothing may be raised."""
        assert self._canaries is not None
        try:
            coins, salt, kept = self.training.toss()
        except Exception as error:
            self.training.lose(f"the canaries failed ({type(error).__name__}: {str(error)[:300]})")
            coins, salt, kept = np.zeros(self.training.settings.canaries, np.bool_), np.uint32(0), None
        return coins, salt, self._canaries.own if kept is None else kept

    def _call(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Call:
        """Updates, state and parameters are the first three, whatever they are called."""
        given = {**dict(zip(self._parameters, arguments, strict=False)), **named}
        updates, state, params, *_ = [*self._parameters, "params"]
        others = {name: value for name, value in given.items() if name not in (updates, state, params)}
        return Call(given[updates], given[state], given.get(params) is not None, others)

    def _guarded(self, act: Callable[..., None], *arguments: Any) -> None:
        if self.training.lost:
            return
        try:
            act(*arguments)
        except Exception as error:
            self.training.lose(f"the canaries failed ({type(error).__name__}: {str(error)[:300]})")


def _traced(tree: Any) -> bool:
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(tree))


class _Plain(optax.GradientTransformation):  # type: ignore[misc]
    """With an attribute for what is known of it."""

    audit: Any
    original: Any


class _WithExtraArguments(optax.GradientTransformationExtraArgs):  # type: ignore[misc]
    audit: Any
    original: Any


def _like(transformation: Any) -> type:
    extra = isinstance(transformation, optax.GradientTransformationExtraArgs)
    return _WithExtraArguments if extra else _Plain
