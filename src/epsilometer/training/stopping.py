"""A training that ends before a budget is exceeded (Abadi et al. 2016 keep an accountant beside the loop).

What a step costs does not depend on data, so where to end is known before the first.
"""

from __future__ import annotations

from dataclasses import replace

from epsilometer.accounting import Budget, BudgetExceeded
from epsilometer.errors import InvalidInput
from epsilometer.training.recipe import Recipe


def within_budget(recipe: Recipe, budget: Budget) -> Recipe:
    """The recipe with as many of its steps as the budget affords, which are booked; a rate that falls over all steps
    falls over those that are left.

    >>> budget = Budget(epsilon=1.0, delta=1e-5, accountant="moments")
    >>> recipe = within_budget(Recipe(records=60_000, sample_rate=0.01, noise_multiplier=4.0, steps=10**5), budget)
    >>> recipe.steps, round(budget.spent.epsilon, 4)
    (6360, 1.0)
    """
    if not recipe.is_accounted:
        expected = "poisson or full where there is a budget: no accountant here proves others"
        raise InvalidInput("sampling", recipe.sampling, expected)
    step = recipe.mechanism.event
    steps = budget.most(step, recipe.steps)
    if not steps:
        raise BudgetExceeded(
            f"one step with noise_multiplier = {recipe.noise_multiplier:g} costs more than is left of ε = "
            f"{budget.epsilon:g} at δ = {budget.delta:g} ({budget.spent.epsilon:.4g} is spent)"
        )
    budget.spend(step, steps)
    return replace(recipe, steps=steps)
