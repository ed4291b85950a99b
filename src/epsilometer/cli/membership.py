"""`epsilometer membership`."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from epsilometer.cli.audit import continued
from epsilometer.cli.outlets import this_command
from epsilometer.cli.output import emit_json, print_text, say
from epsilometer.cli.plan import Address, AsJson, DataDir, ExecutorName, Quiet, Workers
from epsilometer.cli.progress import broken_pipes_are_errors, downloads, progress
from epsilometer.errors import InvalidInput

if TYPE_CHECKING:
    from epsilometer.membership.spec import Study


def membership(
    spec: Annotated[
        Path | None, typer.Argument(help="A TOML file; without it, a small network on the embedded digits.")
    ] = None,
    attacks: Annotated[
        list[str] | None, typer.Option("--attack", help="An attack by name, see `epsilometer list`; several times.")
    ] = None,
    references: Annotated[int | None, typer.Option(help="Models that the attacker trains.")] = None,
    targets: Annotated[int | None, typer.Option(help="Models that are attacked.")] = None,
    seed: Annotated[int | None, typer.Option(help="Every model follows from it, and who is in it.")] = None,
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
    executor: ExecutorName = "auto",
    workers: Workers = None,
    address: Address = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
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
    from epsilometer.membership import run_membership
    from epsilometer.report import membership_summary, membership_to_json, write_membership, write_membership_scores
    from epsilometer.report.scores import require_new
    from epsilometer.runs import executor_named, run_directory

    if scores is not None:
        require_new("scores", scores)  # fail before the trainings, not after them
    study = _study(spec, {"attacks": attacks, "references": references, "targets": targets, "seed": seed},
                   data_dir, quiet)  # fmt: skip
    plan = study.plan
    chosen_executor = executor_named(executor, workers, address)
    with ExitStack() as stack:
        told = stack.enter_context(progress(quiet))
        stack.enter_context(broken_pipes_are_errors())
        store = None if out is None else stack.enter_context(run_directory(out, plan))
        with continued(out, plan, store):
            result = run_membership(
                plan, study.attacks, told, delta=study.delta, confidence=study.confidence, subgroup=study.subgroup,
                store=store, executor=chosen_executor,
            )  # fmt: skip
    if as_json:
        emit_json(membership_to_json(result, this_command()))
    else:
        print_text(lambda width: membership_summary(result, width))
    if out is not None:
        written = write_membership(out, result, this_command())
        say(str(written) if written.paths else f"{out} had its results already")
    if scores is not None:
        say(f"wrote the scores of {write_membership_scores(scores, result)} records to {scores}")


def _study(spec: Path | None, options: dict[str, list[str] | int | None], data_dir: Path | None, quiet: bool) -> Study:
    """What the spec and the options ask for; errors name what the user wrote."""
    from epsilometer.membership import MembershipSpec, membership_from_dict, read_membership

    given = MembershipSpec() if spec is None else read_membership(spec)
    values = given.model_dump(exclude_unset=True)
    chosen = {key: value for key, value in options.items() if value}
    chosen |= {key: value for key, value in options.items() if value == 0}
    values["membership"] = values.get("membership", {}) | chosen
    try:
        return membership_from_dict(values).study(data_dir, downloads(quiet))
    except InvalidInput as error:
        names = {f"membership.{key}": f"--{key.removesuffix('s') if key == 'attacks' else key}" for key in chosen}
        if data_dir is not None:
            names["data.directory"] = "--data-dir"
        raise error.renamed(names[error.argument]) if error.argument in names else error from None
