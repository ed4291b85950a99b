"""What a training or an analysis does, as dp-accounting's events, flattened into parts with counts.

Every part is accounted once and then multiplied or composed here. dp-accounting 0.6.0 must not be given counts: its PLD
accountant takes n randomized responses for one.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from epsilometer import validate
from epsilometer.accounting.mechanism import DpSgd
from epsilometer.arrays import Floats
from epsilometer.errors import InvalidInput

MOST = 10**8  # times that a part may be repeated


@dataclass(frozen=True)
class ExponentialEvent:
    """A release of the exponential mechanism, which dp-accounting has no event for. It may stand wherever one of its
    own may."""

    epsilon: float
    of_whole_records: ClassVar[bool] = True  # its ε is of a changed record as well

    def __post_init__(self) -> None:
        validate.real("epsilon", self.epsilon, above=0)

    @property
    def pure(self) -> float:
        """ε at δ = 0."""
        return self.epsilon

    def divergences(self, orders: Floats) -> Floats:
        """Rényi divergences: a range of ε is ε²/8-zCDP (Cesar & Rogers 2021), and ε-DP."""
        return np.minimum(self.epsilon, orders * self.epsilon**2 / 8.0)


def own_event(value: Any) -> ExponentialEvent | None:
    """The event, if it is one of our own, which accounts for itself."""
    return value if isinstance(value, ExponentialEvent) else None


@dataclass(frozen=True, eq=False)
class Composition:
    """Unlike parts, one after another; each may depend on what those before it released.

    >>> from dp_accounting import ComposedDpEvent, GaussianDpEvent, LaplaceDpEvent, SelfComposedDpEvent
    >>> pca, sgd = GaussianDpEvent(16.0), SelfComposedDpEvent(GaussianDpEvent(8.0), 100)
    >>> Composition.of(ComposedDpEvent([pca, sgd, LaplaceDpEvent(2.0)])).describe()
    'GaussianDpEvent(16.0), 100 × GaussianDpEvent(8.0), LaplaceDpEvent(2.0)'
    """

    parts: tuple[tuple[Any, int], ...]

    @classmethod
    def of(cls, event: Any, count: int = 1) -> Composition:
        """The event `count` times; equal parts are put together."""
        return cls(()).plus(event, count)

    def plus(self, event: Any, count: int = 1) -> Composition:
        """The same, and then the event `count` times."""
        merged = list(self.parts)
        for leaf, times in _leaves(event, validate.whole("count", count, least=1, most=MOST)):
            place = next((i for i, (known, _) in enumerate(merged) if known == leaf), None)
            if place is None:
                merged.append((leaf, times))
            else:
                merged[place] = (leaf, validate.whole("count", merged[place][1] + times, least=1, most=MOST))
        return Composition(tuple(merged))

    @property
    def dp_sgd(self) -> DpSgd | None:
        """The same as DP-SGD, which every accountant takes: Gaussian noise, all of it sampled alike or none of it."""
        kinds = [sampled_gaussian(leaf) for leaf, _ in self.parts]
        if not kinds or any(kind is None for kind in kinds):
            return None
        found = [kind for kind in kinds if kind is not None]
        if len(found) == 1:
            (rate, noise), (_, count) = found[0], self.parts[0]
            return DpSgd(rate, noise, count)
        if any(rate < 1 for rate, _ in found):
            return None
        if any(noise == 0 for _, noise in found):
            return DpSgd(1.0, 0.0, 1)
        strength = sum(count / noise**2 for (_, noise), (_, count) in zip(found, self.parts, strict=True))
        return DpSgd(1.0, 1.0 / math.sqrt(strength), 1)

    def describe(self) -> str:
        shown = [f"{count} × {_shown(leaf)}" if count > 1 else _shown(leaf) for leaf, count in self.parts]
        return ", ".join(shown) or "nothing"

    def to_dict(self) -> dict[str, Any]:
        return {"parts": [{"event": repr(leaf), "count": count} for leaf, count in self.parts]}


def is_event(value: Any) -> bool:
    """Whether it is an event of dp-accounting, or ours."""
    if own_event(value) is not None:
        return True
    import dp_accounting  # half a second: only when it is needed

    return isinstance(value, dp_accounting.DpEvent)


def sampled_gaussian(leaf: Any) -> tuple[float, float] | None:
    """Sample rate and noise multiplier of Gaussian noise, of a Poisson sample or of all records."""
    import dp_accounting

    if isinstance(leaf, dp_accounting.GaussianDpEvent):
        return 1.0, _checked("noise_multiplier", leaf.noise_multiplier)
    if isinstance(leaf, dp_accounting.PoissonSampledDpEvent) and isinstance(leaf.event, dp_accounting.GaussianDpEvent):
        rate = validate.real("sampling_probability", leaf.sampling_probability, above=0, below=1, closed="[]")
        return (rate, _checked("noise_multiplier", leaf.event.noise_multiplier)) if rate > 0 else None
    return None


def _leaves(event: Any, count: int) -> Iterator[tuple[Any, int]]:
    import dp_accounting

    if isinstance(event, dp_accounting.SelfComposedDpEvent):
        times = validate.whole("count", event.count, least=0, most=MOST)
        if times:
            yield from _leaves(event.event, validate.whole("count", times * count, least=1, most=MOST))
    elif isinstance(event, dp_accounting.ComposedDpEvent):
        for part in event.events:
            yield from _leaves(part, count)
    elif not is_event(event):
        raise InvalidInput("event", event, "a DpSgd, or an event of dp_accounting such as GaussianDpEvent(1.0)")
    elif not isinstance(event, dp_accounting.NoOpDpEvent):
        yield event, count


def _checked(name: str, value: Any) -> float:
    return validate.real(name, value, above=0, closed="[")


def _shown(leaf: Any) -> str:
    values = ", ".join(_shown(v) if is_event(v) else repr(v) for v in _fields(leaf))
    return f"{type(leaf).__name__}({values})"


def _fields(leaf: Any) -> list[Any]:
    if own_event(leaf) is not None:
        return [getattr(leaf, field.name) for field in dataclasses.fields(leaf)]
    return [getattr(leaf, field.name) for field in type(leaf).__attrs_attrs__]
