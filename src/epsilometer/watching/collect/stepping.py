"""Around the step of the optimizer within: by what noisy sums are divided, and whether weights rest between steps."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from epsilometer.watching.collect.aside import Aside
from epsilometer.watching.collect.drawn import NoisySum
from epsilometer.watching.collect.ranks import local
from epsilometer.watching.facts import Between, Divisors

_FIRST, _EVERY = 12, 10  # steps that are looked at, and one in how many of those that follow
_MOST = 256  # steps whose divisors are kept
_LOOK = 64  # coordinates by which a divisor is found
_SAME = 1e-4
_SUMS = frozenset(("summed_grad", "grad_sample"))


class Stepping(Aside):
    """Told of noise and of clipping; torch's own hooks tell it of the step in between."""

    def __init__(self, optimizer: Callable[[], Any], name_of: Callable[[torch.Tensor], str]) -> None:
        super().__init__()
        self._optimizer, self._name_of = optimizer, name_of
        self._left: tuple[Any, torch.Tensor, int] | None = None  # parameter, noisy values, records in the batch
        self._rest: tuple[list[Any], torch.Tensor] | None = None  # parameters, and their norms after a step
        self.steps = self.compared = 0
        self.factors: list[list[float]] = []  # records, divisor, learning rate
        self.moved: tuple[int, str] | None = None  # after which step, and what
        self._handles = [
            register_optimizer_step_pre_hook(self._before),
            register_optimizer_step_post_hook(self._after),
        ]

    def noised(self, sums: Sequence[NoisySum], records: int | None) -> None:
        self._left = None
        with self.look(), torch.no_grad():
            if records and sums and self._due():
                largest = max(sums, key=lambda one: one.noisy.numel())
                self._left = largest.parameter, _some(largest.noisy).clone(), records

    def clipped(self) -> None:
        """Gradients of the next step are there: nothing should have moved since the last one."""
        rest, self._rest = self._rest, None
        with self.look(), torch.no_grad():
            if rest is None:
                return
            parameters, before = rest
            self.compared += 1
            changed = (_norms(parameters) != before).nonzero().reshape(-1).tolist()
            if changed and self.moved is None:
                self.moved = self.steps, self._name_of(parameters[changed[0]])

    def _due(self) -> bool:
        return self.steps < _FIRST or self.steps % _EVERY == 0

    def _before(self, optimizer: Any, *_: Any) -> None:
        with self.look(), torch.no_grad():
            if optimizer is not self._optimizer():
                return
            left, self._left = self._left, None
            if left is None or left[0].grad is None or len(self.factors) >= _MOST:
                return
            parameter, noisy, records = left
            divided = noisy.double() / _some(parameter.grad).double()
            divisor = float(divided.median())
            # Canaries of ours are taken off before the step, and a script may change some: most coordinates count.
            alike = ((divided / divisor - 1).abs() < _SAME).double().mean() if divisor else 0.0
            if float(alike) > 0.5:
                self.factors.append([float(records), divisor, float(optimizer.param_groups[0].get("lr", 1.0))])

    def _after(self, optimizer: Any, *_: Any) -> None:
        with self.look(), torch.no_grad():
            if optimizer is not self._optimizer():
                return
            self.steps += 1
            parameters = [p for group in optimizer.param_groups for p in group["params"] if p.numel()]
            self._rest = (parameters, _norms(parameters)) if self._due() and parameters else None

    def divisors(self) -> Divisors | str:
        return self.trouble or Divisors(self.factors)

    def between(self) -> Between | str:
        step, name = self.moved or (0, "")
        return self.trouble or Between(self.compared, step, name, reads_sums(self._optimizer()))

    def close(self) -> None:
        for handle in self._handles:
            handle.remove()


def _some(tensor: torch.Tensor) -> torch.Tensor:
    flat = local(tensor).reshape(-1)
    return flat[:: max(1, len(flat) // _LOOK)][:_LOOK]


def _norms(parameters: list[Any]) -> torch.Tensor:
    """One number a tensor: enough to see that somebody has moved it."""
    return torch.stack([one.double() for one in torch._foreach_norm([local(p) for p in parameters])])


def reads_sums(optimizer: Any) -> str:
    """Where code of an optimizer that is not torch's names the sums before noise, or single gradients."""
    methods: Iterable[Any] = (
        method
        for kind in type(optimizer).__mro__
        if not str(kind.__module__).startswith("torch")
        for method in vars(kind).values()
    )
    for method in (*vars(optimizer).values(), *methods):
        function = getattr(method, "__func__", method)
        function = inspect.unwrap(function) if callable(function) else None
        if isinstance(function, types.FunctionType) and not function.__module__.startswith(("torch", "epsilometer")):
            found = _named(function.__code__)
            if found:
                return f"{type(optimizer).__name__}.{function.__name__} reads {found}"
    return ""


def _named(code: types.CodeType) -> str:
    """Also in functions within it, and by getattr."""
    here = _SUMS & {*code.co_names, *(one for one in code.co_consts if isinstance(one, str))}
    inner = (_named(one) for one in code.co_consts if isinstance(one, types.CodeType))
    return min(here) if here else next(filter(None, inner), "")
