"""`epsilometer bound`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from epsilometer.cli.output import emit_json
from epsilometer.errors import InvalidInput

if TYPE_CHECKING:
    from epsilometer.bounds import ThresholdStrategy


def bound(
    scores: Annotated[
        Path | None, typer.Argument(help="CSV with columns world (0 out, 1 in) and score; - is stdin.")
    ] = None,
    counts: Annotated[
        tuple[int, int, int, int] | None, typer.Option(help="Instead of scores.", metavar="TP FP FN TN")
    ] = None,
    delta: Annotated[float, typer.Option(help="δ.")] = 0.0,
    confidence: Annotated[float, typer.Option(help="Of the bound.")] = 0.95,
    method: Annotated[str | None, typer.Option(help="union-bound, split, fixed or best-on-same.")] = None,
    threshold: Annotated[float | None, typer.Option(help="Fixed beforehand: member iff score > it.")] = None,
    direction: Annotated[str, typer.Option(help="Which scores mean member: higher, lower or either.")] = "higher",
    group_size: Annotated[int, typer.Option(help="Records in which the worlds differ.")] = 1,
    relation: Annotated[str, typer.Option(help="add-remove, replace or zero-out.")] = "add-remove",
    claim: Annotated[float | None, typer.Option(help="A claimed ε to test; exit code 1 if refuted.")] = None,
    seed: Annotated[int, typer.Option(help="Of the random half of --method split.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """A certified lower bound on ε from an attack's scores or counts.

    Examples:

    - `epsilometer bound scores.csv --delta 1e-5`

    - `epsilometer bound --counts 970 20 30 980 --delta 1e-5 --claim 3`
    """
    from epsilometer.bounds import Kind, clopper_pearson
    from epsilometer.cli.scores import read_scores
    from epsilometer.evidence import Counts, PairedRuns

    if (scores is None) == (counts is None):
        given = "neither" if scores is None else "both"
        raise InvalidInput("SCORES.csv and --counts", given, "exactly one of them", "name a file, or give four counts")
    evidence: Counts | PairedRuns
    strategy: ThresholdStrategy | None = None
    if counts is not None:
        for option, value, default in (
            ("--method", method, None), ("--threshold", threshold, None), ("--direction", direction, "higher"),
        ):  # fmt: skip
            if value != default:
                raise InvalidInput(option, value, "nothing with --counts", "counts already come from a chosen test")
        try:
            evidence = Counts(*counts, relation=relation, group_size=group_size)  # type: ignore[arg-type]
        except InvalidInput as error:
            named = error.argument in ("relation", "group_size")
            raise error if named else error.renamed(f"--counts: {error.argument}") from None
    else:
        assert scores is not None
        name = method or ("union-bound" if threshold is None else "fixed")
        strategy = _strategy(name, threshold, seed)
        out_scores, in_scores = read_scores(scores)
        evidence = PairedRuns(out_scores, in_scores, relation, group_size)
    if claim is not None:
        _check_claim(claim)
    found = clopper_pearson(evidence, delta=delta, confidence=confidence, thresholds=strategy, direction=direction)
    refuted = claim is not None and found.kind is Kind.CERTIFIED and found.epsilon > claim
    if as_json:
        verdict = {} if claim is None else {"claim": claim, "refuted": refuted}
        emit_json({"lower_bound": found.to_dict(), **verdict})
    else:
        print(found)
        print(found.proof)
        if claim is not None:
            outcome = "refuted" if refuted else "not refuted"
            note = "" if found.kind is Kind.CERTIFIED else " (an estimate refutes nothing)"
            print(f"claim ε = {claim:g}: {outcome}{note}")
    if refuted:
        raise typer.Exit(1)


def _strategy(name: str, threshold: float | None, seed: int) -> ThresholdStrategy:
    from epsilometer import checks
    from epsilometer.bounds import strategy_named

    checks.whole("seed", seed, least=0)
    try:
        return strategy_named(name, threshold, seed)
    except InvalidInput as error:
        raise error.renamed("--method" if error.argument == "thresholds" else "--threshold") from None


def _check_claim(claim: float) -> None:
    from epsilometer import checks

    checks.real("--claim", claim, above=0, closed="[]")
