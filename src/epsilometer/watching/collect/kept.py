"""What the inner optimizer steps with: the noisy gradient, or something that a script has put in its place."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from epsilometer.watching.collect.drawn import NoisySum, squared

_TOLERANCE = 1e-3  # of its size, beside a common factor
_SMALL = 1 << 14  # values of tensors that are compared together
_LEAST, _MOST = 1e-30, 1e30  # squares between which float32 has all its digits


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
        self._left: list[_Piece] = []
        self.steps = 0
        self.changed: dict[str, int] = {}  # steps in which a parameter's gradient was another one
        self._handles: list[Any] = [
            register_optimizer_step_pre_hook(self._before_step),
            register_optimizer_step_post_hook(self._after_step),
        ]
        self._found: set[int] = set()  # of the step under way

    def leave(self, sums: Iterable[NoisySum]) -> None:
        """Clipping and noise are done."""
        together: dict[Any, list[NoisySum]] = {}
        for one in sums:
            alone = one.noisy.numel() > _SMALL
            kind = id(one.parameter) if alone else (one.noisy.device, one.noisy.dtype)
            together.setdefault(kind, []).append(one)
        self._left = [_Piece(members) for members in together.values()]
        self._found = set()

    def taken_off(self, parameter: torch.Tensor, index: Any, values: torch.Tensor) -> None:
        """Canaries of ours, which were in the gradient when noise had been added."""
        for piece in self._left:
            for member, left in piece.members():
                if member is parameter:
                    left[index] -= values

    def _before_step(self, optimizer: Any, *_: Any) -> None:
        with suppress(Exception):  # what goes wrong in here is no business of the script
            if optimizer is self._optimizer() and self._left:
                self.steps += 1
                self._compare()

    def _after_step(self, optimizer: Any, *_: Any) -> None:
        with suppress(Exception):
            if optimizer is self._optimizer() and self._left:
                self._compare()
                self._left = []

    def _compare(self) -> None:
        private = {id(p) for p in self._parameters()}
        for piece in self._left:
            for p in piece.changed():
                if id(p) in private and id(p) not in self._found:
                    self._found.add(id(p))
                    name = self._name_of(p)
                    self.changed[name] = self.changed.get(name, 0) + 1

    def close(self) -> None:
        for handle in self._handles:
            handle.remove()


class _Piece:
    """A large tensor, or several small ones at once: all values of each are compared."""

    def __init__(self, sums: list[NoisySum]) -> None:
        self._parameters = [one.parameter for one in sums]
        self._shapes = [one.noisy.shape for one in sums]
        self._left = torch.cat([one.noisy.detach().reshape(-1) for one in sums])  # a copy
        self._mark: list[float] = []  # of gradients that were compared

    def members(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Each parameter with what was left for it."""
        parts = torch.split(self._left, [math.prod(shape) for shape in self._shapes])
        views = (part.view(shape) for part, shape in zip(parts, self._shapes, strict=True))
        return list(zip(self._parameters, views, strict=True))

    def changed(self) -> list[torch.Tensor]:
        """Parameters whose gradients are no multiples of what was left."""
        now = [p.grad.detach() for p in self._parameters if p.grad is not None]
        whole = len(now) == len(self._shapes) and all(g.shape == s for g, s in zip(now, self._shapes, strict=True))
        if whole and all(one.dtype == self._left.dtype for one in now) and self._all_alike(now):
            return []
        pairs = ((p, left, p.grad) for p, left in self.members() if p.grad is not None)
        return [p for p, left, now in pairs if not _proportional(left, now.detach())]

    def _all_alike(self, now: list[torch.Tensor]) -> bool:
        """Multiples of one factor, in each of them: enough, but not needed."""
        flat = now[0].reshape(-1) if len(now) == 1 else torch.cat([one.reshape(-1) for one in now])
        found = [torch.dot(self._left, flat), squared(flat)]
        mark: list[float] = torch.stack(found).tolist()
        if mark == self._mark:
            return True  # the very gradients that were compared before
        lengths = [squared(one.reshape(-1)) for one in now] if len(now) > 1 else found[1:]
        size, *least = torch.stack([squared(self._left), *lengths]).tolist()
        if not all(_LEAST < one < _MOST for one in (size, *least)):
            return False
        rest = squared(torch.sub(flat, self._left, alpha=mark[0] / size)).item()
        alike = bool(rest <= _TOLERANCE**2 * min(least))
        self._mark = mark if alike else []
        return alike


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
