"""What the inner optimizer steps with: the noisy gradient, or something that a script has put in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from epsilometer.watching.collect.noise import NoisySum

_TOLERANCE = 1e-3  # of its size, beside a common factor


class KeptGradients:
    """Gradients as noise leaves them, against those that the optimizer within finds before its step, and leaves after
    it: whoever changes them in between, or in a hook of that step, may bring back what the noise hides."""

    def __init__(
        self,
        parameters: Callable[[], Iterable[torch.Tensor]],
        optimizer: Callable[[], Any],
        name_of: Callable[[torch.Tensor], str],
    ) -> None:
        """Who is private, and who takes the step, as it is at any time."""
        self._parameters, self._optimizer, self._name_of = parameters, optimizer, name_of
        self._left: dict[int, torch.Tensor] = {}
        self.steps = 0
        self.changed: dict[str, int] = {}  # steps in which a parameter's gradient was another one
        self._handles: list[Any] = [
            register_optimizer_step_pre_hook(self._before_step),
            register_optimizer_step_post_hook(self._after_step),
        ]
        self._found: set[str] = set()  # of the step under way

    def leave(self, sums: Iterable[NoisySum]) -> None:
        """Clipping and noise are done."""
        self._left = {id(one.parameter): one.noisy.detach().clone() for one in sums}
        self._found = set()

    def taken_off(self, parameter: torch.Tensor, index: Any, values: torch.Tensor) -> None:
        """Canaries of ours, which were in the gradient when noise had been added."""
        if id(parameter) in self._left:
            self._left[id(parameter)][index] -= values

    def _before_step(self, optimizer: Any, *_: Any) -> None:
        with suppress(Exception):  # what goes wrong in here is no business of the script
            if optimizer is self._optimizer() and self._left:
                self.steps += 1
                self._compare()

    def _after_step(self, optimizer: Any, *_: Any) -> None:
        with suppress(Exception):
            if optimizer is self._optimizer() and self._left:
                self._compare()
                self._left = {}

    def _compare(self) -> None:
        for p in self._parameters():
            left = self._left.get(id(p))
            name = self._name_of(p)
            if p.grad is None or left is None or name in self._found or _proportional(left, p.grad.detach()):
                continue
            self._found.add(name)
            self.changed[name] = self.changed.get(name, 0) + 1

    def close(self) -> None:
        for handle in self._handles:
            handle.remove()


def _proportional(before: torch.Tensor, now: torch.Tensor) -> bool:
    """A multiple of it, within rounding; NaN is nobody's secret."""
    if before.shape != now.shape:
        return False
    if torch.equal(before, now):
        return True
    before, now = before.reshape(-1).double(), now.reshape(-1).double()
    if not bool(torch.isfinite(before).all() and torch.isfinite(now).all()):
        return True
    size = float(before @ before)
    rest = now - before * (float(before @ now) / size) if size else now
    return float(rest.norm()) <= _TOLERANCE * float(now.norm())
