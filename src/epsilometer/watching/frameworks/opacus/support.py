"""Which trainings can be audited, and why others are not: better no verdict than a wrong one."""

from __future__ import annotations

import dis
import functools
import inspect
import types
from typing import Any

import torch

from epsilometer.watching.collect.randomness import DEVICES
from epsilometer.watching.settings import MODEL

_PLAIN = (type(None), bool, int, float, str)


def why_not(optimizer: Any, module: Any, place: str) -> str:
    """Why steps of this optimizer, as it is now, are not audited by canaries there; empty if they are."""
    another = _shared(optimizer) or another_mechanism(optimizer)
    return another or _disturbed(optimizer, place) or _out_of_reach(optimizer, module)


def _shared(optimizer: Any) -> str:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        size = torch.distributed.get_world_size()
        if size > 1:
            return f"it trains on {size} processes, which share one step and its noise"
    if any("Distributed" in one.__name__ or "FSDP" in one.__name__ for one in type(optimizer).__mro__):
        return f"{type(optimizer).__name__} shares a step and its noise between processes"
    return ""


def another_mechanism(optimizer: Any) -> str:
    """Why what it does is not what Opacus' accountants count, and may be right all the same."""
    names = {one.__name__ for one in type(optimizer).__mro__}
    if "AdaClipDPOptimizer" in names or hasattr(optimizer, "_adjusted_noise_multiplier"):
        return "adaptive clipping releases noisy counts beside the gradients, and canaries do not see those"
    if not str(getattr(type(optimizer).step, "__module__", "")).startswith("opacus"):
        return f"{type(optimizer).__name__}.step is the script's own, and may add noise that canaries do not see"
    return ""


def _disturbed(optimizer: Any, place: str) -> str:
    """Canaries of the model go through clipping once more, those on an extra parameter through all of a step."""
    outside = _state_outside(optimizer, _CLIPPING if place == MODEL else (*_CLIPPING, *_AFTER))
    if outside:
        return f"{outside}, which canaries could disturb" + ("" if place == MODEL else "; try --canaries model")
    own = _state_of_its_own(optimizer)
    if own:
        return f"{type(optimizer).__name__} keeps state of the script's own ({own}), which canaries could disturb"
    return ""


def _out_of_reach(optimizer: Any, module: Any) -> str:
    parameters = optimizer.params
    if parameters and parameters[0].device.type not in DEVICES:
        return f"parameters are on {parameters[0].device.type!r}, where generators cannot be put back"
    if is_ghost(optimizer) and not ghost_clipping(module):
        return "the module of ghost clipping has no get_clipping_coef"
    return ""


def is_ghost(optimizer: Any) -> bool:
    """Does the module clip, in its backward pass, and the optimizer only add noise?"""
    return any(one.__name__ == "DPOptimizerFastGradientClipping" for one in type(optimizer).__mro__)


def communicates(module: Any) -> bool:
    """Does a pass through it make processes wait for each other?"""
    return any(
        kind.__name__ in ("DistributedDataParallel", "FSDPModule", "FullyShardedDataParallel")
        for part in module.modules()
        for kind in type(part).__mro__
    )


def is_sharded(optimizer: Any) -> bool:
    """Has each process a part of every parameter, with noise of its own?"""
    return any("FSDP" in one.__name__ for one in type(optimizer).__mro__)


def skips(optimizer: Any) -> bool:
    """Is what comes next one of several physical batches of a step, without noise?"""
    queue = optimizer._step_skip_queue
    return bool(queue and queue[0])


def ghost_clipping(module: Any) -> str:
    """The name of the method by which a ghost module clips: it changed after 1.5.2."""
    return next((name for name in ("get_clipping_coef", "get_coeff") if hasattr(module, name)), "")


def _stateless(function: Any) -> bool:
    """Functions of C, and objects of libraries that can be called; one of the script's own may count its calls."""
    owner = function.__self__ if isinstance(function, types.MethodType) else function
    kind = owner if isinstance(owner, type) else type(owner)
    return str(kind.__module__).partition(".")[0] in _LIBRARIES or isinstance(function, type)


def own_clipping(module: Any) -> Any:
    """What a script has put on a ghost module in the place of its clipping, if that may be asked once more."""
    own = vars(module).get(ghost_clipping(module))
    function = getattr(own, "__func__", own)
    return own if isinstance(function, types.FunctionType) and not _changes(function, _DEPTH) else None


def _state_of_its_own(optimizer: Any) -> str:
    """An attribute, beyond Opacus' own, that a second call could change for good."""
    if str(type(optimizer).__module__).startswith("opacus"):
        return ""
    known = {"original_optimizer", "noise_multiplier", "max_grad_norm", "max_grad_norms", "loss_reduction", "generator"}
    known |= {"expected_batch_size", "step_hook", "secure_mode", "_step_skip_queue", "_is_last_step_skipped"}
    known |= {"param_groups", "state", "defaults", "step", "_step_count", "_opt_called"}  # older versions, schedulers
    own = (name for name, value in vars(optimizer).items() if name not in known and not isinstance(value, _PLAIN))
    return next(own, "")


_CLIPPING, _AFTER = ("clip_and_accumulate", "accumulate"), ("add_noise", "scale_grad", "pre_step")
_FIXED = (type(None), bool, int, float, complex, str, bytes, tuple, frozenset, type, types.ModuleType)
_LIBRARIES = ("opacus", "torch", "numpy", "builtins", "functools", "epsilometer")
_DEPTH = 3  # functions that call functions


def _state_outside(optimizer: Any, methods: tuple[str, ...]) -> str:
    """Where code of the script's own, on the way of a step, keeps or changes something that is not the optimizer's."""
    for name in methods:
        method = getattr(optimizer, name, None)
        if method is None:
            continue
        inner = inspect.unwrap(method)
        function, owner = inspect.unwrap(getattr(inner, "__func__", inner)), getattr(inner, "__self__", optimizer)
        if not isinstance(function, types.FunctionType):
            owner = function
        # An object in the place of a method, or whose method that is, may count its calls.
        found = "" if owner is optimizer or _stateless(owner) else type(owner).__name__
        if not found and isinstance(function, types.FunctionType):
            found = _changes(function, _DEPTH)
        if found:
            return f"{type(optimizer).__name__}.{name} keeps {found!r} outside of the optimizer"
    return ""


@functools.lru_cache(maxsize=256)  # asked in every step
def _changes(function: types.FunctionType, depth: int) -> str:
    """A variable that a function could change beside its own."""
    if str(function.__module__).partition(".")[0] in ("opacus", "torch", "numpy", "epsilometer"):
        return ""
    stored = {one.argval for one in dis.get_instructions(function) if one.opname in ("STORE_GLOBAL", "STORE_DEREF")}
    stored -= set(function.__code__.co_cellvars)  # its own, of functions within it
    if stored:
        return str(min(stored))
    if any(not isinstance(one, _FIXED) and not callable(one) for one in function.__defaults__ or ()):
        return "a default of its arguments"
    used = inspect.getclosurevars(function)
    for name, value in {**used.globals, **used.nonlocals}.items():
        if isinstance(value, types.FunctionType):
            found = _changes(value, depth - 1) if depth else name
            if found:
                return found
        elif not isinstance(value, _FIXED) and not (callable(value) and _stateless(value)):
            return name
    return ""
