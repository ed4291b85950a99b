"""`epsilometer ladder`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from epsilometer.cli.driver import Players
from epsilometer.cli.groups import Only, grouped
from epsilometer.cli.manner import Manner
from epsilometer.cli.output import print_table, print_text, width
from epsilometer.cli.plan import PlanOptions, SpecFile, chosen_plan
from epsilometer.cli.reproduce import measure_cells
from epsilometer.rounding import down
from epsilometer.wrapping import wrapped

if TYPE_CHECKING:
    from epsilometer.reproductions import Reproduction, Row

HEADER = ("adversary", "certified ε ≥", "if DP-SGD", "single steps", "verdict")


@grouped
def ladder(
    spec: SpecFile = None,
    *,
    options: Annotated[PlanOptions, Only("trials", "confidence", "seed", "epsilon", "noise_scale", "data_dir")],
    out: Annotated[
        Path | None,
        typer.Option(help="Directory for trials, table, picture; a stopped ladder continues there."),
    ] = None,
    players: Players,
    manner: Manner,
) -> None:
    """Send six adversaries, each with more power, against one training: what does each power add?

    The spec's own adversary and bound do not matter. Adversaries that need more than [access] grants are left out.
    Where an adversary could score in several ways, a pilot decides first. Exit code 1 if the claim is violated: each
    of the six is judged at a sixth of the error.

    Examples:

    - `epsilometer ladder` climbs the ladder of the embedded default.

    - `epsilometer ladder my.toml --trials 1000 --out climbed`; the same again continues if it was stopped.
    """
    from epsilometer.adversaries import LADDER
    from epsilometer.json_values import json_values
    from epsilometer.reproductions import Session, ladder_headline, ladder_of

    plan = chosen_plan(spec, replace(options, adversary="api"), quiet=manner.quiet, own_bound=False).plan
    chosen = ladder_of(plan)
    settings = {key: value for key, value in plan.to_dict().items() if key not in ("adversary", "group_size")}
    session = Session(plan.planned_trials, plan.seed, options.data_dir, executor=players.chosen())
    best = 0.0

    def line(_: Reproduction, row: Row) -> str:
        nonlocal best
        told = _line(row, best)
        best = max(best, row.measured) if row.measured == row.measured else best
        return told

    if not manner.as_json:
        print(f"{plan.subject.describe()}: {plan.upper_bound}")
        absent = [name for name in LADDER if {"adversary": name} not in chosen.cells]
        if absent:
            print(f"not granted ({plan.access}): {', '.join(absent)}")

    def summed_up(rows: list[Row]) -> dict[str, str | None]:
        short = ladder_headline(plan, rows)
        return {"headline": str(short), "quote": short.quote, "verdict": short.verdict}

    rows = measure_cells(
        chosen, chosen.cells, json_values({**settings, "access": str(plan.access)}), out, session,
        manner, line=line, summed_up=summed_up,
    )  # fmt: skip
    short = ladder_headline(plan, rows)
    if not manner.as_json:
        print()
        print_table(HEADER, [_cells(row) for row in rows])
        print()
        print_text("\n".join(wrapped(sentence, width()) for sentence in short.sentences))
    if short.verdict == "violated":
        raise typer.Exit(1)


def _cells(row: Row) -> tuple[str, ...]:
    details = row.details
    if "note" in details:
        return (row.cell["adversary"], "–", "–", "–", "not played")
    bounds = (row.measured, details["family"], details["per_step"])
    told = ["–" if value is None else down(value) for value in bounds]
    return (row.cell["adversary"], *told, details.get("verdict", "–"))


def _line(row: Row, best: float) -> str:
    details = row.details
    if "note" in details:
        return f"{row.cell['adversary']}: not played ({details['note']})"
    more = f"{down(row.measured - best, 2)} more" if row.measured > best else "no more"
    parts = [f"ε ≥ {down(row.measured)} certified ({more})"]
    if details["family"] is not None:
        parts.append(f"ε ≥ {down(details['family'])} if it is DP-SGD")
    if details["per_step"] is not None:
        parts.append(f"ε ≥ {down(details['per_step'])} from single steps")
    if details["violated"]:
        parts.append("the claim is VIOLATED")
    return f"{details['settings']}: {', '.join(parts)}; {details['needs']}"
