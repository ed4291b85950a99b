"""`epsilometer mechanism`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epsilometer.cli.driver import Means, Players, Study, conduct
from epsilometer.cli.groups import Only, grouped
from epsilometer.cli.manner import Manner
from epsilometer.cli.neighbours import said_neighbours
from epsilometer.cli.outlets import this_command
from epsilometer.cli.output import emit_json, print_table
from epsilometer.cli.plan import BoundName
from epsilometer.errors import InvalidInput
from epsilometer.wrapping import wrapped

if TYPE_CHECKING:
    from epsilometer.auditing import AuditResult, Plan
    from epsilometer.claims import Claim
    from epsilometer.mechanisms import Sensitivity
    from epsilometer.neighbours import Neighbours

SHOWN = 200  # characters of a value


@dataclass(frozen=True)
class MechanismOptions:
    """Options: what is claimed of a mechanism, and how it is audited."""

    epsilon: Annotated[float | None, typer.Option(help="The claimed ε, which named mechanisms are made for.")] = None
    delta: Annotated[float, typer.Option(help="The claimed δ.")] = 0.0
    curve: Annotated[
        bool, typer.Option("--curve", help="Hold a named mechanism to its whole curve instead of the point (ε, δ).")
    ] = False
    neighbours: Annotated[
        tuple[str, str] | None,
        typer.Option(help="Two neighbouring values, in JSON or as .json files; else they are searched for."),
    ] = None
    sensitivity: Annotated[float | None, typer.Option(help="The most that one record, or user, changes a value.")] = (
        None
    )
    norm: Annotated[str, typer.Option(help="For a function of your own, of what: l1, l2, linf, or records.")] = "l1"
    relation: Annotated[
        str | None,
        typer.Option(help="For a function of your own: add-remove (usual), replace or zero-out; a name has its own."),
    ] = None
    unit: Annotated[
        str, typer.Option(help="For a function of your own, what its ε protects: a record, a user, or another word.")
    ] = "record"
    entries: Annotated[int | None, typer.Option(help="Entries of the values that are searched through.")] = None
    runs: Annotated[int, typer.Option(help="Releases of each world that are judged.")] = 1_000_000
    learning: Annotated[
        int | None, typer.Option(help="Releases of each world before them, which choose neighbours and score.")
    ] = None
    score: Annotated[
        str | None,
        typer.Option(
            help="auto, as-reals (no last bits; usual for functions of your own), value, learned or last-bits."
        ),
    ] = None
    confidence: Annotated[float, typer.Option(help="Of the lower bound and of a violation.")] = 0.95
    bound: BoundName = None
    seed: Annotated[int, typer.Option(help="Every release follows from it.")] = 0
    deterministic: Annotated[
        bool,
        typer.Option("--deterministic/--not-deterministic", help="Whether your own function follows from its rng."),
    ] = True

    def plan(self, name: str) -> Plan:
        """The audit of the mechanism of that name, or of a function of the user's own."""
        from epsilometer.auditing.mechanism_audit import mechanism_plan, neighbours_of
        from epsilometer.bounds import method_named

        if self.epsilon is None:
            raise InvalidInput("--epsilon", None, "the claimed ε")
        said = said_neighbours(self.relation or "add-remove", self.unit)
        return mechanism_plan(
            name,
            epsilon=self.epsilon,
            delta=self.delta,
            claim=self._claim(name, self.epsilon, said),
            sensitivity=self._stated(name, said),
            neighbours=None if self.neighbours is None else neighbours_of(*self.neighbours),
            entries=self.entries,
            runs=self.runs,
            learning=self.learning,
            score=self.score,
            confidence=self.confidence,
            method=None if self.bound is None else method_named(self.bound, seed=self.seed),
            seed=self.seed,
            deterministic=self.deterministic,
        )

    def _claim(self, name: str, epsilon: float, said: Neighbours) -> Claim | None:
        """What is claimed: a named mechanism's whole curve, or the point; none of a name that nobody knows."""
        from epsilometer.claims import PointClaim
        from epsilometer.mechanisms import MECHANISMS, mechanism_named

        if not _is_own(name) and name in MECHANISMS:
            if said.unit != "record":
                expected = "record: mechanisms that have names are about records"
                raise InvalidInput("--unit", said.unit, expected, "name a function of your own")
            most = 1.0 if self.sensitivity is None else self.sensitivity
            made = mechanism_named(name, epsilon, self.delta, most)
            if self.relation is not None and said.relation is not made.relation:
                expected = f"{made.relation}, of which {name} speaks"
                raise InvalidInput(
                    "--relation", self.relation, expected, "leave it out, or name a function of your own"
                )
            return made.claim if self.curve else PointClaim(epsilon, self.delta, made.relation)
        if self.curve:
            remedy = "leave it out: the point (ε, δ) is claimed"
            raise InvalidInput("--curve", name, "a mechanism that has a name", remedy)
        return PointClaim(epsilon, self.delta, said.relation, said.unit) if _is_own(name) else None

    def _stated(self, name: str, said: Neighbours) -> Sensitivity | float | None:
        """The sensitivity; of a function of the user's own, with its norm and neighbours."""
        from epsilometer.mechanisms import Sensitivity

        if self.sensitivity is None or not _is_own(name):
            return self.sensitivity
        return Sensitivity(self.sensitivity, self.norm, said.relation, said.unit)


@grouped
def mechanism(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME|FUNCTION]",
            help="A mechanism by name, or your own function: mymodule:release or file.py:release. If none, a list.",
        ),
    ] = None,
    *,
    options: MechanismOptions,
    out: Annotated[Path | None, typer.Option(help="Directory for trials and results; a stopped audit goes on.")] = None,
    players: Annotated[Players, Only("executor", "workers")],
    manner: Manner,
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
    from epsilometer.auditing import Outcome
    from epsilometer.report import write_results

    if name is None:
        _list(manner.as_json)
        return
    plan = options.plan(name)
    study = Study(
        plan=lambda *_: plan,
        play=_played,
        document=_document,
        text=_text,
        write=lambda place, result: write_results(place, result, this_command()),
    )
    if conduct(study, out, players, manner).verdict.outcome is Outcome.VIOLATED:
        raise typer.Exit(1)


def _is_own(name: str) -> bool:
    """Whether it is a function of the user's own."""
    return ":" in name


def _played(plan: Plan, means: Means) -> AuditResult:
    from epsilometer.auditing import run

    return run(plan, means.told, store=means.store, executor=means.executor)


def _found(result: AuditResult) -> tuple[Any, Any, str] | None:
    """The neighbours and the score that were chosen."""
    from epsilometer.adversaries.distinguisher import chosen

    return None if result.prepared is None else chosen(result.prepared.arrays)


def _document(result: AuditResult) -> dict[str, Any]:
    from epsilometer.report import to_json

    found = _found(result)
    named = {} if found is None else dict(zip(("out", "in", "score"), found, strict=True))
    return {**to_json(result), "neighbours": named}


def _text(result: AuditResult, width: int | None) -> str:
    from epsilometer.report import summary

    found = _found(result)
    if found is None:
        return summary(result, width)
    pair = f"neighbours: {_short(found[0])} and {_short(found[1])}; score: {found[2]}"
    return f"{summary(result, width)}\n{wrapped(pair, width)}"


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
