"""`epsilometer account`."""

from __future__ import annotations

from typing import Annotated

import typer

from epsilometer.cli.output import emit_json, number, print_table, say
from epsilometer.errors import InvalidInput, unknown_name


def account(
    sample_rate: Annotated[float, typer.Option(help="Probability q with which a record is in a batch.")],
    steps: Annotated[int, typer.Option(help="Number of steps T.")],
    delta: Annotated[float, typer.Option(help="δ.")] = 1e-5,
    noise_multiplier: Annotated[float | None, typer.Option(help="σ: noise deviation / clip norm.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Instead of σ: find the σ that proves this ε.")] = None,
    accountant: Annotated[str, typer.Option(help="pld, rdp, rdp-classic, moments, strong, basic or all.")] = "pld",
    relation: Annotated[str, typer.Option(help="add-remove, replace or zero-out.")] = "add-remove",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """What theory promises for DP-SGD with Poisson sampling, or the noise that a promise needs.

    Examples:

    - `epsilometer account --sample-rate 0.01 --noise-multiplier 4 --steps 10000 --accountant all`

    - `epsilometer account --sample-rate 0.01 --steps 10000 --epsilon 2` finds the noise multiplier.
    """
    from epsilometer.accounting import ACCOUNTANTS, DpSgd, calibrate
    from epsilometer.accounting import account as account_for

    if (noise_multiplier is None) == (epsilon is None):
        raise InvalidInput(
            "--noise-multiplier and --epsilon", "neither" if epsilon is None else "both", "exactly one of them",
            "give σ to learn ε, or ε to learn σ",
        )  # fmt: skip
    if accountant != "all" and accountant not in ACCOUNTANTS:
        raise unknown_name("accountant", accountant, [*ACCOUNTANTS, "all"])
    names = list(ACCOUNTANTS) if accountant == "all" else [accountant]
    bounds = []
    for name in names:
        sigma = noise_multiplier
        if sigma is None:
            assert epsilon is not None
            sigma = calibrate(
                epsilon=epsilon, delta=delta, sample_rate=sample_rate, steps=steps, relation=relation, accountant=name
            )
        bounds.append(account_for(DpSgd(sample_rate, sigma, steps), delta, relation, name))
    if as_json:
        emit_json({"bounds": [bound.to_dict() for bound in bounds]})
        return
    print_table(
        ("accountant", "noise multiplier", "epsilon", "delta", "relation"),
        [
            (b.accountant, number(b.mechanism.noise_multiplier, 5), number(b.epsilon), f"{delta:g}", b.relation.value)
            for b in bounds
        ],
        f"DP-SGD, q = {sample_rate:g}, T = {steps}",
    )
    for bound in bounds:
        if bound.caveat:
            say(f"{bound.accountant}: {bound.caveat}")
