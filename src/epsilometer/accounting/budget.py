"""A running accountant: what was spent so far, and a stop before the budget is exceeded."""

from __future__ import annotations

from typing import Any

from epsilometer import validate
from epsilometer.accounting.accountants import ACCOUNTANTS, account
from epsilometer.accounting.events import MOST, Composition
from epsilometer.accounting.mechanism import UpperBound
from epsilometer.errors import EpsilometerError
from epsilometer.neighbours import AnyNeighbours, Neighbours, Relation


class BudgetExceeded(EpsilometerError):
    """What was asked for would cost more than there is; nothing was spent."""


class Budget:
    """(ε, δ) to be spent on events, one after another. An event is booked before it is carried out.

    >>> from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
    >>> budget, step = Budget(epsilon=1.0, delta=1e-5), PoissonSampledDpEvent(0.01, GaussianDpEvent(4.0))
    >>> print(budget.spend(step, count=1000))
    ε ≤ 0.2722 at δ = 1e-05 (add-remove), pld
    >>> budget.affords(step, count=100_000)
    False
    """

    def __init__(
        self,
        epsilon: float,
        delta: float,
        relation: AnyNeighbours = Relation.ADD_REMOVE,
        accountant: str = "pld",
    ) -> None:
        self.accountant = ACCOUNTANTS[accountant].name
        self.epsilon = validate.real("epsilon", epsilon, above=0, remedy="a budget is a finite ε > 0")
        self.delta = validate.delta(delta)
        self.neighbours = Neighbours.of(relation)
        self._booked = Composition(())

    @property
    def relation(self) -> Relation:
        return self.neighbours.relation

    @property
    def spent(self) -> UpperBound:
        """What all that was booked costs."""
        return account(self._booked, self.delta, self.neighbours, self.accountant)

    @property
    def booked(self) -> Composition:
        return self._booked

    def spend(self, event: Any, count: int = 1) -> UpperBound:
        """Book the event `count` times and say what was spent in all, or refuse and book nothing."""
        wanted, cost = self._with(event, count)
        if cost.epsilon > self.epsilon:
            raise BudgetExceeded(
                f"{count} × {event!r} would make ε = {cost.epsilon:.4g} at δ = {self.delta:g}, and the budget is "
                f"{self.epsilon:.4g} ({self.spent.epsilon:.4g} is spent)"
            )
        self._booked = wanted
        return cost

    def affords(self, event: Any, count: int = 1) -> bool:
        return self._with(event, count)[1].epsilon <= self.epsilon

    def most(self, event: Any, limit: int = 10**6) -> int:
        """How many times the event can still be afforded, up to `limit`."""
        validate.whole("limit", limit, least=1, most=MOST)
        low, high = 0, 1
        while high <= limit and self.affords(event, high):
            low, high = high, 2 * high
        high = min(high, limit + 1)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.affords(event, middle) else (low, middle)
        return low

    def _with(self, event: Any, count: int) -> tuple[Composition, UpperBound]:
        if (alike := getattr(event, "dp_sgd", None)) is not None:
            event, count = alike.event, count * alike.steps
        wanted = self._booked.plus(event, count)
        return wanted, account(wanted, self.delta, self.neighbours, self.accountant)
