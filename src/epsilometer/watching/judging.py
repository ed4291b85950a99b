"""How a verdict on watched trainings is found: none of this reaches the script."""

from __future__ import annotations

from dataclasses import dataclass

from epsilometer import validate
from epsilometer.errors import unknown_name
from epsilometer.statements import Statement
from epsilometer.watching.checks.names import NOISE_LAW, QUESTIONS
from epsilometer.watching.levels import Levels


@dataclass(frozen=True)
class Judging:
    """The confidence of each verdict; δ of the ε that is shown (none: the one that a training asked its noise for, else
    1e-5); checks that may fail, and are shown as ignored; statements that whoever runs the audit vouches for.

    >>> Judging(assume=("samplin",))
    Traceback (most recent call last):
    epsilometer.errors.InvalidInput: assume = 'samplin': ...
    """

    confidence: float = 0.95
    delta: float | None = None
    ignore: tuple[str, ...] = ()
    assume: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """It must make sense before anything runs."""
        Levels.of(self.confidence)
        if self.delta is not None:
            validate.real("delta", self.delta, above=0, below=1)
        for name in self.ignore:
            if name not in QUESTIONS and name != NOISE_LAW:  # one that a package brings, or none
                from epsilometer.watching.checks.catalogue import CHECKS

                CHECKS.named(name, "ignore")
        for name in self.assume:
            if name not in list(Statement):
                raise unknown_name("assume", name, [one.value for one in Statement])

    @property
    def assumed(self) -> tuple[Statement, ...]:
        return tuple(Statement(name) for name in self.assume)
