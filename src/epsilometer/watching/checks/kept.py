"""What the inner optimizer steps with: the noisy gradient, or something that a script has put in its place."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from epsilometer.watching.checks.check import Finding, failed, not_applicable, passed

if TYPE_CHECKING:
    from epsilometer.watching.checks.seen import SeenTraining

_TOLERANCE = 1e-3  # of its size, beside a common factor


class KeptGradients:
    """Gradients as the private optimizer leaves them, against those that the optimizer within it then finds."""

    def __init__(self, optimizer: Any, name_of: Callable[[torch.Tensor], str]) -> None:
        self._optimizer, self._name_of = optimizer, name_of
        self._left: dict[int, torch.Tensor] = {}
        self.steps = 0
        self.changed: dict[str, int] = {}  # steps in which a parameter's gradient was another one
        self._handle: Any = register_optimizer_step_pre_hook(self._about_to_step)

    def leave(self) -> None:
        """Clipping, noise and scaling are done."""
        self._left = {id(p): p.grad.detach().clone() for p in self._optimizer.params if p.grad is not None}

    def _about_to_step(self, optimizer: Any, *_: Any) -> None:
        with suppress(Exception):  # what goes wrong in here is no business of the script
            if optimizer is self._optimizer.original_optimizer and self._left:
                self._compare()

    def _compare(self) -> None:
        left, self._left = self._left, {}
        self.steps += 1
        for p in self._optimizer.params:
            if p.grad is not None and id(p) in left and not _proportional(left[id(p)], p.grad.detach()):
                name = self._name_of(p)
                self.changed[name] = self.changed.get(name, 0) + 1

    def close(self) -> None:
        self._handle.remove()


def noise_kept(seen: SeenTraining) -> Finding:
    """What comes after the noise may not bring back what it hides; a factor, as in scaling or clipping, cannot."""
    kept = seen.kept
    if not kept.steps:
        return not_applicable("no step of the optimizer that make_private was given was seen")
    if kept.changed:
        name, times = max(kept.changed.items(), key=lambda item: item[1])
        return failed(
            f"the gradient of {name} was another one in {times} of {kept.steps} steps than clipping and noise had left "
            f"({len(kept.changed)} parameters)",
            "the noisy gradient, or a multiple of it",
            "leave p.grad alone between pre_step and step; what looks at noisy gradients only may be ignored",
        )  # fmt: skip
    return passed(f"{kept.steps} steps with the gradients that clipping and noise had left")


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
