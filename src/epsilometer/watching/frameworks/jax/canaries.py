"""Canaries on leaves that no model has, through the script's own transformation.

After the script's own update, the same function is called once more for a tree of two small leaves: one with canaries,
one without any. It gets the script's state, in which every random key is mixed with a number of ours: with the keys as
they are, canaries would get the noise that the model gets, and whoever reads the recording could take that off. Parts
of a state that have the shape of parameters (correlated noise, momentum) are the canaries' own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from epsilometer.watching.frameworks.jax.randomness import apart

_TIMES = 10.0  # how much larger than the clip norm a canary's gradient is
_LARGE = 1e4  # the same, where the clip norm is hidden in a function
_PROBE = 0.5  # of a clip norm: not clipped
_NEAR, _STEADY = 0.05, 0.5  # as usual within rounding; noise that was the same twice
TWIN, CANARIES = -2, -1  # places among the leaves

Tree = Any


@dataclass(frozen=True)
class Call:
    """One call of an update function: what the script gave."""

    updates: Tree
    state: Tree
    with_params: bool
    others: dict[str, Any]


class Canaries:
    """The second call, whatever the transformation is: gradients of single records come in, or sums of clipped ones."""

    def __init__(
        self, transformation: Any, call: Call, number: int, clip_norm: float, clip: Callable[..., Any] | None,
        draw: np.random.Generator,
    ) -> None:  # fmt: skip
        self._transformation, self._number, self._clip_norm, self._clip = transformation, number, clip_norm, clip
        floating = [leaf.dtype for leaf in jax.tree.leaves(call.updates) if jnp.issubdtype(leaf.dtype, jnp.floating)]
        self._dtype = floating[0] if floating else jnp.dtype(jnp.float32)
        # Where no key is in the state, leaves before the canaries have the noise that the model's leaves have.
        hidden = not any(is_key(leaf) for leaf in jax.tree.leaves(call.state))
        self._before = len(jax.tree.leaves(call.updates)) if hidden else 0
        with jax.ensure_compile_time_eval(), apart(draw):
            params = self._leaves()
            template = transformation.init(params)
            self._places, self._structure = jax.tree_util.tree_flatten_with_path(template)
            other = jax.eval_shape(transformation.init, {"epsilometer": jnp.zeros((3, 5), self._dtype)})
            self._shared = _same_places(other, self._places)
            # What the canaries' own part of the state is at first.
            self.own = [np.asarray(leaf) for place, leaf in self._places if self._is_own(place, leaf)]
            self.records = self._takes_records(call, template)
            self._scale = self._find_scale(call, template)

    def scores(self, call: Call, coins: Any, salt: Any, own: list[Any]) -> tuple[Any, Any, list[Any]]:
        """In units of the clip norm: the noisy sum at each canary's coordinate, the same of the leaf without canaries,
        and the canaries' own part of the new state."""
        output, state = self._update(call, self._inserted(coins, self._norm()), self._state(call.state, salt, own))
        leaves = jax.tree.leaves(output)
        unit = self._scale * self._clip_norm
        kept = jax.tree_util.tree_flatten_with_path(state)[0]
        return (
            leaves[CANARIES].astype(jnp.float32) / unit,
            leaves[TWIN].astype(jnp.float32) / unit,
            [leaf for place, leaf in kept if self._is_own(place, leaf)],
        )

    def silent(self, call: Call, salt: Any) -> Any:
        """Of every leaf of the script's own: does what comes in go out without noise? A frozen one gives nothing."""

        def output(value: float) -> list[Any]:
            shapes = jax.tree.map(lambda leaf: leaf.shape[1:] if self.records else leaf.shape, call.updates)
            batch = (1,) if self.records else ()

            def filled(shape: tuple[int, ...], leaf: Any, value: float) -> Any:
                return jnp.full(shape, value, leaf.dtype)

            updates = jax.tree.map(lambda leaf, shape: filled((*batch, *shape), leaf, value), call.updates, shapes)
            params = jax.tree.map(lambda leaf, shape: filled(shape, leaf, 0.0), call.updates, shapes)
            given = (params,) if call.with_params else ()
            made, _ = self._transformation.update(updates, state, *given, **call.others)
            return jax.tree.leaves(made)

        state = jax.tree.map(lambda leaf: jax.random.fold_in(leaf, salt) if is_key(leaf) else leaf, call.state)
        nothing, something = output(0.0), output(1.0)
        return jnp.stack([jnp.all(a == 0) & jnp.any(b != 0) for a, b in zip(nothing, something, strict=True)])

    def _norm(self) -> float:
        if self.records:
            return _TIMES * self._clip_norm
        return _LARGE * max(self._clip_norm, 1.0) if self._clip else self._clip_norm

    def _inserted(self, coins: Any, norm: float) -> list[Any]:
        """Gradients with the canaries of which the coin says so."""
        sizes = jnp.asarray(coins, self._dtype) * jnp.asarray(norm, self._dtype)
        leaves = self._leaves((self._number,) if self.records else ())
        if self.records:
            leaves[CANARIES] = jnp.diag(sizes)
        elif self._clip:
            leaves[TWIN:] = self._clip(_gradient_is_the_row, batch_argnums=1)(leaves[TWIN:], jnp.diag(sizes))
        else:
            leaves[CANARIES] = sizes
        return leaves

    def _leaves(self, batch: tuple[int, ...] = ()) -> list[Any]:
        before = [jnp.zeros((*batch, 1), self._dtype) for _ in range(self._before)]
        return [*before, *(jnp.zeros((*batch, self._number), self._dtype) for _ in range(2))]

    def _update(self, call: Call, updates: list[Any], state: Tree) -> tuple[Any, Any]:
        params = (self._leaves(),) if call.with_params else ()
        output, new = self._transformation.update(updates, state, *params, **call.others)
        return output, new

    def _state(self, state: Tree, salt: Any, own: list[Any]) -> Tree:
        script, mine = dict(jax.tree_util.tree_flatten_with_path(state)[0]), iter(own)
        leaves = []
        for place, template in self._places:
            if place in self._shared:
                leaf = script[place]
                leaves.append(jax.random.fold_in(leaf, salt) if is_key(leaf) else leaf)
            elif self._is_own(place, template):
                leaves.append(next(mine))
            else:
                leaves.append(template)
        return jax.tree_util.tree_unflatten(self._structure, leaves)

    def _is_own(self, place: Any, leaf: Any) -> bool:
        if place in self._shared:
            return False
        if is_key(leaf):
            raise TypeError("a random key for each parameter is in its state")
        return bool(leaf.size)

    def _takes_records(self, call: Call, state: Tree) -> bool:
        """Is the first axis gone?"""
        rows = self._leaves((self._number + 1,))
        try:
            output, _ = jax.eval_shape(lambda: self._update(call, rows, state))
        except Exception:  # noise kept for each parameter does not fit rows
            return False
        return bool(jax.tree.leaves(output)[CANARIES].shape == (self._number,))

    def _find_scale(self, call: Call, state: Tree) -> float:
        """What the output has of a gradient that is not clipped: with the same state, the noise is the same."""
        usual = 1.0 / self._number if self.records else 1.0
        clip, self._clip = self._clip, None  # it may rescale, and has been asked for its bound
        given = Call([], state, call.with_params, {})

        def output(size: float) -> Any:
            inserted = self._inserted(jnp.ones(self._number), size)
            return jax.tree.leaves(self._update(given, inserted, state)[0])[CANARIES]

        probe = _PROBE * self._clip_norm
        try:
            some, none = jax.jit(lambda: (output(probe), output(0.0)))()
        except Exception:  # it needs arguments that are not there yet
            return usual
        finally:
            self._clip = clip
        found = (np.asarray(some, np.float64) - np.asarray(none, np.float64)) / probe
        middle = float(np.median(found))
        steady = np.isfinite(middle) and middle != 0 and np.abs(found / middle - 1).max() < _STEADY
        return middle if steady and abs(middle / usual - 1) > _NEAR else usual


