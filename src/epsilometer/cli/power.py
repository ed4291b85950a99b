"""`epsilometer power`."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from epsilometer.cli.output import emit_json, number, print_table
from epsilometer.errors import InvalidInput


def power(
    epsilon: Annotated[float, typer.Option(help="The claimed ε.")],
    delta: Annotated[float, typer.Option(help="δ of claim and truth.")] = 1e-5,
    confidence: Annotated[float, typer.Option(help="Of the refutation.")] = 0.95,
    true_epsilon: Annotated[
        float | None, typer.Option(help="What the training really leaks at δ; without it: everything.")
    ] = None,
    probability: Annotated[float, typer.Option(help="With which the refutation is to succeed.")] = 0.95,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """How many trials per world it takes to refute a claim.

    Three attackers: one who is always right, one who attains the whole (ε', δ) region, one who sees Gaussian
    scores. Two claims: the point (ε, δ), and the Gaussian curve through it, which takes far fewer trials.

    Examples:

    - `epsilometer power --epsilon 4`

    - `epsilometer power --epsilon 1 --true-epsilon 2 --delta 1e-5 --confidence 0.99`
    """
    from epsilometer import validate
    from epsilometer.bounds import trials_to_refute
    from epsilometer.claims import Claim, GaussianClaim, PointClaim

    validate.real("epsilon", epsilon, above=0, below=1e6, closed="[]")
    validate.delta(delta)
    truth = math.inf if true_epsilon is None else validate.real("true_epsilon", true_epsilon, above=0, closed="]")
    if truth <= epsilon:
        raise InvalidInput(
            "--true-epsilon", truth, f"more than the claimed {epsilon:g}", "a true claim cannot be refuted"
        )
    attackers: list[tuple[str, Claim]] = [("always right", PointClaim(math.inf, delta))]
    claims: list[tuple[str, Claim]] = [("point", PointClaim(epsilon, delta))]
    if math.isfinite(truth):
        attackers.append((f"perfect at ε' = {truth:g}", PointClaim(truth, delta)))
    if delta > 0:
        claims.append(("Gaussian curve", GaussianClaim.through(epsilon, delta)))
        if math.isfinite(truth):
            attackers.append((f"Gaussian at ε' = {truth:g}", GaussianClaim.through(truth, delta)))
    validate.real("probability", probability, above=0, below=1)
    rows = [
        (attacker, claim, trials_to_refute(promise, attained, confidence=confidence, power=probability))
        for attacker, attained in attackers
        for claim, promise in claims
    ]
    if as_json:
        emit_json(
            {
                "epsilon": epsilon,
                "delta": delta,
                "true_epsilon": truth,
                "confidence": confidence,
                "probability": probability,
                "trials_a_world": [{"attacker": a, "claim": c, "trials": n} for a, c, n in rows],
            }
        )
        return
    print_table(
        ("attacker", "claim", "trials per world"),
        [(a, c, "over 100 million" if n is None else number(n)) for a, c, n in rows],
        f"To refute ε = {epsilon:g} at δ = {delta:g} with {confidence:g} confidence and probability {probability:g}",
    )
