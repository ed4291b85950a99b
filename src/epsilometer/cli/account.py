"""`epsilometer account`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from epsilometer.cli.manner import AsJson
from epsilometer.cli.neighbours import RelationOption, UnitOption, said_neighbours
from epsilometer.cli.output import emit_json, number, print_table, say
from epsilometer.cli.schedule import BatchSize, Epochs, Records, rate_and_steps
from epsilometer.errors import InvalidInput
from epsilometer.rounding import up

if TYPE_CHECKING:
    from epsilometer.accounting import UpperBound
    from epsilometer.neighbours import Neighbours


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
    relation: RelationOption = "add-remove",
    unit: UnitOption = "record",
    as_json: AsJson = False,
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
    if (noise_multiplier is None) == (epsilon is None):
        raise InvalidInput(
            "--noise-multiplier and --epsilon", "neither" if epsilon is None else "both", "exactly one of them",
            "give σ to learn ε, or ε to learn σ",
        )  # fmt: skip
    rate, count = _length(*rate_and_steps(sample_rate, steps, epochs, batch_size, records))
    names = _accountants(accountant, beside_releases=bool(also_noise))
    releases = _releases(also_noise or [], epsilon)
    asked = _Asked(rate, count, delta, said_neighbours(relation, unit), noise_multiplier, epsilon, releases)
    found = [_accounted(asked, name) for name in names]
    if as_json:
        emit_json({"bounds": [one.bound.to_dict() for one in found]})
        return
    print_table(
        ("accountant", "noise multiplier", "epsilon", "delta", "relation"),
        [
            (b.accountant, _noise(sigma, epsilon is not None), up(b.epsilon), f"{delta:g}", str(b.neighbours))
            for b, sigma in ((one.bound, one.noise_multiplier) for one in found)
        ],
        "".join([f"DP-SGD, q = {rate:g}, T = {count}", *(f", and a release with σ = {r:g}" for r in releases)]),
    )
    for bound in (one.bound for one in found):
        if bound.caveat:
            say(f"{bound.accountant}: {bound.caveat}")


@dataclass(frozen=True)
class _Asked:
    """A training, whose σ is given or follows from the ε that is wanted; and releases of all records beside it."""

    sample_rate: float
    steps: int
    delta: float
    neighbours: Neighbours
    noise_multiplier: float | None
    epsilon: float | None
    releases: tuple[float, ...]


@dataclass(frozen=True)
class _Accounted:
    """What an accountant proves, and the σ with which it does."""

    bound: UpperBound
    noise_multiplier: float


def _length(rate: float | None, steps: int | None) -> tuple[float, int]:
    """Sample rate and steps, neither of which may be missing."""
    if rate is None or steps is None:
        missing = [o for o, v in (("--sample-rate", rate), ("--steps", steps)) if v is None]
        remedy = "or --epochs, --batch-size and --records"
        raise InvalidInput(" and ".join(missing), None, "how often records are used", remedy)
    return rate, steps


def _accountants(name: str, *, beside_releases: bool) -> list[str]:
    """One accountant, or all that can account for releases beside a training."""
    from epsilometer.accounting import ACCOUNTANTS

    if name == "all":
        return [one for one in ACCOUNTANTS if one != "strong" or not beside_releases]  # a formula for equal steps
    ACCOUNTANTS.named(name, also=["all"])
    return [name]


def _releases(also_noise: list[float], epsilon: float | None) -> tuple[float, ...]:
    """σ of each release beside the training."""
    from epsilometer import validate

    if also_noise and epsilon is not None:
        raise InvalidInput("--also-noise", also_noise, "nothing where σ is looked for", "give --noise-multiplier")
    return tuple(validate.real("--also-noise", sigma, above=0) for sigma in also_noise)


def _accounted(asked: _Asked, accountant: str) -> _Accounted:
    """What one accountant says of it."""
    from epsilometer.accounting import Composition, DpSgd, calibrate
    from epsilometer.accounting import account as account_for

    sigma = asked.noise_multiplier
    if sigma is None:
        assert asked.epsilon is not None
        sigma = calibrate(
            epsilon=asked.epsilon, delta=asked.delta, sample_rate=asked.sample_rate, steps=asked.steps,
            relation=asked.neighbours, accountant=accountant,
        )  # fmt: skip
    training = DpSgd(asked.sample_rate, sigma, asked.steps)
    whole: DpSgd | Composition = training
    if asked.releases:
        whole = Composition.of(training.event, asked.steps)
        for noise in asked.releases:
            whole = whole.plus(DpSgd(1.0, noise, 1).event)
    return _Accounted(account_for(whole, asked.delta, asked.neighbours, accountant), sigma)


def _noise(sigma: float, found: bool) -> str:
    """As it was given; what was found is rounded up, so that it keeps its promise when it is copied."""
    return up(sigma, 5) if found else number(sigma, 5)
