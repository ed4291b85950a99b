"""What records added to the sums of an Opacus training, seen where `clip_and_accumulate` has made a sum of them."""

from __future__ import annotations

from typing import Any

import torch

from epsilometer.watching.collect.aside import Aside
from epsilometer.watching.collect.shares import RecordShares
from epsilometer.watching.facts import Shares


class SeenShares(Aside):
    """Told of every physical batch that was clipped, and of the noise of the step."""

    def __init__(self) -> None:
        super().__init__()
        self.tally = RecordShares()
        self._before: dict[int, torch.Tensor] = {}  # sums of earlier physical batches of this step
        self._done = False

    def clipped(self, optimizer: Any, step: int, *, more: bool) -> None:
        """Right after clipping; with `more` to come, the sum is kept for the next one."""
        self._done = True
        with torch.no_grad(), self.look():
            parameters = [p for p in optimizer.params if getattr(p, "summed_grad", None) is not None]
            due = bool(parameters) and self.tally.due(_records(parameters[0]))
            if due:
                self._add(optimizer, parameters, step)
            self._before = {id(p): p.summed_grad.detach().clone() for p in parameters} if more else {}

    def noised(self, optimizer: Any, limit: float, step: int) -> None:
        """Right after noise; whoever replaced the clipping of the optimizer itself was not seen before."""
        if not self._done:
            self.clipped(optimizer, step, more=False)
        self._done = False
        self.tally.noised(limit, step)

    def _add(self, optimizer: Any, parameters: list[Any], step: int) -> None:
        rows = [row for p in parameters if (row := _rows(p)) is not None]
        limits = [float(one) for one in getattr(optimizer, "max_grad_norms", None) or [optimizer.max_grad_norm]]
        if len(rows) != len(parameters) or len({len(row) for row in rows}) != 1 or len(limits) not in (1, len(rows)):
            return
        sums = [p.summed_grad.detach() for p in parameters]
        added = [
            total if id(p) not in self._before else total - self._before[id(p)]
            for p, total in zip(parameters, sums, strict=True)
        ]
        self.tally.add(rows, added, limits, step)

    def multiplied(self, module: Any, factors: torch.Tensor, step: int) -> None:
        """Ghost clipping: what records are multiplied by before the backward pass that sums them."""
        with self.look():
            norms = [p._norm_sample.detach().cpu() for p in module.trainable_parameters]
            self.tally.clipped(torch.stack(norms).norm(dim=0), factors, step)

    def facts(self) -> Shares | str:
        tally = self.tally
        if self.trouble:
            return self.trouble
        if tally.worst is None and tally.not_finite is None:
            unknown = f"of {tally.unexplained} sums it is not known what records they are made of"
            return unknown if tally.unexplained else "gradients of single records were not seen"
        _, share, limit, step = tally.worst or (0.0, None, 0.0, 0)
        bad_step, bad = tally.not_finite or (0, 0)
        moved, norm = (share.moved, share.norm) if share else (0.0, 0.0)
        return Shares(tally.looked, tally.unexplained, moved, norm, limit, step, bad, bad_step)


def _records(parameter: Any) -> int:
    kept = getattr(parameter, "grad_sample", None)
    return sum(map(len, kept)) if isinstance(kept, list) else len(kept) if isinstance(kept, torch.Tensor) else 0


def _rows(parameter: Any) -> torch.Tensor | None:
    """Gradients of single records, of all backward passes since the last step."""
    kept = getattr(parameter, "grad_sample", None)
    if isinstance(kept, list):
        return torch.cat(kept) if kept else None
    return kept if isinstance(kept, torch.Tensor) else None
