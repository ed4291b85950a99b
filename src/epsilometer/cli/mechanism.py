"""`epsilometer mechanism`."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from epsilometer.cli.audit import continued
from epsilometer.cli.outlets import this_command
from epsilometer.cli.output import emit_json, print_table, print_text, say
from epsilometer.cli.plan import AsJson, BoundName, ExecutorName, Quiet, Workers
from epsilometer.cli.progress import broken_pipes_are_errors, progress
from epsilometer.errors import InvalidInput

SHOWN = 200  # characters of a value


def mechanism(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME|FUNCTION]",
            help="A mechanism by name, or your own function: mymodule:release or file.py:release. If none, a list.",
        ),
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="The claimed ε, which named mechanisms are made for.")] = None,
    delta: Annotated[float, typer.Option(help="The claimed δ.")] = 0.0,
    curve: Annotated[
        bool, typer.Option("--curve", help="Hold a named mechanism to its whole curve instead of the point (ε, δ).")
    ] = False,
    neighbours: Annotated[
        tuple[str, str] | None,
        typer.Option(help="Two neighbouring values, in JSON or as .json files; else they are searched for."),
    ] = None,
    sensitivity: Annotated[float | None, typer.Option(help="The most that one record changes a value.")] = None,
    norm: Annotated[str, typer.Option(help="For a function of your own, of what: l1, l2, linf, or records.")] = "l1",
    relation: Annotated[
        str, typer.Option(help="For a function of your own: add-remove, replace or zero-out.")
    ] = "add-remove",
    entries: Annotated[int | None, typer.Option(help="Entries of the values that are searched through.")] = None,
    runs: Annotated[int, typer.Option(help="Releases of each world that are judged.")] = 1_000_000,
    learning: Annotated[
        int | None, typer.Option(help="Releases of each world before them, which choose neighbours and score.")
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(
            help="auto, as-reals (no last bits; usual for functions of your own), value, learned or last-bits."
        ),
    ] = None,
    confidence: Annotated[float, typer.Option(help="Of the lower bound and of a violation.")] = 0.95,
    bound: BoundName = None,
    seed: Annotated[int, typer.Option(help="Every release follows from it.")] = 0,
    deterministic: Annotated[
        bool,
        typer.Option("--deterministic/--not-deterministic", help="Whether your own function follows from its rng."),
    ] = True,
    out: Annotated[Path | None, typer.Option(help="Directory for trials and results; a stopped audit goes on.")] = None,
    executor: ExecutorName = "auto",
    workers: Workers = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Audit a noise mechanism: many releases for two neighbouring values, and a verdict on its ε.

    Examples:

    - `epsilometer mechanism` lists the mechanisms that have names, and those that are broken on purpose.

    - `epsilometer mechanism laplace --epsilon 1`

    - `epsilometer mechanism sparse-vector-6 --epsilon 1 --bound eprocess` stops as soon as it is refuted.

    - `epsilometer mechanism gaussian --epsilon 1 --delta 1e-5 --curve` holds it to its whole curve.

    - `epsilometer mechanism mymodule:release --epsilon 1 --neighbours '[1, 2, 3]' '[1, 2]'` audits your own
      `release(value, rng, size)`, `release(value, rng)` or `release(value)`.

    - `epsilometer mechanism mymodule:release --epsilon 1 --sensitivity 1 --norm linf --entries 10` searches neighbours.
    """
    from epsilometer.adversaries.distinguisher import chosen
    from epsilometer.auditing import Outcome, run
    from epsilometer.auditing.mechanism_audit import mechanism_plan, neighbours_of
    from epsilometer.bounds import method_named
    from epsilometer.claims import Claim, PointClaim, Relation
    from epsilometer.mechanisms import MECHANISMS, Sensitivity, mechanism_named
    from epsilometer.report import summary, to_json, write_results
    from epsilometer.runs import MemoryStore, executor_named, run_directory
    from epsilometer.wrapping import wrapped

    if name is None:
        _list(as_json)
        return
    if epsilon is None:
        raise InvalidInput("--epsilon", None, "the claimed ε")
    own = ":" in name
    claim: Claim | None = None
    if not own and name in MECHANISMS:
        made = mechanism_named(name, epsilon, delta, 1.0 if sensitivity is None else sensitivity)
        claim = made.claim if curve else PointClaim(epsilon, delta, made.relation)
    elif curve:
        raise InvalidInput("--curve", name, "a mechanism that has a name", "leave it out: the point (ε, δ) is claimed")
    elif own:
        claim = PointClaim(epsilon, delta, Relation.of(relation))
    stated: Sensitivity | float | None = sensitivity
    if own and sensitivity is not None:
        stated = Sensitivity(sensitivity, norm, Relation.of(relation))
    plan = mechanism_plan(
        name,
        epsilon=epsilon,
        delta=delta,
        claim=claim,
        sensitivity=stated,
        neighbours=None if neighbours is None else neighbours_of(*neighbours),
        entries=entries,
        runs=runs,
        learning=learning,
        score=score,
        confidence=confidence,
        method=None if bound is None else method_named(bound, seed=seed),
        seed=seed,
        deterministic=deterministic,
    )
    with ExitStack() as stack:
        told = stack.enter_context(progress(quiet))
        stack.enter_context(broken_pipes_are_errors())
        on_disk = None if out is None else stack.enter_context(run_directory(out, plan))
        store = MemoryStore() if on_disk is None else on_disk
        with continued(out, plan, on_disk):
            result = run(plan, told, store=store, executor=executor_named(executor, workers))
        prepared = store.preparation(plan.fingerprint())
    found = None if prepared is None else chosen(prepared.arrays)
    if as_json:
        named = {} if found is None else dict(zip(("out", "in", "score"), found, strict=True))
        emit_json({**to_json(result), "neighbours": named})
    else:
        print_text(lambda width: summary(result, width))
        if found is not None:
            pair = f"neighbours: {_short(found[0])} and {_short(found[1])}; score: {found[2]}"
            print_text(lambda width: wrapped(pair, width))
    if out is not None:
        say(str(write_results(out, result, this_command())))
    if result.verdict.outcome is Outcome.VIOLATED:
        raise typer.Exit(1)


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _list(as_json: bool) -> None:
    from epsilometer.mechanisms import MECHANISMS

    if as_json:
        listed = {name: {"summary": one.summary, "fault": one.fault} for name, one in MECHANISMS.items()}
        emit_json({"mechanisms": listed})
        return
    rows = [(name, one.summary or f"BROKEN: {one.fault}") for name, one in MECHANISMS.items()]
    print_table(("mechanism", "what it is"), rows)
