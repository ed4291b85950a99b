"""`epsilometer bound` and `epsilometer compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from epsilometer.cli.output import emit_json, print_table
from epsilometer.errors import EvidenceMismatch, InvalidInput, unknown_name

if TYPE_CHECKING:
    from epsilometer.bounds.catalogue import Evidence, Settings

Scores = Annotated[Path | None, typer.Argument(help="CSV with columns world (0 out, 1 in) and score; - is stdin.")]
OneRunFile = Annotated[
    Path | None, typer.Option("--one-run", help="CSV of one training's canaries: member (0 or 1) and score.")
]
CountsOption = Annotated[
    tuple[int, int, int, int] | None, typer.Option(help="Instead of scores.", metavar="TP FP FN TN")
]
Delta = Annotated[float, typer.Option(help="δ.")]
Confidence = Annotated[float, typer.Option(help="Of the bound.")]
Threshold = Annotated[float | None, typer.Option(help="Fixed beforehand: member iff score > it.")]
Guesses = Annotated[int | None, typer.Option(help="With --one-run: how many guesses, chosen beforehand.")]
Direction = Annotated[str, typer.Option(help="Which scores mean member: higher, lower or either.")]
GroupSize = Annotated[
    int | None,
    typer.Option(help="Records in which the worlds differ, or that a canary has: 1, or what the file says."),
]
RelationOption = Annotated[str, typer.Option(help="add-remove, replace or zero-out.")]
Seed = Annotated[int, typer.Option(help="Of random halves, orders and simulations.")]
InOrder = Annotated[
    bool, typer.Option("--in-order", help="Trials stand as they came (in each world): eprocess need not shuffle.")
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]


def bound(
    scores: Scores = None,
    counts: CountsOption = None,
    one_run: OneRunFile = None,
    delta: Delta = 0.0,
    confidence: Confidence = 0.95,
    method: Annotated[
        str | None, typer.Option(help="A name of `epsilometer list`; default exact-rank, clopper-pearson (counts), "
                                      "one-run-point.")
    ] = None,
    threshold: Threshold = None,
    guesses: Guesses = None,
    direction: Direction = "higher",
    group_size: GroupSize = None,
    relation: RelationOption = "add-remove",
    claim: Annotated[float | None, typer.Option(help="A claimed ε to test; exit code 1 if refuted.")] = None,
    seed: Seed = 0,
    in_order: InOrder = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """A lower bound on ε from an attack's scores or counts.

    Examples:

    - `epsilometer bound scores.csv --delta 1e-5`

    - `epsilometer bound --counts 970 20 30 980 --delta 1e-5 --claim 3`

    - `epsilometer bound --one-run canaries.csv --delta 1e-5`
    """
    from epsilometer import checks
    from epsilometer.bounds import Kind
    from epsilometer.bounds.catalogue import bound_named

    if claim is not None:
        checks.real("--claim", claim, above=0, closed="[]")
    settings = _settings(counts, one_run, delta, confidence, threshold, guesses, direction, seed, in_order)
    name = "fixed" if method is None and settings.threshold is not None else method
    evidence = _evidence(scores, counts, one_run, group_size, relation)
    try:
        found = bound_named(name, evidence, settings)
    except EvidenceMismatch as error:
        raise InvalidInput("--method", name, "a method for this evidence", str(error)) from None
    except InvalidInput as error:
        raise _as_option(error) from None
    refuted = claim is not None and found.kind is Kind.CERTIFIED and found.epsilon > claim
    if as_json:
        verdict = {} if claim is None else {"claim": claim, "refuted": refuted}
        emit_json({"lower_bound": found.to_dict(), **verdict})
    else:
        print(found)
        print(found.proof)
        if claim is not None:
            outcome = "refuted" if refuted else "not refuted"
            note = "" if found.kind is Kind.CERTIFIED else f" (only a certified bound refutes; this is {found.kind})"
            print(f"claim ε = {claim:g}: {outcome}{note}")
    if refuted:
        raise typer.Exit(1)


def compare(
    scores: Scores = None,
    counts: CountsOption = None,
    one_run: OneRunFile = None,
    delta: Delta = 0.0,
    confidence: Confidence = 0.95,
    threshold: Threshold = None,
    guesses: Guesses = None,
    direction: Direction = "higher",
    group_size: GroupSize = None,
    relation: RelationOption = "add-remove",
    seed: Seed = 0,
    in_order: InOrder = False,
    as_json: AsJson = False,
) -> None:
    """Every applicable bound in one table: ε, kind, and what it assumes.

    Each holds with its confidence by itself. The largest of them does not: choose a method before you look.

    Examples:

    - `epsilometer compare scores.csv --delta 1e-5`

    - `epsilometer compare --one-run canaries.csv --delta 1e-5 --json`
    """
    from epsilometer.bounds import LowerBound
    from epsilometer.bounds.catalogue import BOUNDS, compare_bounds

    settings = _settings(counts, one_run, delta, confidence, threshold, guesses, direction, seed, in_order)
    evidence = _evidence(scores, counts, one_run, group_size, relation)
    try:
        found = compare_bounds(evidence, settings)
    except InvalidInput as error:
        raise _as_option(error) from None
    if as_json:
        bounds = {n: b.to_dict() if isinstance(b, LowerBound) else {"not_applicable": b} for n, b in found.items()}
        emit_json({"bounds": {n: {**b, "assumes": BOUNDS[n].assumes} for n, b in bounds.items()}})
        return
    print_table(
        ("bound", "ε", "kind", "assumes"),
        [
            (n, f"{b.epsilon:.3f}", str(b.kind), BOUNDS[n].assumes) if isinstance(b, LowerBound) else (n, "–", "–", b)
            for n, b in found.items()
        ],
        f"Lower bounds on ε at δ = {delta:g}, {confidence:g} confidence each (not of the largest)",
    )


def _settings(
    counts: object,
    one_run: object,
    delta: float,
    confidence: float,
    threshold: float | None,
    guesses: int | None,
    direction: str,
    seed: int,
    in_order: bool,
) -> Settings:
    """The settings, once none is given that its evidence has no use for."""
    from epsilometer import checks
    from epsilometer.bounds import Threshold as AllByThreshold
    from epsilometer.bounds.catalogue import Settings
    from epsilometer.bounds.method import MEANING

    checks.delta(delta)
    checks.confidence(confidence)
    checks.whole("seed", seed, least=0)
    if direction not in MEANING:
        raise unknown_name("--direction", direction, MEANING)
    if threshold is not None:
        checks.real("--threshold", threshold, closed="[]")
    useless: list[tuple[str, object, object, str, str]] = []
    if counts is not None:
        why = "counts already come from a chosen test"
        useless += [("--threshold", threshold, None, "nothing with --counts", why)]
        useless += [("--direction", direction, "higher", "nothing with --counts", why)]
    if one_run is not None:
        if guesses is not None and threshold is not None:
            raise InvalidInput("--threshold", threshold, "nothing with --guesses", "a threshold guesses all canaries")
    else:
        useless += [("--guesses", guesses, None, "a number only with --one-run", "scores need no guesses")]
    for option, value, default, expected, remedy in useless:
        if value != default:
            raise InvalidInput(option, value, expected, remedy)
    plan: int | AllByThreshold | None = guesses
    if one_run is not None and threshold is not None:
        plan, threshold = AllByThreshold(-threshold if direction == "lower" else threshold), None
    return Settings(delta, confidence, direction, threshold, plan, seed, in_order)


def _evidence(
    scores: Path | None,
    counts: tuple[int, int, int, int] | None,
    one_run: Path | None,
    group_size: int | None,
    relation: str,
) -> Evidence:
    from epsilometer.cli.scores import content_of, parse_canaries, parse_scores
    from epsilometer.evidence import Counts, OneRun, PairedRuns

    given = [name for name, value in (("SCORES.csv", scores), ("--counts", counts), ("--one-run", one_run)) if value]
    if len(given) != 1:
        expected = "exactly one of them"
        shown = " and ".join(given) or "none"
        raise InvalidInput("SCORES.csv, --counts, --one-run", shown, expected, "name a file, or give four counts")
    if scores is not None:
        content = content_of(scores, "SCORES.csv")
        return PairedRuns(*parse_scores(content), relation, _group_size(group_size, content))
    if one_run is not None:
        content = content_of(one_run, "--one-run")
        return OneRun(*parse_canaries(content), relation, _group_size(group_size, content))
    assert counts is not None
    try:
        return Counts(*counts, relation=relation, group_size=1 if group_size is None else group_size)  # type: ignore[arg-type]
    except InvalidInput as error:
        named = error.argument in ("relation", "group_size")
        raise error if named else error.renamed(f"--counts: {error.argument}") from None


def _group_size(given: int | None, content: bytes) -> int:
    """What the user says, or the file; they must not contradict each other."""
    from epsilometer.cli.scores import stated_group_size

    stated = stated_group_size(content)
    if given is not None and stated is not None and given != stated:
        raise InvalidInput("--group-size", given, f"{stated}, as the file says", "leave it out")
    return next(size for size in (given, stated, 1) if size is not None)


def _as_option(error: InvalidInput) -> InvalidInput:
    options = {"method": "--method", "threshold": "--threshold", "guesses": "--guesses", "direction": "--direction"}
    return error.renamed(options[error.argument]) if error.argument in options else error
