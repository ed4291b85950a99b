"""`epsilometer membership`."""

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
from epsilometer.cli.output import say
from epsilometer.cli.plan import DataDir

if TYPE_CHECKING:
    from epsilometer.membership import MembershipPlan, MembershipResult


@dataclass(frozen=True)
class MembershipOptions:
    """Options that win over a spec's [membership]: a field for each, with the key that it sets."""

    attacks: Annotated[
        list[str] | None,
        Key("membership", "attacks", "--attack"),
        typer.Option("--attack", help="An attack by name, see `epsilometer list`; several times."),
    ] = None
    references: Annotated[
        int | None, Key("membership", "references"), typer.Option(help="Models that the attacker trains.")
    ] = None
    targets: Annotated[int | None, Key("membership", "targets"), typer.Option(help="Models that are attacked.")] = None
    seed: Annotated[
        int | None, Key("membership", "seed"), typer.Option(help="Every model follows from it, and who is in it.")
    ] = None


@grouped
def membership(
    spec: Annotated[
        Path | None, typer.Argument(help="A TOML file; without it, a small network on the embedded digits.")
    ] = None,
    *,
    options: MembershipOptions,
    data_dir: DataDir = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Directory for models' signals, result.json, scores.csv, report.html; a stopped run goes on."
        ),
    ] = None,
    scores: Annotated[
        Path | None, typer.Option(help="Write every record's scores to this new file, .csv or .parquet.")
    ] = None,
    players: Players,
    manner: Manner,
) -> None:
    """Attack membership: how much do models tell about who was in their training data?

    Targets and references are trained on random halves of the records, by coins of our own, so that what attacks find
    certifies an ε. A model that you give (`[target]` in the spec) is attacked as well, and certifies nothing. Other
    attacks on the same models train nothing anew. Limits hold for all attacks at once, which pays for picking the
    strongest. Exit code 0: no claim is tested here.

    Examples:

    - `epsilometer membership` attacks a small network on the embedded digits.

    - `epsilometer membership my.toml --references 64 --out results`; the same again continues if it was stopped.

    - `epsilometer membership my.toml --attack lira --attack rmia --scores scores.parquet`
    """
    from epsilometer.membership import MembershipSpec, run_membership
    from epsilometer.report import membership_summary, membership_to_json, write_membership, write_membership_scores
    from epsilometer.report.scores import require_new

    if scores is not None:
        require_new("scores", scores)  # fail before the trainings, not after them
    wanted = asked(MembershipSpec, spec, options, data_dir, manner.quiet)

    def play(plan: MembershipPlan, means: Means) -> MembershipResult:
        return run_membership(
            plan, wanted.attacks, means.told, delta=wanted.delta, confidence=wanted.confidence,
            subgroup=wanted.subgroup, store=means.store, executor=means.executor,
        )  # fmt: skip

    study = Study(
        plan=lambda *_: wanted.plan,
        play=play,
        document=lambda result: membership_to_json(result, this_command()),
        text=membership_summary,
        write=lambda place, result: write_membership(place, result, this_command()),
    )
    result = conduct(study, out, players, manner)
    if scores is not None:
        say(f"wrote the scores of {write_membership_scores(scores, result)} records to {scores}")
