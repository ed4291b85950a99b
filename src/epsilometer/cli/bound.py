"""`epsilometer bound` and `epsilometer compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from epsilometer.cli.groups import as_user_wrote, grouped
from epsilometer.cli.manner import AsJson
from epsilometer.cli.neighbours import RelationOption, UnitOption, said_neighbours
from epsilometer.cli.outlets import OutletOptions, telling
from epsilometer.cli.output import advise, emit_json, print_table, print_text, say, width
from epsilometer.cli.schedule import BatchSize, Epochs, Records, rate_and_steps
from epsilometer.errors import EvidenceMismatch, InvalidInput, unknown_name

if TYPE_CHECKING:
    from epsilometer.bounds.catalogue import Settings

Scores = Annotated[
    Path | None,
    typer.Argument(
        help="CSV or Parquet with the columns world (or label; 0 out, 1 in) and score (or loss, whose sign is turned), "
        "a row for each training; - is stdin."
    ),
]
OneRunFile = Annotated[
    Path | None,
    typer.Option("--one-run", help="The same for one training's canaries: member (or label; 0 or 1) and score."),
]
COUNTS = "TP FP FN TN"
CountsOption = Annotated[tuple[int, int, int, int] | None, typer.Option(help="Instead of scores.", metavar=COUNTS)]
Delta = Annotated[float, typer.Option(help="δ, such as 1e-5; 0 for pure ε-DP.")]
Confidence = Annotated[float, typer.Option(help="Of the bound.")]
Threshold = Annotated[float | None, typer.Option(help="Fixed beforehand: member iff score > it.")]
Guesses = Annotated[int | None, typer.Option(help="With --one-run: how many guesses, chosen beforehand.")]
Direction = Annotated[str, typer.Option(help="Which scores mean member: higher, lower or either.")]
GroupSize = Annotated[
    int | None,
    typer.Option(help="Records, or users, in which worlds differ, or that a canary has: 1, or what the file says."),
]
Seed = Annotated[int, typer.Option(help="Of random halves, orders and simulations.")]
InOrder = Annotated[
    bool,
    typer.Option(
        "--in-order",
        help="Rows stand as they came, and nobody sorted them: eprocess need not shuffle, and "
        "the order decides between canaries of one score.",
    ),
]
_ADVICE = (
    "Quote a certified bound whose method you chose before you looked. The largest of several fails more often than "
    "its confidence says, and the kinds family, credible and estimate assume more than a claim can be refuted with."
)


@grouped
def bound(
    scores: Scores = None,
    counts: CountsOption = None,
    one_run: OneRunFile = None,
    delta: Delta = 1e-5,
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
    unit: UnitOption = "record",
    claim: Annotated[
        float | None, typer.Option(help="A claimed ε to test at δ; exit code 1 if the verdict is violated.")
    ] = None,
    sample_rate: Annotated[
        float | None,
        typer.Option(help="With σ and T: test the whole curve that DP-SGD with Poisson sampling promises. Its q."),
    ] = None,
    noise_multiplier: Annotated[float | None, typer.Option(help="σ of that training.")] = None,
    steps: Annotated[int | None, typer.Option(help="T of that training.")] = None,
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    records: Records = None,
    seed: Seed = 0,
    in_order: InOrder = False,
    *,
    outlets: OutletOptions,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """A lower bound on ε from an attack's scores or counts; with a claim, its test and a verdict.

    A curve (--sample-rate, --noise-multiplier, --steps) promises far more than one of its points (--claim), so a false
    one is refuted with far fewer trainings.

    Examples:

    - `epsilometer bound scores.csv --delta 1e-5`

    - `epsilometer bound scores.parquet --delta 1e-5 --sample-rate 0.1 --noise-multiplier 1.4 --steps 100`

    - `epsilometer bound --counts 970 20 30 980 --delta 1e-5 --claim 3`

    - `epsilometer bound --one-run canaries.csv --delta 1e-5`

    - `epsilometer bound scores.csv --delta 1e-5 --claim 3 --require consistent --junit bound.xml` is for a CI.
    """
    from epsilometer.bounds.catalogue import bound_named
    from epsilometer.cli.given import given
    from epsilometer.cli.judge import NO_JUDGEMENT, claimed, found_by, headline_for, judged, rows_of

    settings = _settings(counts, one_run, delta, confidence, threshold, guesses, direction, seed, in_order)
    rate, count = rate_and_steps(sample_rate, steps, epochs, batch_size, records)
    neighbours = said_neighbours(relation, unit)
    promise = claimed(claim, rate, noise_multiplier, count, delta, neighbours)
    if outlets.require is not None and promise is None:
        remedy = "add --claim, or --sample-rate, --noise-multiplier and --steps"
        raise InvalidInput("--require", outlets.require, "a claim that could be consistent", remedy)
    others = telling(outlets)
    name = "fixed" if method is None and settings.threshold is not None else method
    read = given(scores, counts, one_run, group_size, neighbours, settings)
    try:
        judgement = None if promise is None else judged(name, read.evidence, settings, promise)
        found = bound_named(name, read.evidence, settings) if judgement is None else judgement.lower_bound
    except EvidenceMismatch as error:
        raise InvalidInput("--method", name, "a method for this evidence", str(error)) from None
    except InvalidInput as error:
        raise _as_option(error) from None
    short = headline_for(found, judgement)
    said = {"lower_bound": found.to_dict(), **NO_JUDGEMENT} if judgement is None else judgement.to_dict()
    document = {"headline": str(short), "quote": short.quote, **said, "remarks": read.remarks}
    if as_json:
        emit_json(document)
    else:
        from epsilometer.wrapping import told

        _remark(read.remarks)
        rows = [("bound", str(found)), ("", f"from {found.proof}"), *rows_of(judgement)]
        print_text(told(short.sentences, rows, width()))
    file = scores or one_run
    source = f"counts {read.evidence}" if file is None else "scores from stdin" if str(file) == "-" else str(file)
    others.finish(
        lambda command: found_by(source, read.evidence, found, judgement, document, command),
        None if judgement is None else judgement.verdict.outcome,
    )


def compare(
    scores: Scores = None,
    counts: CountsOption = None,
    one_run: OneRunFile = None,
    delta: Delta = 1e-5,
    confidence: Confidence = 0.95,
    threshold: Threshold = None,
    guesses: Guesses = None,
    direction: Direction = "higher",
    group_size: GroupSize = None,
    relation: RelationOption = "add-remove",
    unit: UnitOption = "record",
    seed: Seed = 0,
    in_order: InOrder = False,
    as_json: AsJson = False,
) -> None:
    """Every applicable bound in one table: ε, kind, and what it assumes.

    Quote the one that you chose before you looked: the largest of several bounds fails more often than each of them.

    Examples:

    - `epsilometer compare scores.csv --delta 1e-5`

    - `epsilometer compare --one-run canaries.csv --delta 1e-5 --json`
    """
    from epsilometer.bounds import METHODS
    from epsilometer.bounds.catalogue import compare_bounds
    from epsilometer.cli.given import given
    from epsilometer.rounding import down

    settings = _settings(counts, one_run, delta, confidence, threshold, guesses, direction, seed, in_order)
    read = given(scores, counts, one_run, group_size, said_neighbours(relation, unit), settings)
    try:
        found = compare_bounds(read.evidence, settings)
    except InvalidInput as error:
        raise _as_option(error) from None
    if as_json:
        bounds = {n: {"not_applicable": b} if isinstance(b, str) else b.to_dict() for n, b in found.items()}
        listed = {n: {**b, "assumes": METHODS[n].assumes} for n, b in bounds.items()}
        emit_json({"headline": _ADVICE, "bounds": listed, "remarks": read.remarks})
        return
    advise(_ADVICE)
    _remark(read.remarks)
    print_table(
        ("bound", "ε", "kind", "assumes"),
        [
            (n, "–", "–", b) if isinstance(b, str) else (n, down(b.epsilon), str(b.kind), METHODS[n].assumes)
            for n, b in found.items()
        ],
        f"Lower bounds on ε at δ = {delta:g} ({read.evidence.neighbours}), {confidence:g} confidence each",
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
    from epsilometer import validate
    from epsilometer.bounds import Threshold as AllByThreshold
    from epsilometer.bounds.catalogue import Settings
    from epsilometer.bounds.method import MEANING

    validate.delta(delta)
    validate.confidence(confidence)
    validate.whole("seed", seed, least=0)
    if direction not in MEANING:
        raise unknown_name("--direction", direction, MEANING)
    if threshold is not None:
        validate.real("--threshold", threshold, closed="[]")
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


def _remark(remarks: list[str]) -> None:
    for remark in remarks:
        say(f"remark: {remark}")


def _as_option(error: InvalidInput) -> InvalidInput:
    return as_user_wrote(error, {name: f"--{name}" for name in ("method", "threshold", "guesses", "direction")})
