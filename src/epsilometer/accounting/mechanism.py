"""What is accounted for, and what an accountant says of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from epsilometer import validate
from epsilometer.errors import InvalidInput
from epsilometer.neighbours import RECORD, Relation, SpeaksOfNeighbours
from epsilometer.rounding import up


@dataclass(frozen=True)
class DpSgd:
    """DP-SGD as accountants see it: `steps` Gaussian releases of Poisson samples.

    The noise multiplier is σ in N(0, (σC)²), added to the sum of gradients that were clipped to norm C.
    """

    sample_rate: float
    noise_multiplier: float
    steps: int

    def __post_init__(self) -> None:
        validate.real("sample_rate", self.sample_rate, above=1e-9, below=1, closed="[]", remedy="batch size / records")
        validate.real("noise_multiplier", self.noise_multiplier, above=0, below=1e6, closed="[]")
        if 0 < self.noise_multiplier < 1e-6:
            raise InvalidInput("noise_multiplier", self.noise_multiplier, "0, or at least 1e-6")
        validate.whole("steps", self.steps, least=1, most=10**8)

    @property
    def dp_sgd(self) -> DpSgd:
        """Itself: what a `Composition` of such steps alone would be."""
        return self

    @property
    def event(self) -> Any:
        """One step, as an event of dp-accounting."""
        import dp_accounting  # half a second: only when it is needed

        noise = dp_accounting.GaussianDpEvent(self.noise_multiplier)
        return dp_accounting.PoissonSampledDpEvent(self.sample_rate, noise) if self.sample_rate < 1 else noise

    def describe(self) -> str:
        if self.noise_multiplier == 0:  # nothing private about it
            return f"SGD(q = {self.sample_rate:.4g}, T = {self.steps}, no noise)"
        return f"DP-SGD(q = {self.sample_rate:.4g}, σ = {self.noise_multiplier:.4g}, T = {self.steps})"

    def to_dict(self) -> dict[str, Any]:
        return {
            "sample_rate": self.sample_rate,
            "noise_multiplier": self.noise_multiplier,
            "steps": self.steps,
        }


class Accounted(Protocol):
    """What was accounted for."""

    def describe(self) -> str: ...

    def to_dict(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class UpperBound(SpeaksOfNeighbours):
    """The mechanism is (ε, δ)-DP for these neighbours, by this accountant's proof."""

    epsilon: float
    delta: float
    relation: Relation
    accountant: str
    mechanism: Accounted
    caveat: str = ""
    unit: str = RECORD

    def __str__(self) -> str:
        text = f"ε ≤ {up(self.epsilon)} at δ = {self.delta:g} ({self.neighbours}), {self.accountant}"
        return f"{text}; {self.caveat}" if self.caveat else text

    def to_dict(self) -> dict[str, Any]:
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            **self.neighbours.to_dict(),
            "accountant": self.accountant,
            "mechanism": self.mechanism.to_dict(),
            "caveat": self.caveat,
        }
