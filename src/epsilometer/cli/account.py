"""`epsilometer account`."""

from __future__ import annotations

from typing import Annotated

import typer

from epsilometer.cli.output import emit_json, number, print_table, say
from epsilometer.cli.schedule import BatchSize, Epochs, Records, rate_and_steps
from epsilometer.errors import InvalidInput
from epsilometer.rounding import up


def account(
    sample_rate: Annotated[
        float | None, typer.Option(help="Probability q with which a record is in a batch, such as 0.01.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Number of steps T, such as 10000.")] = None,
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    records: Records = None,
    delta: Annotated[float, typer.Option(help="δ, such as 1e-5.")] = 1e-5,
    noise_multiplier: Annotated[float | None, typer.Option(help="σ: noise deviation / clip norm.")] = None,
    also_noise: Annotated[
        list[float] | None,
        typer.Option(help="σ of a Gaussian release of all records beside it (a PCA, say); may be given several times."),
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Instead of σ: find the σ for which theory proves this ε.")
    ] = None,
    accountant: Annotated[str, typer.Option(help="pld, rdp, rdp-classic, moments, strong, basic or all.")] = "pld",
    relation: Annotated[str, typer.Option(help="add-remove, replace or zero-out.")] = "add-remove",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """What theory promises for DP-SGD with Poisson sampling, or the noise that a promise needs.

    Examples:

    - `epsilometer account --sample-rate 0.01 --noise-multiplier 4 --steps 10000 --accountant all`

    - `epsilometer account --sample-rate 0.01 --steps 10000 --epsilon 2` finds the noise multiplier.

    - `epsilometer account --epochs 15 --batch-size 256 --records 60000 --epsilon 3` does so for a training as people
      write it.

    - `epsilometer account --sample-rate 0.01 --noise-multiplier 8 --steps 2900 --also-noise 16` composes a private PCA
      and a training.
    """
    from epsilometer import validate
    from epsilometer.accounting import ACCOUNTANTS, Composition, DpSgd, calibrate
    from epsilometer.accounting import account as account_for

    if (noise_multiplier is None) == (epsilon is None):
        raise InvalidInput(
            "--noise-multiplier and --epsilon", "neither" if epsilon is None else "both", "exactly one of them",
            "give σ to learn ε, or ε to learn σ",
        )  # fmt: skip
    rate, count = rate_and_steps(sample_rate, steps, epochs, batch_size, records)
    if rate is None or count is None:
        missing = [o for o, v in (("--sample-rate", rate), ("--steps", count)) if v is None]
        remedy = "or --epochs, --batch-size and --records"
        raise InvalidInput(" and ".join(missing), None, "how often records are used", remedy)
    if accountant != "all":
        ACCOUNTANTS.named(accountant, also=["all"])
    if also_noise and epsilon is not None:
        raise InvalidInput("--also-noise", also_noise, "nothing where σ is looked for", "give --noise-multiplier")
    releases = [validate.real("--also-noise", sigma, above=0) for sigma in also_noise or []]
    names = list(ACCOUNTANTS) if accountant == "all" else [accountant]
    if accountant == "all" and releases:
        names.remove("strong")  # a formula for equal steps
    bounds, noises = [], []
    for name in names:
        sigma = noise_multiplier
        if sigma is None:
            assert epsilon is not None
            sigma = calibrate(
                epsilon=epsilon, delta=delta, sample_rate=rate, steps=count, relation=relation, accountant=name
            )
        noises.append(sigma)
        training = DpSgd(rate, sigma, count)
        whole: DpSgd | Composition = training
        if releases:
            whole = Composition.of(training.event, count)
            for noise in releases:
                whole = whole.plus(DpSgd(1.0, noise, 1).event)
        bounds.append(account_for(whole, delta, relation, name))
    if as_json:
        emit_json({"bounds": [bound.to_dict() for bound in bounds]})
        return
    print_table(
        ("accountant", "noise multiplier", "epsilon", "delta", "relation"),
        [
            (b.accountant, _noise(sigma, epsilon is not None), up(b.epsilon), f"{delta:g}", b.relation.value)
            for b, sigma in zip(bounds, noises, strict=True)
        ],
        "".join([f"DP-SGD, q = {rate:g}, T = {count}", *(f", and a release with σ = {r:g}" for r in releases)]),
    )
    for bound in bounds:
        if bound.caveat:
            say(f"{bound.accountant}: {bound.caveat}")


def _noise(sigma: float, found: bool) -> str:
    """As it was given; what was found is rounded up, so that it keeps its promise when it is copied."""
    return up(sigma, 5) if found else number(sigma, 5)
