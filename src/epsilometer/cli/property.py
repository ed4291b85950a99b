"""`epsilometer property`."""

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
    from epsilometer.collaborative import PropertyPlan, PropertyResult


@dataclass(frozen=True)
class PropertyOptions:
    """Options that win over a spec: a field for each, with the key that it sets."""

    data: Annotated[
        str | None, Key("data", "name"), typer.Option("--data", help="A data set by name, see `epsilometer list`.")
    ] = None
    property_name: Annotated[
        str | None,
        Key("property", "name", "--property"),
        typer.Option("--property", help="By name: ink (any data), sex or race (adult)."),
    ] = None
    feature: Annotated[
        int | None, Key("property", "feature"), typer.Option(help="Instead: this feature is above its median.")
    ] = None
    rounds: Annotated[
        int | None, Key("collaboration", "rounds"), typer.Option(help="Of a collaboration; an update each.")
    ] = None
    batch: Annotated[int | None, Key("collaboration", "batch"), typer.Option(help="Records in an update.")] = None
    rehearsals: Annotated[
        int | None, Key("collaboration", "rehearsals"), typer.Option(help="Of each kind in a round, by the adversary.")
    ] = None
    level: Annotated[
        str | None, Key("collaboration", "level"), typer.Option(help="What noise hides: none, record or participant.")
    ] = None
    noise_multiplier: Annotated[
        float | None, Key("collaboration", "noise_multiplier"), typer.Option(help="σ: noise of σ·C.")
    ] = None
    clip_norm: Annotated[float | None, Key("collaboration", "clip_norm"), typer.Option(help="C.")] = None
    trials: Annotated[
        int | None, Key("property", "trials"), typer.Option(help="Independent collaborations of each world.")
    ] = None
    control: Annotated[
        bool | None,
        Key("property", "control"),
        typer.Option("--control/--no-control", help="Also play as many whose AUC must be ½."),
    ] = None
    delta: Annotated[float | None, Key("property", "delta"), typer.Option(help="At which an ε is stated.")] = None
    confidence: Annotated[
        float | None, Key("property", "confidence"), typer.Option(help="Of limits, such as 0.95.")
    ] = None
    seed: Annotated[int | None, Key("property", "seed"), typer.Option(help="Everything follows from it.")] = None


@grouped
def property_inference(
    spec: Annotated[
        Path | None, typer.Argument(help="A TOML file; without it, a small network on the embedded digits.")
    ] = None,
    *,
    options: PropertyOptions,
    data_dir: DataDir = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Directory for scores, result.json, scores.csv, report.html; a stopped run goes on."),
    ] = None,
    players: Players,
    manner: Manner,
) -> None:
    """Infer a property of a participant's records from the updates that it shares in collaborative learning.

    Two participants train one network; one is curious (Melis et al. 2019). Collaborations in which the other's records
    all have a property are played beside others in which none has, and a control in which nothing differs. Each gives
    one score, and the AUC is over these. Where noise hides a whole participant, an ε is certified for that; otherwise
    none is stated. Exit code 0: no claim is tested here.

    Examples:

    - `epsilometer property` asks for much ink in the embedded digits.

    - `epsilometer property --data adult --property sex --level record --noise-multiplier 1 --out women`

    - `epsilometer property my.toml --trials 500 --out results`; the same again continues if it was stopped.
    """
    from epsilometer.collaborative import PropertySpec, run_property
    from epsilometer.report import property_summary, property_to_json, write_property

    wanted = asked(PropertySpec, spec, options, data_dir, manner.quiet)

    def play(plan: PropertyPlan, means: Means) -> PropertyResult:
        return run_property(
            plan,
            means.told,
            delta=wanted.delta,
            confidence=wanted.confidence,
            store=means.store,
            executor=means.executor,
        )

    study = Study(
        plan=lambda *_: wanted.plan,
        play=play,
        document=lambda result: property_to_json(result, this_command()),
        text=property_summary,
        write=lambda place, result: write_property(place, result, this_command()),
    )
    conduct(study, out, players, manner)
