"""`epsilometer coverage`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epsilometer.cli.output import emit_json, print_table, say
from epsilometer.errors import InvalidInput

if TYPE_CHECKING:
    from epsilometer.bounds.coverage import Cell

FILES = ("calibration.md", "calibration.svg", "calibration.json", "report.html")
HEADER = ("bound", "kind", "mechanism", "exceeds the truth", "95 % interval", "bound / truth")


def coverage(
    repetitions: Annotated[int, typer.Option(help="Simulated audits for each bound and mechanism.")] = 200,
    trials: Annotated[int, typer.Option(help="Trials a world, or canaries.")] = 300,
    confidence: Annotated[float, typer.Option(help="Of the bounds.")] = 0.95,
    bound: Annotated[list[str] | None, typer.Option(help="Only these; may be given several times.")] = None,
    seed: Annotated[int, typer.Option(help="Of the simulations.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="A folder for calibration.md, calibration.svg, calibration.json, report.html.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Measure the bounds themselves: how often each exceeds a truth that is known, and how near it comes.

    Examples:

    - `epsilometer coverage --repetitions 100`

    - `epsilometer coverage --repetitions 1000 --bound exact-rank --bound eprocess --out calibration`
    """
    from epsilometer import validate
    from epsilometer.bounds.coverage import NOT_MEASURED, measure_coverage

    alpha = 1.0 - validate.confidence(confidence)
    if out is not None:
        _prepare(out)
    if bound is None:
        say("not measured: " + "; ".join(f"{name} ({why})" for name, why in NOT_MEASURED.items()))

    def progress(done: int, cells: int) -> None:
        say(f"measured: {done} of {cells}")

    cells = measure_coverage(
        repetitions=repetitions, trials=trials, alpha=alpha, bounds=bound, seed=seed, progress=progress
    )
    if out is not None:
        _write(cells, out, seed)
        say(f"wrote {', '.join(FILES)} in {out}")
    if as_json:
        emit_json(_document(cells, seed))
        return
    print_table(HEADER, _rows(cells), f"{repetitions} audits of {trials} trials per world each, seed {seed}")


def _rows(cells: list[Cell]) -> list[tuple[str, ...]]:
    return [
        (
            cell.bound,
            str(cell.kind),
            cell.mechanism,
            f"{cell.exceeded} of {cell.repetitions}",
            f"{cell.interval[0]:.3f} – {cell.interval[1]:.3f}",
            "–" if cell.tightness is None else f"{cell.tightness:.2f}",
        )
        for cell in cells
    ]


def _prepare(out: Path) -> None:
    """Fail before the measurements, not after them."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput("--out", str(out), f"a folder to write to ({error.strerror})", "name another one") from None
    for name in FILES:
        if os.path.lexists(out / name):  # also a link that leads nowhere: it would be written through
            raise InvalidInput("--out", str(out), f"a folder without {name}", "name another one")


def _document(cells: list[Cell], seed: int) -> dict[str, Any]:
    from epsilometer.bounds.coverage import false_alarms
    from epsilometer.json_values import SCHEMA, json_values
    from epsilometer.versions import versions

    document: dict[str, Any] = json_values(
        {
            "kind": "calibration",
            "schema": SCHEMA,
            "seed": seed,
            "cells": [cell.to_dict() for cell in cells],
            "figures": {"all": false_alarms(cells).to_dict()},
            "versions": versions(),
        }
    )
    return document


def _write(cells: list[Cell], out: Path, seed: int) -> None:
    import json

    from epsilometer.bounds.coverage import false_alarms
    from epsilometer.figures.canvas import svg
    from epsilometer.report.report_file import write_report
    from epsilometer.report.seal import sealed
    from epsilometer.runs.atomic_files import write_whole

    figure, document = false_alarms(cells), _document(cells, seed)
    lines = ["| " + " | ".join(HEADER) + " |", "|---" * len(HEADER) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in _rows(cells)]
    texts = (
        ("\n".join(lines) + "\n").encode(),
        sealed(svg(figure, alone=True)),
        (json.dumps(document, indent=2, allow_nan=False) + "\n").encode(),
    )
    try:
        for name, text in zip(FILES, texts, strict=False):
            write_whole(out / name, text)
        write_report(out, document)
    except OSError as error:
        raise InvalidInput("--out", str(out), f"a folder to write to ({error.strerror})") from None
