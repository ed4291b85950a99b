"""Individual accounting of an Opacus training (Yu et al. 2023): gradient norms of chosen records before every step.

Norms are computed on a copy of the module without hooks, with the live parameters: gradients, per-sample gradients and
generators of the training are not touched.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.errors import InvalidInput

if TYPE_CHECKING:
    from epsilometer.accounting import UpperBound

CHUNK = 64  # records whose gradients are held at once
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class RecordNorms:
    """What was seen of some records: their clipped gradients' norms / C, a row a step."""

    def __init__(self, module: Any, x: Any, y: Any, criterion: Callable[[Any, Any], Any], every: int = 1) -> None:
        self._live = getattr(module, "_module", module)
        self._copy = _without_hooks(self._live)
        self._x, self._y, self._criterion = torch.as_tensor(x), torch.as_tensor(y), criterion
        if not len(self._x) or len(self._x) != len(self._y):
            raise InvalidInput("x, y", f"{len(self._x)} and {len(self._y)}", "as many labels as records")
        dropping = [m for m in self._copy.modules() if isinstance(m, torch.nn.modules.dropout._DropoutNd) and m.p > 0]
        if dropping:
            raise InvalidInput("module", type(dropping[0]).__name__, "no dropout: a record's gradient would be random")
        self._every = validate.whole("every", every, least=1)
        self._steps = 0
        self._rows: list[tuple[Floats, float, float]] = []  # shares, noise multiplier, sample rate
        self.failed = ""

    def look(self) -> Floats | None:
        """Norms of all records at the model as it is now; none where the last ones are to be used again."""
        if self._steps % self._every:
            return None
        parameters = {name: value.detach() for name, value in self._live.named_parameters()}
        buffers = {name: value.detach() for name, value in self._live.named_buffers()}
        trained = {name for name, value in self._live.named_parameters() if value.requires_grad}
        moved = {name: value for name, value in parameters.items() if name in trained}
        fixed = {name: value for name, value in parameters.items() if name not in trained} | buffers

        def loss(moved: dict[str, Any], x: Any, y: Any) -> Any:
            output = torch.func.functional_call(self._copy, {**moved, **fixed}, (x[None],))
            return self._criterion(output, y[None])

        gradients = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0), randomness="error")
        found = []
        for start in range(0, len(self._x), CHUNK):
            parts = gradients(moved, self._x[start : start + CHUNK], self._y[start : start + CHUNK])
            squares = sum(part.double().flatten(1).square().sum(dim=1) for part in parts.values())
            found.append(torch.sqrt(torch.as_tensor(squares)).cpu().numpy())
        return np.concatenate(found)

    def before_step(self) -> Floats | None:
        """What `look` gives; whatever fails ends this account, and not the training."""
        if self.failed:
            return None
        try:
            return self.look()
        except Exception as error:
            self.fail(f"their gradients failed ({type(error).__name__}: {str(error)[:300]})")
            return None

    def after_step(self, norms: Floats | None, optimizer: Any, accounted: tuple[int, Any] | None) -> None:
        """The step was a real one; `accounted` is the last entry of the accountant's history."""
        if self.failed:
            return
        if accounted is None or hasattr(optimizer, "max_grad_norms"):
            self.fail("nothing is accounted for" if accounted is None else "clipping by layer is not supported")
            return
        sigma, rate = float(accounted[1][0]), float(accounted[1][1])
        self.keep(norms, float(optimizer.max_grad_norm), sigma, rate)

    def keep(self, norms: Floats | None, clip_norm: float, noise_multiplier: float, sample_rate: float) -> None:
        """The step was a real one, and was accounted for like this."""
        self._steps += 1
        shares = self._rows[-1][0] if norms is None else np.minimum(np.asarray(norms, np.float64) / clip_norm, 1.0)
        self._rows.append((shares, noise_multiplier, sample_rate))

    def fail(self, reason: str) -> None:
        """Nothing can be said of the records any more; the training goes on."""
        self.failed = self.failed or reason

    @property
    def shares(self) -> Floats:
        return np.array([row[0] for row in self._rows])

    def epsilons(self, delta: float, accountant: str = "rdp") -> Floats:
        """ε of each record for this training so far, none above the worst case: private itself (see
        `epsilometer.instances`). With `every` above 1, norms in between are a guess."""
        from epsilometer.instances import individual_epsilons

        mechanism, shares = self._mechanism()
        found = individual_epsilons(shares, mechanism, delta, accountant=accountant)
        return np.minimum(found, self.worst_case(delta).epsilon)

    def worst_case(self, delta: float) -> UpperBound:
        """What the same steps promise for every record."""
        from epsilometer.accounting import account

        return account(self._mechanism()[0], delta)

    def _mechanism(self) -> tuple[Any, Floats]:
        """Steps as if all had the least noise and the largest rate that any had: a record of norm s under noise σ is
        one of norm s·σ₀/σ under noise σ₀."""
        from epsilometer.accounting import DpSgd

        if self.failed:
            raise InvalidInput("records", self.failed, "norms of every step", "they cannot be accounted for")
        if not self._rows:
            raise InvalidInput("records", "no step so far", "at least one step of the training")
        noises = np.array([row[1] for row in self._rows])
        if not (np.isfinite(noises) & (noises > 0)).all():
            raise InvalidInput("noise_multiplier", float(noises.min()), "noise in every step")
        least = float(noises.min())
        rate = max(row[2] for row in self._rows)
        return DpSgd(rate, least, len(self._rows)), self.shares * (least / noises)[:, None]


def _without_hooks(module: Any) -> Any:
    """A copy that computes the same and tells nobody."""
    copied = copy.deepcopy(module)
    for one in copied.modules():
        for name in _HOOKS:
            getattr(one, name, {}).clear()
    return copied
