"""Our own DP-SGD, by [model] and [training]: what a spec audits if it says nothing else."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from epsilometer import validate
from epsilometer.accounting import LARGEST_EPSILON, Budget, BudgetExceeded, account, calibrate, curve
from epsilometer.auditing.kinds.kind import Loading, SubjectKind
from epsilometer.auditing.spec_sections import SubjectSection
from epsilometer.claims import Claim, PointClaim
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.neighbours import AnyNeighbours, Neighbours, Relation
from epsilometer.seeds import Stream, seed_of
from epsilometer.subjects import DpSgdTraining, Faults
from epsilometer.training import Recipe, median_gradient_norm, within_budget

if TYPE_CHECKING:
    from epsilometer.auditing.spec import Spec

EPSILON = 4.0  # where nothing is said


class DpSgdSection(SubjectSection):
    """It has no keys of its own."""

    def training(self, data: Dataset) -> None:
        return None


def claim_curve(recipe: Recipe, relation: AnyNeighbours = Relation.ADD_REMOVE) -> Claim:
    """The curve that a recipe promises: the default claim of an audit."""
    return curve(recipe.mechanism, relation)


def noise_for(
    epsilon: float, delta: float, sample_rate: float, steps: int, relation: AnyNeighbours = Relation.ADD_REMOVE
) -> float:
    """The noise multiplier with which theory (PLD) promises (ε, δ), for an ε that an audit can speak of."""
    remedy = "no audit can tell more from no privacy at all, for which noise_multiplier = 0 stands"
    validate.real("epsilon", epsilon, above=0, below=LARGEST_EPSILON, closed="]", remedy=remedy)
    return calibrate(epsilon=epsilon, delta=delta, sample_rate=sample_rate, steps=steps, relation=relation)


def _built(spec: Spec, load: Loading) -> tuple[DpSgdTraining, Claim]:
    data = load()
    said = spec.claim.neighbours
    epsilon, noise = spec.claim.epsilon, spec.training.noise_multiplier
    if epsilon is None and noise is None:
        epsilon = EPSILON
    calibrated = noise is None
    if noise is None:
        assert epsilon is not None
        noise = noise_for(epsilon, spec.claim.delta, spec.training.sample_rate, spec.training.steps, said)
    training = spec.training.model_dump(exclude={"noise_multiplier", "budget"})
    median = training["clip_norm"] == "median"
    training |= {"clip_norm": 1.0} if median else {}
    recipe = Recipe(records=len(data), noise_multiplier=noise, **spec.model.settings(), **training)
    recipe = _affordable(spec, recipe, said)
    if median:
        chosen = median_gradient_norm(recipe, data, seed_of(spec.audit.seed, Stream.CLIP_NORM, 0))
        recipe = replace(recipe, clip_norm=chosen)
    subject = DpSgdTraining(recipe, data, Faults(spec.faults.noise_scale), clip_norm_from_data=median)
    return subject, _claim(spec, recipe, said, epsilon, calibrated)


def _affordable(spec: Spec, recipe: Recipe, said: Neighbours) -> Recipe:
    """The recipe, ended before the budget is exceeded, if there is one."""
    if spec.training.budget is None:
        return recipe
    validate.real("budget", spec.training.budget, above=0, remedy="a budget is a finite ε > 0")
    budget = Budget(spec.training.budget, spec.claim.delta, said, spec.audit.accountant)
    try:
        return within_budget(recipe, budget)
    except BudgetExceeded as error:
        remedy = "raise it, or use more noise"
        raise InvalidInput("budget", spec.training.budget, f"enough for a step: {error}", remedy) from None


def _claim(spec: Spec, recipe: Recipe, said: Neighbours, epsilon: float | None, calibrated: bool) -> Claim:
    """The recipe's curve, unless the spec says or implies that a point is claimed."""
    form = spec.claim.form
    if form is None:
        form = "curve" if recipe.is_accounted and (calibrated or epsilon is None) else "point"
    if form == "curve":
        if epsilon is not None and not calibrated:
            raise InvalidInput(
                "claim.form", "curve", "one of claim.epsilon and training.noise_multiplier, not both",
                "a curve follows from the noise: leave epsilon out, or claim a point",
            )  # fmt: skip
        promised = claim_curve(recipe, said)
        _require_within_reach(promised, recipe, spec.claim.delta)
        return promised
    if epsilon is None:
        why = "" if recipe.is_accounted else f": no accountant here proves one for sampling = {recipe.sampling}"
        raise InvalidInput("claim.epsilon", None, f"the ε of a point claim{why}", "add epsilon to [claim]")
    return PointClaim(epsilon, spec.claim.delta, said.relation, said.unit)


def _require_within_reach(promised: Claim, recipe: Recipe, delta: float) -> None:
    """Curves end where e^ε does: beyond it one would claim ∞, and theory something else."""
    if math.isfinite(promised.epsilon_at(delta)):
        return
    theory = account(recipe.mechanism, delta, promised.relation).epsilon
    if math.isfinite(theory):
        raise InvalidInput(
            "noise_multiplier", recipe.noise_multiplier,
            f"noise with which theory promises ε ≤ {LARGEST_EPSILON:g} (it promises {theory:.4g})",
            "no audit can tell more from no privacy at all; claim a point, or use more noise",
        )  # fmt: skip


DP_SGD = SubjectKind("dp-sgd", "our own DP-SGD, by [model] and [training]", DpSgdSection, _built, "gradient", unused=())
