"""What a script tells an accountant of Opacus, dp-accounting, autodp or TensorFlow Privacy: noise multiplier, sample
rate and steps."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any

_SAME = 1e-3  # of two noise multipliers
_ROUNDING = 1.02  # of steps that are counted by epochs

Entry = tuple[float, float, int]


class Told:
    """Of this process: what every accountant was told, in order; some are told of a training that is only planned."""

    def __init__(self) -> None:
        self._all: dict[int, tuple[Any, str, list[Entry]]] = {}

    def note(self, accountant: Any, name: str, sigma: Any, rate: Any, steps: Any) -> None:
        """By the accountant itself, or by a call of a function."""
        entry = float(sigma), float(rate), int(steps)
        self._all.setdefault(id(accountant), (accountant, name, []))[2].append(entry)

    def of(self, sigma: float, taken: int) -> tuple[str, list[Entry]] | None:
        """The name of the one that counts steps of this noise multiplier, and all that it was told; the one that has
        most steps. Epochs are no whole number of steps."""
        found = [
            (sum(steps for *_, steps in told), name, told)
            for _, name, told in self._all.values()
            if told and all(abs(one - sigma) <= _SAME * sigma for one, *_ in told)
        ]
        if not found:
            return None
        total, name, told = max(found, key=lambda one: one[0])
        if total < taken <= _ROUNDING * total + 1:
            told = [*told[:-1], (*told[-1][:2], told[-1][2] + taken - total)]
        return name, _merged(told)


TOLD = Told()


def attach(module: Any) -> None:
    """To a module that was imported, if it has an accountant."""
    name = module.__name__
    if name.startswith("opacus.accountants"):
        for one in vars(module).values():
            if isinstance(one, type) and one.__module__ == name and "step" in vars(one):
                _follow(one, "step", _of_opacus)
    elif name.startswith("dp_accounting"):
        _follow(module.PrivacyAccountant, "compose", _of_dp_accounting)
    elif name.startswith("autodp"):
        _follow(module.anaRDPacct, "compose_subsampled_mechanism", _of_autodp)
    elif hasattr(module, "compute_dp_sgd_privacy"):
        _follow(module, "compute_dp_sgd_privacy", _of_tensorflow)


def _follow(owner: Any, name: str, tell: Callable[..., None]) -> None:
    original = getattr(owner, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def told(*arguments: Any, **named: Any) -> Any:
        found = original(*arguments, **named)
        with suppress(Exception):  # another version
            tell(**inspect.signature(original).bind(*arguments, **named).arguments)
        return found

    setattr(owner, name, told)


def _of_opacus(self: Any, noise_multiplier: Any, sample_rate: Any, **_: Any) -> None:
    TOLD.note(self, type(self).__name__, noise_multiplier, sample_rate, 1)


def _of_dp_accounting(self: Any, event: Any, count: int = 1, **_: Any) -> None:
    rate = 1.0
    while not hasattr(event, "noise_multiplier"):
        count *= getattr(event, "count", 1)
        rate *= getattr(event, "sampling_probability", 1.0)
        event = event.event
    TOLD.note(self, type(self).__name__, event.noise_multiplier, rate, count)


def _of_autodp(self: Any, func: Any, prob: float, coeff: int = 1, **_: Any) -> None:
    """It is told a curve: that of a Gaussian is α/(2σ²)."""
    TOLD.note(self, type(self).__name__, (2 / (2 * float(func(2)))) ** 0.5, prob, coeff)


def _of_tensorflow(n: int, batch_size: int, noise_multiplier: float, epochs: float, **_: Any) -> None:
    call = (n, batch_size, noise_multiplier, epochs)
    kept = _CALLS.setdefault(call, [call])
    TOLD.note(kept, "compute_dp_sgd_privacy", noise_multiplier, batch_size / n, -(-epochs * n // batch_size))


_CALLS: dict[Any, list[Any]] = {}  # kept as accountants are


def _merged(told: list[Entry]) -> list[Entry]:
    """Runs of the same steps."""
    found: list[Entry] = []
    for sigma, rate, steps in told:
        if found and found[-1][:2] == (sigma, rate):
            found[-1] = sigma, rate, found[-1][2] + steps
        else:
            found.append((sigma, rate, steps))
    return found
