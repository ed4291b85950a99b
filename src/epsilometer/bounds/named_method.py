"""What the table of methods says of each: what it is, what it assumes, and how to get a bound or a test from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from epsilometer.bounds.method import Method
from epsilometer.bounds.one_run import Plan as GuessPlan
from epsilometer.bounds.result import Kind, LowerBound
from epsilometer.errors import InvalidInput

INDEPENDENT = "independent trials"


@dataclass(frozen=True)
class Settings:
    """What a bound may need to know besides the evidence."""

    delta: float = 0.0
    confidence: float = 0.95
    direction: str = "higher"
    threshold: float | None = None
    guesses: GuessPlan = None
    seed: int = 0
    in_order: bool = False  # the trials are as they came: an e-process need not shuffle them
    mechanism: Any = None  # of the training, where scores are of single steps and an accountant adds these up


@dataclass(frozen=True)
class NamedMethod:
    """A way from evidence to a lower bound that can be asked for by name.

    `make` gives a `Method`, which tests claims too and can judge an audit; a bound alone has none, and `compute` in its
    place. Where there are both, `compute` is how a bound alone is found.
    """

    name: str
    summary: str
    evidence_type: tuple[type, ...]
    kind: Kind  # of its bounds
    assumes: str = INDEPENDENT
    make: Callable[[Settings], Method] | None = None
    compute: Callable[[Any, Settings], LowerBound] | None = None
    takes_threshold: bool = False
    needs_threshold: bool = False
    needs_mechanism: bool = False
    takes_guesses: bool = False

    @property
    def judges(self) -> bool:
        """Whether it tests claims, made from a seed (and a threshold) alone."""
        return self.make is not None and not self.needs_mechanism

    def takes(self, evidence: object) -> bool:
        return isinstance(evidence, self.evidence_type)

    def method(self, settings: Settings) -> Method:
        """The method with these settings."""
        if (settings.threshold is not None) != self.needs_threshold:
            expected = "a number exactly when the method is fixed"
            remedy = "choose one without looking at the scores, or another method"
            raise InvalidInput("threshold", settings.threshold, expected, remedy)
        self._require_used(settings)
        assert self.make is not None
        return self.make(settings)

    def _require_used(self, settings: Settings) -> None:
        """A number of guesses is a choice that is paid for: who says it must not be told of another one."""
        if settings.guesses is None or self.takes_guesses:
            return
        number = isinstance(settings.guesses, int | tuple)
        argument, value = ("guesses", settings.guesses) if number else ("threshold", settings.guesses.value)  # type: ignore[union-attr]
        raise InvalidInput(argument, value, f"nothing with {self.name}, which has no use for it", "leave it out")

    def bound(self, evidence: Any, settings: Settings) -> LowerBound:
        """The bound alone, of evidence that it takes."""
        self._require_used(settings)
        if self.compute is not None:
            return self.compute(evidence, settings)
        shared = {"delta": settings.delta, "confidence": settings.confidence, "direction": settings.direction}
        return self.method(settings).bound(evidence, **shared)  # type: ignore[arg-type]


def brought_method(name: str, found: Any) -> NamedMethod | None:
    """What an entry point of another package leads to: a function of a seed that gives a method, or a whole entry."""
    if isinstance(found, NamedMethod):
        return found if found.name == name else None
    made = found(0) if callable(found) else None
    if made is None or not all(hasattr(made, part) for part in ("evidence_type", "kind", "bound", "test", "power")):
        return None
    return NamedMethod(
        name,
        getattr(made, "summary", ""),
        (made.evidence_type,),
        made.kind,
        getattr(made, "assumes", "what its package says"),
        make=lambda settings: found(settings.seed),
    )
