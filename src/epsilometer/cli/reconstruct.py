"""`epsilometer reconstruct`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from epsilometer.cli.asked import asked
from epsilometer.cli.driver import Means, Players, Study, conduct
from epsilometer.cli.groups import Key, grouped
from epsilometer.cli.manner import Manner
from epsilometer.cli.outlets import this_command
from epsilometer.cli.plan import DataDir

if TYPE_CHECKING:
    from epsilometer.reconstruction import ReconstructionPlan, ReconstructionResult

_SECTION = "reconstruction"


@dataclass(frozen=True)
class ReconstructOptions:
    """Options that win over a spec: a field for each, with the key that it sets."""

    data: Annotated[
        str | None, Key("data", "name"), typer.Option("--data", help="A data set by name, see `epsilometer list`.")
    ] = None
    attack: Annotated[
        str | None, Key(_SECTION, "attack"), typer.Option(help="What is released: sums, layer or network.")
    ] = None
    noises: Annotated[
        list[float] | None,
        Key(_SECTION, "noises", "--noise-multiplier"),
        typer.Option("--noise-multiplier", help="σ, once or several times; if none, 0, 0.001, 0.01, 0.1 and 1."),
    ] = None
    records: Annotated[
        int | None, Key(_SECTION, "records"), typer.Option(help="Random records that are rebuilt at each σ.")
    ] = None
    clip_norm: Annotated[
        float | None, Key(_SECTION, "clip_norm"), typer.Option(help="C, of gradients (layer, network).")
    ] = None
    in_sum: Annotated[int | None, Key(_SECTION, "in_sum"), typer.Option(help="Records in the larger sum (sums).")] = (
        None
    )
    releases: Annotated[
        int | None, Key(_SECTION, "releases"), typer.Option(help="How often both sums are released (sums).")
    ] = None
    delta: Annotated[float | None, Key(_SECTION, "delta"), typer.Option(help="At which the noise's ε is stated.")] = (
        None
    )
    confidence: Annotated[float | None, Key(_SECTION, "confidence"), typer.Option(help="Of limits, such as 0.95.")] = (
        None
    )
    seed: Annotated[int | None, Key(_SECTION, "seed"), typer.Option(help="Everything follows from it.")] = None


@grouped
def reconstruct(
    spec: Annotated[Path | None, typer.Argument(help="A TOML file; without it, gradients of embedded digits.")] = None,
    *,
    options: ReconstructOptions,
    data_dir: DataDir = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Directory for estimates, result.json, scores.csv, report.html; a stopped run goes on."),
    ] = None,
    players: Players,
    manner: Manner,
) -> None:
    """Rebuild single records from sums or from a gradient, at several noise multipliers, beside limits for it.

    Two sums that differ in one record give it away, and so does the gradient of one record. Errors stand beside the
    limits for unbiased estimates of Guo et al. (2022) and the ε that the noise promises. The report shows records: it
    is private. Exit code 0: no claim is tested here.

    Examples:

    - `epsilometer reconstruct --out rebuilt` rebuilds 20 embedded digits from gradients, with pictures.

    - `epsilometer reconstruct --attack sums --noise-multiplier 0 --noise-multiplier 0.05 --releases 10`

    - `epsilometer reconstruct my.toml --records 200 --out results`; the same again continues if it was stopped.
    """
    from epsilometer.reconstruction import ReconstructionSpec, run_reconstruction
    from epsilometer.report import reconstruction_summary, reconstruction_to_json, write_reconstruction

    wanted = asked(ReconstructionSpec, spec, options, data_dir, manner.quiet)

    def play(plan: ReconstructionPlan, means: Means) -> ReconstructionResult:
        return run_reconstruction(
            plan, means.told, delta=wanted.delta, confidence=wanted.confidence, store=means.store,
            executor=means.executor,
        )  # fmt: skip

    study = Study(
        plan=lambda *_: wanted.plan,
        play=play,
        document=lambda result: reconstruction_to_json(result, this_command()),
        text=reconstruction_summary,
        write=lambda place, result: write_reconstruction(place, result, this_command()),
    )
    conduct(study, out, players, manner)
