"""Every generator that a torch script draws from: torch's, numpy's, Python's, and those that it makes itself."""

from __future__ import annotations

import base64
import hashlib
import random
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import torch

from epsilometer.watching.replay import entropy
from epsilometer.watching.replay.noting import MADE, bits_of, by_us, noting

_FIRST = 8  # words of numpy's state that are looked at
_TORCH: dict[int, Any] = {}  # generators that the script makes, by number, as long as it has them


def attach(module: Any, _: Any) -> None:
    """Torch was imported: runs are to be the same as far as it can make them so."""
    # `use_deterministic_algorithms` does this, and imports the whole compiler for a setting (`compile_the_same`).
    module._C._set_deterministic_algorithms(True, warn_only=True)
    module.utils.deterministic.fill_uninitialized_memory = False
    module.Generator = noting(module.Generator, _note)
    original = module.seed

    def seed() -> int:
        original()  # every device, as it does
        chosen = int.from_bytes(entropy.urandom(8), "big")
        module.manual_seed(chosen)
        return chosen

    module.seed = module.random.seed = seed
    module.manual_seed(int.from_bytes(entropy.urandom(8), "big"))  # as it is, it has asked the system
    from epsilometer.watching.replay.before import begin

    begin()


def compile_the_same(module: Any, _: Any) -> None:
    """The settings of torch's compiler were imported, by a script that compiles."""
    if hasattr(module, "deterministic"):
        module.deterministic = True


def _note(made: Any) -> Any:
    if by_us(3):
        return made
    _TORCH[len(_TORCH) + 1] = weakref.ref(made)
    return made


def made() -> int:
    """How many generators of torch the script has made."""
    return len(_TORCH)


def name_of_states() -> str:
    """The same for the same states of all of them."""
    found = hashlib.blake2b(digest_size=16)
    for state in digests().values():
        found.update(state)
    return found.hexdigest()


def digests() -> dict[str, bytes]:
    """Of each of them, and how often the system was asked."""
    return {"system": entropy.used().to_bytes(8, "big"), **{name: _digest(state) for name, state in _states()}}


def states() -> dict[str, Any]:
    """As JSON has it."""
    return {name: _packed(state) for name, state in _states()}


def restore(found: dict[str, Any]) -> None:
    """Those that are in both runs."""
    for name, set_state in _setters():
        if name in found:
            set_state(found[name])


def seed_all(draw: np.random.Generator) -> None:
    """Every one afresh."""
    for one in [torch.default_generator, *_accelerators(), *_made().values()]:
        with suppress(RuntimeError, NotImplementedError):  # true randomness has no seed
            one.manual_seed(_seed(draw))
    np.random.seed(_seed(draw) % 2**32)  # noqa: NPY002 (the script's, not ours)
    random.seed(_seed(draw))
    for bits in MADE.bits().values():
        bits.state = type(bits)(_seed(draw)).state


def followed() -> bool:
    """Are all of them known?"""
    return not MADE.lost


def _states() -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = [("python", random.getstate()), ("numpy", _legacy().state)]
    for name, one in _of_torch():
        with suppress(RuntimeError, NotImplementedError):
            found.append((name, one.get_state().numpy().tobytes()))
    return [*found, *((f"numpy {at}", bits.state) for at, bits in MADE.bits().items())]


def _setters() -> list[tuple[str, Callable[[Any], None]]]:
    def of_torch(generator: Any) -> Callable[[Any], None]:
        return lambda state: generator.set_state(torch.from_numpy(np.frombuffer(_bytes(state), np.uint8).copy()))

    def of_numpy(bits: Any) -> Callable[[Any], None]:
        def set_state(state: Any) -> None:
            bits.state = _unpacked(state)

        return set_state

    return [
        ("python", lambda state: random.setstate((state[0], tuple(state[1]), state[2]))),
        ("numpy", of_numpy(_legacy())),
        *((name, of_torch(one)) for name, one in _of_torch()),
        *((f"numpy {at}", of_numpy(bits)) for at, bits in MADE.bits().items()),
    ]


def _of_torch() -> list[tuple[str, Any]]:
    devices = [(f"device {at}", one) for at, one in enumerate(_accelerators())]
    return [("torch", torch.default_generator), *devices, *((f"torch {at}", one) for at, one in _made().items())]


def _made() -> dict[int, Any]:
    return {at: made for at, find in _TORCH.items() if (made := find()) is not None}


def _accelerators() -> list[Any]:
    used = torch.cuda.is_available() and torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return list(torch.cuda.default_generators) if used else []


def _legacy() -> Any:
    return bits_of(np.random.mtrand._rand)


def _seed(draw: np.random.Generator) -> int:
    return int(draw.integers(2**63))


def _digest(state: Any) -> bytes:
    if isinstance(state, bytes):
        return state
    if isinstance(state, np.ndarray):  # all of it is another one whenever some of it is
        return state[:_FIRST].tobytes()
    if isinstance(state, dict):
        inner = state.get("state")
        if isinstance(inner, dict) and all(type(value) is int for value in inner.values()):  # numpy's usual generator
            return repr(state).encode()
        return b"".join(_digest(value) for value in state.values())
    if isinstance(state, tuple):
        version, numbers, gauss = state
        return f"{version} {hash(numbers)} {gauss}".encode()  # of numbers, so the same in every process
    return str(state).encode()


def _packed(state: Any) -> Any:
    if isinstance(state, bytes):
        return base64.b64encode(state).decode("ascii")
    if isinstance(state, np.ndarray):
        return {"array": _packed(state.tobytes()), "dtype": str(state.dtype)}
    if isinstance(state, dict):
        return {name: _packed(value) for name, value in state.items()}
    return state


def _unpacked(state: Any) -> Any:
    if isinstance(state, dict):
        if set(state) == {"array", "dtype"}:
            return np.frombuffer(_bytes(state["array"]), state["dtype"]).copy()
        return {name: _unpacked(value) for name, value in state.items()}
    return state


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
