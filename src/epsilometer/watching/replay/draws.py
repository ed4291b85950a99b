"""Functions by which a script draws numbers of its own, wrapped: one that may be noise can be drawn anew, or negated.

What cannot be wrapped (draws in C, a package's own generator) is noticed by the state of its generator, and no more.
This imports numpy only: it comes before torch.
"""

from __future__ import annotations

import functools
import importlib
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from epsilometer.watching.replay.entropy import importing
from epsilometer.watching.replay.noting import MADE, bits_of, by_us

Draw = functools.partial[Any]
NORMAL, OTHER = "normal", "other"  # how they are drawn: normal numbers may be noise wherever they are drawn
_TORCH = {
    "randn": NORMAL, "randn_like": NORMAL, "normal": NORMAL, "rand": OTHER, "rand_like": OTHER, "bernoulli": OTHER,
    "poisson": OTHER,
}  # fmt: skip
_METHODS = {
    "normal_": NORMAL, "log_normal_": NORMAL, "uniform_": OTHER, "bernoulli_": OTHER, "exponential_": OTHER,
    "cauchy_": OTHER, "geometric_": OTHER, "bernoulli": OTHER,
}  # fmt: skip
_NUMPY = {
    "normal": NORMAL, "standard_normal": NORMAL, "randn": NORMAL, "multivariate_normal": NORMAL, "laplace": NORMAL,
    "random": OTHER, "rand": OTHER, "random_sample": OTHER, "uniform": OTHER, "binomial": OTHER,
    "exponential": OTHER, "standard_t": NORMAL, "gumbel": OTHER, "logistic": OTHER,
}  # fmt: skip
_JAX = ("normal", "laplace", "truncated_normal", "multivariate_normal")
_PYTHON = {"gauss": NORMAL, "normalvariate": NORMAL}
# Functions that choose records: their numbers are no noise.
_CHOOSE: dict[str, tuple[str, ...]] = {
    "torch": ("randint", "multinomial"),
    "random": ("choice", "choices", "randint", "randrange"),
    "numpy.random": ("choice", "randint"),
}
_CHOOSE_BY = ("choice", "permutation", "permuted", "shuffle", "integers", "randint")


def _as_it_is(_: str, result: Any, __: Draw) -> Any:
    return result


def _before(name: str, otherwise: Any) -> Any:
    """What is known of random numbers that hide nothing, once torch is there."""
    module = sys.modules.get("epsilometer.watching.replay.before")
    return getattr(module, name)() if module is not None else otherwise


