"""By how much single records moved a sum of clipped gradients: from their gradients and the sum that came of them.

Clipping multiplies the gradient of every record by a factor. Where the factors of a sum can be told, so can the length
of each record's part, whoever clipped, and in the very step in which it happened.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch

_LOOK = 256  # coordinates at which a sum is compared
_CLOSE = 1e-3  # of its length; numbers of 32 bits are summed
_COARSE = 1e-6  # resolution of numbers in which nothing can be told
_SOLVED = 20_000_000  # numbers, above which a sum is not taken apart
_INDEPENDENT = 1e-7  # least over largest eigenvalue of gradients that can be told apart
_FIRST, _EVERY = 4, 10  # sums that are looked at, and one in how many of those that follow


@dataclass(frozen=True)
class Share:
    """The longest part of a sum: its length, and the norm of that record's gradient before clipping."""

    moved: float
    norm: float


class RecordShares:
    """Of one training, the part of a sum that was longest beside the norm for which its noise is made."""

    def __init__(self) -> None:
        self.looked = self.unexplained = 0  # sums
        self.worst: tuple[float, Share, float, int] | None = None  # ratio, share, limit, step
        self.not_finite: tuple[int, int] | None = None  # the first step with such a record, and how many it had
        self._under_way: list[Share] = []
        self._turn = self._rows = 0
        self._next = 0  # to be looked at
        self._draw = random.Random(0)

    def due(self, rows: int) -> bool:
        """Is this sum to be looked at? The first ones, small batches (often the last of an epoch) and some others."""
        small = 2 * rows * self._turn < self._rows
        self._turn += 1
        self._rows += rows
        if self._turn <= _FIRST or small or self._turn >= self._next:
            self._next = self._turn + self._draw.randint(1, 2 * _EVERY - 1)
            return True
        return False

    def add(
        self, rows: Sequence[torch.Tensor], sums: Sequence[torch.Tensor], limits: Sequence[float], step: int
    ) -> None:
        """A sum and the gradients that it was made of, clipped at this norm (one for each parameter: by layer)."""
        if not len(rows[0]) or any(torch.finfo(one.dtype).eps > _COARSE for one in (*rows, *sums)):
            return
        flat = [one.detach().reshape(len(one), -1) for one in rows]
        norms = torch.stack([one.norm(dim=1) for one in flat], 1)
        bad = int((~torch.isfinite(norms).all(1)).sum())
        if bad:
            self.not_finite = self.not_finite or (step, bad)
            return
        self.looked += 1
        share = _share(flat, [one.detach().reshape(-1) for one in sums], norms.double(), limits)
        if share is None:
            self.unexplained += 1
        else:
            self._under_way.append(share)

    def clipped(self, norms: torch.Tensor, factors: torch.Tensor, step: int) -> None:
        """The same where a sum is formed by a backward pass: what records are multiplied by is seen itself."""
        norms, factors = norms.detach().double().cpu(), factors.detach().double().cpu()
        bad = int((~torch.isfinite(norms)).sum())
        if bad:
            self.not_finite = self.not_finite or (step, bad)
            return
        if len(norms) and norms.shape == factors.shape:
            self.looked += 1
            self._under_way.append(_longest(norms * factors, norms))

    def noised(self, limit: float, step: int) -> None:
        """The step gets noise that hides parts up to this length."""
        for share in self._under_way:
            ratio = share.moved / limit if limit > 0 else 0.0
            if self.worst is None or ratio > self.worst[0]:
                self.worst = ratio, share, limit, step
        self._under_way = []


