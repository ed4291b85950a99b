"""What records pay, for programs (JSON, CSV) and in a terminal; each with the warning that it is private itself."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from epsilometer.instances import InstanceResult, Leakage
from epsilometer.instances.figures import figures_of
from epsilometer.instances.meaning import (
    CANDIDATES,
    UNLEARNED,
    most_accurate,
    most_memorised,
    most_reconstructed,
    unlearned_for_free,
)
from epsilometer.instances.result import WARNING
from epsilometer.json_values import SCHEMA, json_values
from epsilometer.report.files import Written, write_document
from epsilometer.rounding import up
from epsilometer.runs import Store
from epsilometer.versions import versions
from epsilometer.wrapping import told

TABLE = "records.csv"
_HOW_SURE = {"sum": "By estimate", "mean": "By estimate", "individual": "In the one training that was recorded"}


def instances_to_json(result: InstanceResult, measured: tuple[Leakage, ...] = ()) -> dict[str, Any]:
    """All of it as plain data, ready for `json.dumps`."""
    plan, worst = result.plan, result.worst_case
    document = {
        "schema": SCHEMA,
        "kind": "instances",
        "warning": WARNING,
        "rule": plan.rule,
        "epsilons_are": result.kind,
        "headline": headline(result),
        "training": plan.subject.describe(),
        "worst_case": {**worst.to_dict(), "by_renyi": result.worst_renyi},
        "quantiles": {f"{share:g}": result.quantile(share) for share in (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)},
        "right_against_wrong": result.right_against_wrong,
        "unlearned_for_free": {"epsilon": UNLEARNED, "share": unlearned_for_free(result.epsilons)},
        "candidates": CANDIDATES,
        "records": _rows(result),
        "measured": [one.to_dict() for one in measured],
        "confidence": plan.confidence,
        "trainings": plan.planned_trainings,
        "trainings_wanted": result.trainings_wanted,
        "certified": None if result.certified is None else certified_words(result),
        "checkpoints": {"every": plan.interval, "of_each_training": plan.checkpoints},
        "seconds": round(result.seconds, 3),
        "seed": plan.seed,
        "plan": plan.to_dict(),
        "plan_sha256": plan.fingerprint(),
        "records_sha256": _digest(result, measured),
        "versions": versions(),
        "figures": {name: figure.to_dict() for name, figure in figures_of(result).items()},
    }
    converted: dict[str, Any] = json_values(document)
    return converted


def headline(result: InstanceResult) -> str:
    """In one sentence."""
    worst = result.worst_case
    share = np.mean(result.epsilons < 0.5 * worst.epsilon)
    return (
        f"{_HOW_SURE[result.plan.rule]}, half of {len(result.epsilons)} records pay ε ≤ {up(result.quantile(0.5))} at "
        f"δ = {worst.delta:g}, a tenth of them ε ≤ {up(result.quantile(0.1))}; the worst case, which alone is "
        f"promised, is {up(worst.epsilon)}. {100 * share:.3g} % are below half of it."
    )


def instances_summary(result: InstanceResult, width: int | None = None, measured: tuple[Leakage, ...] = ()) -> str:
    """For people."""
    found, plan = result.right_against_wrong, result.plan
    test = "" if found["p_value"] is None else f" (Mann–Whitney, one-sided p = {found['p_value']:.2g})"
    rows = [
        ("training", plan.subject.describe()),
        ("rule", f"{plan.rule}; ε is {result.kind}"),
        ("worst case", f"{worst_words(result)}"),
        ("right or wrong", f"median ε {_number(found['median_right'])} of {found['right']} records that are classified "
         f"correctly, {_number(found['median_wrong'])} of {found['wrong']} others{test}"),
        *([("certified", certified_words(result))] if result.certified is not None else []),
        ("unlearning", f"{100 * unlearned_for_free(result.epsilons):.3g} % of records have ε ≤ {UNLEARNED:g}: a model "
         "without them would look nearly the same"),
        *(("measured", str(one)) for one in measured),
        ("PRIVATE", WARNING),
    ]  # fmt: skip
    return told((headline(result),), rows, width)


def worst_words(result: InstanceResult) -> str:
    return f"{result.worst_case}; by the moments that records' ε are made of, {up(result.worst_renyi)}"


def certified_words(result: InstanceResult) -> str:
    """What holds with confidence, whatever the law of trainings."""
    assert result.certified is not None
    plan, below = result.plan, int(np.sum(result.certified < result.worst_case.epsilon))
    wanted = result.trainings_wanted
    more = "" if wanted is None or wanted <= plan.planned_trainings else f"; for half of them it takes some {wanted:,}"
    return (
        f"with {100 * plan.confidence:.10g} % confidence for each record, {plan.planned_trainings} trainings certify a "
        f"median of ε ≤ {up(float(np.median(result.certified)))}, and less than the worst case for {below} of "
        f"{len(result.certified)} records{more}"
    )


def records_csv(result: InstanceResult) -> bytes:
    """The content of records.csv."""
    rows = _rows(result)
    lines = [",".join(rows[0]), *(",".join("" if one is None else str(one) for one in row.values()) for row in rows)]
    return ("\n".join([f"# {WARNING}", *lines]) + "\n").encode()


def write_instances(
    directory: Path, result: InstanceResult, store: Store, command: str = "", measured: tuple[Leakage, ...] = ()
) -> Written:
    """result.json, records.csv and report.html in a run directory, and in its store that the run has ended."""
    end = {"verdict": None, "lower_bound": None, "records_sha256": _digest(result, measured), "stopped_early": False}
    store.conclude(result.plan.fingerprint(), end)
    document = {**instances_to_json(result, measured), "command": command}
    return write_document(directory, document, TABLE, records_csv(result))


def _rows(result: InstanceResult) -> list[dict[str, Any]]:
    plan, delta = result.plan, result.plan.delta
    columns = {
        "row": plan.rows,
        "label": result.labels,
        "epsilon": result.epsilons,
        "certified": result.certified,
        "one_training": result.one_training,
        "costliest_training": result.costliest_training,
        "loss": result.losses,
        "right": result.right,
        "membership_accuracy_at_most": most_accurate(result.epsilons, delta),
        "memorised_at_most": most_memorised(result.epsilons, delta),
        "reconstructed_at_most": most_reconstructed(result.epsilons, delta),
    }
    known = {name: values.tolist() for name, values in columns.items() if values is not None}
    return [dict(zip(known, row, strict=True)) for row in zip(*known.values(), strict=True)]


def _digest(result: InstanceResult, measured: tuple[Leakage, ...]) -> str:
    """A hash of what was found."""
    content = records_csv(result) + "".join(repr(one.to_dict()) for one in measured).encode()
    return hashlib.sha256(content).hexdigest()


def _number(value: float | None) -> str:
    return "–" if value is None else up(value)
