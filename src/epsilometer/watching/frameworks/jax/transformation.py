"""A transformation that does what it did, and plays canaries after each update, also inside jit."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.experimental import io_callback

from epsilometer.watching.frameworks.jax.canaries import Call, Canaries, keys_of, source_of_noise
from epsilometer.watching.frameworks.jax.privatizer import JaxPrivatizer, salt
from epsilometer.watching.privatizer import Coins, Stated
from epsilometer.watching.training import Trainings, WatchedTraining

_REMADE = 2  # states that were made anew after one step each, from which on it is no accident


class Transformation:
    """Around one transformation. Its state, outputs and random numbers are as they were; a new state begins a new
    training."""

    def __init__(
        self, transformation: Any, stated: Stated, trainings: Trainings, clip: Callable[..., Any] | None
    ) -> None:
        clipping = {"clipping": "its own" if clip else "of what comes in"}
        self._own, self._clip, self._trainings = transformation, clip, trainings
        self._stated = replace(stated, settings={**stated.settings, **clipping})
        self._parameters = list(inspect.signature(transformation.update).parameters)
        self._canaries: Canaries | None = None
        self._rows: set[int] = set()
        self._keys: list[Any] = []
        self._under_way: tuple[WatchedTraining, JaxPrivatizer] | None = None
        self._failed = False  # before any training has begun
        self._again = False  # a new state was made, and the next step is of another training
        self._remade, self._seen_before = 0, 0  # states with the keys of the last one, of which one step was taken
        self._coins: Coins = np.zeros(0, np.bool_)

    def begin(self) -> tuple[WatchedTraining, JaxPrivatizer]:
        """Another training, after the last one's end."""
        if self._under_way is not None:
            self._under_way[0].finish()
        privatizer = JaxPrivatizer(self._stated, self._rows, self._keys)
        self._under_way, self._again = (self._trainings.begin(privatizer), privatizer), False
        return self._under_way

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
        before, self._keys = self._keys, keys_of(state)
        training, privatizer = self._under_way or self.begin()
        if training.seen:
            again = training.seen - self._seen_before == 1 and _same_keys(before, self._keys)
            self._remade = self._remade + 1 if again else 0
            # Once may be a step to compile it; a script that does so in every step has one training, and one noise.
            self._again = self._remade < _REMADE
            self._seen_before = 0 if self._again else training.seen
            privatizer.remade = self._remade
        else:
            privatizer.first_keys = self._keys

    def _current(self) -> tuple[WatchedTraining, JaxPrivatizer]:
        """Of the step under way."""
        return self.begin() if self._under_way is None or self._again else self._under_way

    def _play(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        if jax.process_count() > 1:
            self._current()[0].lose(f"it trains on {jax.process_count()} processes, which share one step")
            return
        call, number = self._call(arguments, named), self._trainings.settings.canaries
        if self._canaries is None:
            draw = np.random.default_rng(self._trainings.settings.seed)
            self._canaries = Canaries(self._own, call, number, self._stated.clip_norm, self._clip, draw)
        canaries = self._canaries
        if canaries.records:
            self._rows.add(jax.tree.leaves(call.updates)[0].shape[0])
        if not _traced((call.updates, call.state, call.others)):
            training, privatizer = self._current()

            def once_more(coins: Coins, salted: Any) -> tuple[Any, Any, list[Any], list[Any]]:
                kept = canaries.own if privatizer.kept is None else privatizer.kept
                scores, twin, own = canaries.scores(call, coins, salted, kept)
                if privatizer.leaves is None:
                    with suppress(Exception):  # a transformation of another kind
                        privatizer.look_at_leaves(_names(call.updates), canaries.silent(call, salted))
                return scores, twin, source_of_noise(call.state), own

            privatizer.once_more = once_more
            training.play()
            privatizer.once_more = None  # it holds the script's state
            return
        tossed = jax.eval_shape(lambda: (jnp.zeros(number, jnp.bool_), jnp.uint32(0), canaries.own))
        coins, salted, own = io_callback(self._toss, tossed, ordered=True)
        scores, twin, own = canaries.scores(call, coins, salted, own)
        io_callback(self._take, None, scores, twin, source_of_noise(call.state), own, ordered=True)
        with suppress(Exception):
            self._look_at_leaves(canaries, call, salted)

    def _look_at_leaves(self, canaries: Canaries, call: Call, salted: Any) -> None:
        """The same when it is compiled: computed in the first step only."""
        names = _names(call.updates)
        wanted = io_callback(self._leaves_wanted, jax.eval_shape(lambda: jnp.bool_(False)), ordered=True)
        silent = jax.lax.cond(wanted, lambda: canaries.silent(call, salted), lambda: jnp.zeros(len(names), jnp.bool_))

        def take(wanted: Any, silent: Any) -> None:
            if wanted and self._under_way is not None:
                self._under_way[1].look_at_leaves(names, silent)

        io_callback(take, None, wanted, silent, ordered=True)

    def _leaves_wanted(self) -> Any:
        return np.bool_(self._under_way is not None and self._under_way[1].leaves is None)

    def _toss(self) -> tuple[Any, Any, list[Any]]:
        """Inside jit nothing may be raised."""
        assert self._canaries is not None
        found: tuple[Any, Any, Any] = np.zeros(self._trainings.settings.canaries, np.bool_), np.uint32(0), None

        def toss() -> None:
            nonlocal found
            training, privatizer = self._current()
            found = training.toss(), salt(training.draw), privatizer.kept

        self._guarded(toss)
        self._coins, salted, kept = found
        return self._coins, salted, self._canaries.own if kept is None else kept

    def _take(self, scores: Any, twin: Any, source: list[Any], own: list[Any]) -> None:
        if self._under_way is None:
            return
        training, privatizer = self._under_way
        training.guarded(lambda: training.take(privatizer.look(self._coins, scores, twin, source, own)))
        training.tell_now_and_then()

    def _call(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Call:
        """Updates, state and parameters are the first three, whatever they are called."""
        given = {**dict(zip(self._parameters, arguments, strict=False)), **named}
        updates, state, params, *_ = [*self._parameters, "params"]
        others = {name: value for name, value in given.items() if name not in (updates, state, params)}
        return Call(given[updates], given[state], given.get(params) is not None, others)

    def _guarded(self, act: Callable[..., None], *arguments: Any) -> None:
        if self._under_way is not None:
            self._under_way[0].guarded(act, *arguments)
            return
        if self._failed:
            return
        try:
            act(*arguments)
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """The first training may have begun meanwhile, or not."""
        if self._under_way is not None:
            self._under_way[0].fail(error)
            return
        self._failed = True
        self._trainings.failed("JAX", error)


def _names(tree: Any) -> list[str]:
    return [jax.tree_util.keystr(place).strip("[]'\"") for place, _ in jax.tree_util.tree_flatten_with_path(tree)[0]]


def _same_keys(one: list[Any], other: list[Any]) -> bool:
    if not one or len(one) != len(other):
        return False
    return all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in zip(one, other, strict=True))


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