class Draws:
    """Of this process. `act` is told the kind of a draw, how many numbers it gave, and how it is made again."""

    def __init__(self) -> None:
        self.act: Callable[[str, Any, Draw], Any] = _as_it_is
        self._inside = False
        self.numbers = {NORMAL: 0, OTHER: 0}  # since they were counted last
        self.kind = ""  # of the draw under way
        self.salt = 0  # of keys, while something is drawn anew
        self.looks = True  # a draw that is seen is to be told from one that is not

    def through(
        self, kind: str, function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> Any:
        """A draw of the script's own."""
        if self._inside or by_us(3) or _before("inside", False) or (self.looks and importing()):
            return function(*arguments, **named)
        self._inside, self.kind = True, kind
        try:
            with _before("apart", nullcontext()) if self.looks else nullcontext():
                result = function(*arguments, **named)
                self.numbers[kind] += _size(result)
                return self.act(kind, result, functools.partial(function, *arguments, **named))
        finally:
            self._inside, self.kind = False, ""


DRAWS = Draws()


def again(draw: Draw, rng: np.random.Generator) -> Any:
    """The same draw with numbers of `rng`, which leaves every generator as it is."""
    owner = draw.args[0] if draw.args else None
    with _put_back(draw.keywords.get("generator"), owner, int(rng.integers(2**32))):
        return draw()


def negated(result: Any, draw: Draw) -> Any:
    """The same draw, mirrored at its mean."""
    mean = _mean(draw, result)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(result, torch.Tensor):
        with torch.no_grad():
            return result.neg_().add_(2 * mean) if isinstance(mean, float) else result.copy_(2 * mean - result)
    return 2 * mean - result


def _mean(draw: Draw, result: Any) -> Any:
    """Of functions that are given one; the others have 0."""
    name = getattr(draw.func, "__name__", "")
    if name not in ("normal", "normal_", "laplace", "gauss", "normalvariate", "multivariate_normal"):
        return 0.0
    arguments = [one for one in draw.args if one is not result and not _is_source(one)]
    for key in ("mean", "loc", "mu"):
        if key in draw.keywords:
            arguments = [draw.keywords[key]]
    mean = arguments[0] if arguments else 0.0
    if isinstance(mean, int | float):
        return float(mean)
    return np.asarray(mean) if isinstance(mean, list | tuple) else mean


def attach() -> None:
    """Wrap all that torch has; what a script has taken out of its module before is not seen."""
    torch = sys.modules["torch"]
    for name, kind in _TORCH.items():
        _wrap(torch, name, kind)
    for name, kind in _METHODS.items():
        _wrap(torch.Tensor, name, kind)
    for name in _CHOOSE["torch"]:
        setattr(torch, name, _choosing(getattr(torch, name)))


def attach_numpy(module: Any, _: Any) -> None:
    """Numpy was imported, before all else that draws."""
    for name, kind in _NUMPY.items():
        _wrap(module.random, name, kind)
    for name, kind in _PYTHON.items():
        _wrap(random, name, kind)
    for name in ("random", "numpy.random"):
        for function in _CHOOSE[name]:
            setattr(sys.modules[name], function, _choosing(getattr(sys.modules[name], function)))
    MADE.own = _own


def attach_jax(module: Any, _: Any) -> None:
    """JAX has keys: another draw is one by another key. What is compiled draws as it did when it was."""

    def around(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def by_key(key: Any, *arguments: Any, **named: Any) -> Any:
            return original(module.fold_in(key, DRAWS.salt) if DRAWS.salt else key, *arguments, **named)

        return by_key

    for name in _JAX:
        setattr(module, name, _around(around(getattr(module, name)), NORMAL))


def _choosing(original: Callable[..., Any]) -> Callable[..., Any]:
    """A function that chooses records, and is no draw of noise."""

    @functools.wraps(original)
    def choose(*arguments: Any, **named: Any) -> Any:
        if by_us(2) or (DRAWS.looks and importing()):
            return original(*arguments, **named)
        with _before("apart", nullcontext()):
            return original(*arguments, **named)

    return choose


_Generator: Any = importlib.import_module("numpy.random._generator").Generator  # not what scripts get by this name
_RandomState: Any = importlib.import_module("numpy.random.mtrand").RandomState


class OwnGenerator(_Generator):  # type: ignore[misc]
    """Numpy's, whose draws are seen."""


class OwnRandomState(_RandomState):  # type: ignore[misc]
    """The old one."""


def _own(made: Any) -> Any:
    """In the place of one of numpy's that a script makes."""
    if type(made) is _Generator:
        return OwnGenerator(made.bit_generator)
    return OwnRandomState(made._bit_generator) if type(made) is _RandomState else made


def _seen(owner: Any, base: Any) -> None:
    for name, kind in _NUMPY.items():
        original = getattr(base, name, None)
        if original is not None:
            setattr(owner, name, _around(original, kind))
    for name in _CHOOSE_BY:
        if hasattr(base, name):
            setattr(owner, name, _choosing(getattr(base, name)))


def _wrap(owner: Any, name: str, kind: str) -> None:
    original = getattr(owner, name, None)
    if original is not None:
        setattr(owner, name, _around(original, kind))


def _around(original: Callable[..., Any], kind: str) -> Callable[..., Any]:
    @functools.wraps(original)
    def draw(*arguments: Any, **named: Any) -> Any:
        return DRAWS.through(kind, original, arguments, named)

    return draw


_seen(OwnGenerator, _Generator)
_seen(OwnRandomState, _RandomState)


def _size(result: Any) -> int:
    return int(result.numel()) if hasattr(result, "numel") else int(np.size(result))


def _is_source(one: Any) -> bool:
    return isinstance(one, _Generator | _RandomState)


@contextmanager
def _put_back(generator: Any, owner: Any, seed: int) -> Iterator[None]:
    """Generators of a draw, seeded afresh meanwhile."""
    torch, torches = sys.modules.get("torch"), []
    if torch is not None:
        torches = [torch.default_generator, *([generator] if isinstance(generator, torch.Generator) else [])]
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            torches += list(torch.cuda.default_generators)
    kept = [(one, one.get_state()) for one in torches]
    bits = [bits_of(np.random.mtrand._rand), *([bits_of(owner)] if _is_source(owner) else [])]
    states = [(one, one.state) for one in bits]
    plain = random.getstate()
    DRAWS.salt = seed | 1
    try:
        for one in torches:
            one.manual_seed(seed)
        for one in bits:
            one.state = type(one)(seed).state
        random.seed(seed)
        yield
    finally:
        DRAWS.salt = 0
        for one, state in kept:
            one.set_state(state)
        for one, state in states:
            one.state = state
        random.setstate(plain)