def _share(
    flat: list[torch.Tensor], sums: list[torch.Tensor], norms: torch.Tensor, limits: Sequence[float]
) -> Share | None:
    """The longest part, if one of these made the sum: clipping at the stated norm, one factor for all, clipping at
    another norm, or any factors at all."""
    total = norms.norm(dim=1)
    seen = _Coordinates(flat, sums, norms)
    if len(limits) == 1:
        usual = (limits[0] / (total + 1e-6)).clamp(max=1.0)
        if seen.made_by(usual):
            return _longest(usual * total, total)
    else:
        layered = (torch.tensor(limits).to(norms) / (norms + 1e-6)).clamp(max=1.0)
        if seen.made_by(layered):
            return _longest((layered * norms).norm(dim=1), total)
    plain = [one.sum(0) for one in flat]
    length = sum(float(one.double() @ one.double()) for one in plain)
    if length:
        factor = sum(float(a.double() @ b.double()) for a, b in zip(plain, sums, strict=True)) / length
        if seen.made_by(torch.full_like(total, factor)):
            return _longest(abs(factor) * total, total)
    another = _clipped_at(flat, sums, total)
    if another is not None and seen.made_by(another):
        return _longest(another * total, total)
    return _taken_apart(flat, sums, total)


class _Coordinates:
    """A few of every parameter, at which a sum is compared with what factors would make of the gradients."""

    def __init__(self, flat: list[torch.Tensor], sums: list[torch.Tensor], norms: torch.Tensor) -> None:
        each = max(1, _LOOK // len(flat))
        chosen = [_chosen(len(total), each, place, str(total.device)) for place, total in enumerate(sums)]
        self._each, self._norms = each, norms
        self._gradients = torch.cat([one[:, here] for one, here in zip(flat, chosen, strict=True)], 1).to(norms)
        self._sum = torch.cat([total[here] for total, here in zip(sums, chosen, strict=True)]).to(norms)

    def made_by(self, factors: torch.Tensor) -> bool:
        """One factor for each record, or one for each of its parameters."""
        if factors.dim() == 1:
            made = factors @ self._gradients
            parts = factors @ self._norms.norm(dim=1)
        else:
            made = (factors.repeat_interleave(self._each, 1) * self._gradients).sum(0)
            parts = (factors * self._norms).sum()
        rounding = 1e-6 * abs(float(parts))  # parts may cancel each other
        return bool(float((made - self._sum).norm()) <= _CLOSE * float(made.norm()) + rounding)


@functools.lru_cache(maxsize=1024)
def _chosen(size: int, each: int, place: int, device: str) -> torch.Tensor:
    """By a generator of ours: the script's random numbers are its own."""
    return torch.randint(size, (each,), generator=torch.Generator().manual_seed(place)).to(device)


def _clipped_at(flat: list[torch.Tensor], sums: list[torch.Tensor], total: torch.Tensor) -> torch.Tensor | None:
    """Factors of clipping at the norm with which the sum comes nearest along its own direction."""
    along = sum((gradients @ whole.to(gradients)).double() for gradients, whole in zip(flat, sums, strict=True))
    aim = sum(float(whole.double() @ whole.double()) for whole in sums)
    if not isinstance(along, torch.Tensor):
        return None
    low, high = 0.0, float(total.max())
    for _ in range(50):
        middle = (low + high) / 2
        found = float(((middle / (total + 1e-6)).clamp(max=1.0) * along).sum())
        low, high = (middle, high) if found < aim else (low, middle)
    factors: torch.Tensor = (low / (total + 1e-6)).clamp(max=1.0)
    return factors


def _taken_apart(flat: list[torch.Tensor], sums: list[torch.Tensor], total: torch.Tensor) -> Share | None:
    """Any factors, where gradients are independent and so leave no choice."""
    rows, size = len(total), sum(len(one) for one in sums)
    if rows > size or rows * size > _SOLVED:
        return None
    there = total > 0
    gradients = torch.cat([one[there.to(one.device)].double() for one in flat], 1) / total[there][:, None]
    whole = torch.cat([one.double() for one in sums])
    products = gradients @ gradients.T
    values = torch.linalg.eigvalsh(products)
    if not len(values) or float(values[0]) < _INDEPENDENT * float(values[-1]):
        return None
    parts = torch.linalg.solve(products, gradients @ whole)
    if float((parts @ gradients - whole).norm()) > _CLOSE * float(whole.norm()):
        return None  # something else is in the sum: noise, perhaps
    return _longest(parts.abs(), total[there])


def _longest(parts: torch.Tensor, norms: torch.Tensor) -> Share:
    place = int(parts.argmax())
    return Share(float(parts[place]), float(norms[place]))