def is_key(leaf: Any) -> bool:
    """A random key, also of the old kind, which is an array of two numbers."""
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return True
    return bool(leaf.dtype == jnp.uint32 and leaf.shape == (2,))


def keys_of(state: Tree) -> list[Any]:
    """The numbers of every random key in a state."""
    keys = [leaf for leaf in jax.tree.leaves(state) if hasattr(leaf, "dtype") and is_key(leaf)]
    return [jax.random.key_data(key) if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) else key for key in keys]


def source_of_noise(state: Tree) -> list[Any]:
    """What makes the noise of one step differ from that of others: keys, and what may count steps beside them."""
    keys = keys_of(state)
    leaves = [leaf for leaf in jax.tree.leaves(state) if hasattr(leaf, "dtype") and not is_key(leaf)]
    return [*keys, *(leaf for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.integer) and leaf.size == 1)] * bool(
        keys
    )


def _same_places(other: Tree, places: list[tuple[Any, Any]]) -> set[Any]:
    """Parts of a state that are the same whatever the parameters are."""
    there = {place: (leaf.shape, leaf.dtype) for place, leaf in jax.tree_util.tree_flatten_with_path(other)[0]}
    return {place for place, leaf in places if there.get(place) == (leaf.shape, leaf.dtype)}


def _gradient_is_the_row(leaves: list[Any], row: Any) -> Any:
    return jnp.sum(leaves[CANARIES] * row)
