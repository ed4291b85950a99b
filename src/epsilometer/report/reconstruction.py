"""How well records were rebuilt: for people, for programs, and record by record."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from epsilometer.figures.figure import number
from epsilometer.json_values import SCHEMA, json_values
from epsilometer.reconstruction import LIMITS_ARE, AtNoise, ReconstructionResult, error_words
from epsilometer.report.files import Written, write_document
from epsilometer.report.headline import Headline
from epsilometer.report.private import OF_REBUILT
from epsilometer.report.scores import csv_of
from epsilometer.rounding import confidence, up
from epsilometer.runs import RESULTS
from epsilometer.versions import versions
from epsilometer.wrapping import Row, told


def reconstruction_headline(result: ReconstructionResult) -> Headline:
    """The least and the most noise, and up to which noise a record is rebuilt better than guessed."""
    plan, ends = result.plan, dict.fromkeys((min(result.at, key=_noise), max(result.at, key=_noise)))
    told_of = "; ".join(f"at σ = {one.noise_multiplier:g} {_how_good(one)}" for one in ends)
    first = f"Of {plan.records} records, rebuilt from {plan.attack.describe()}: {told_of}."
    better = [one.noise_multiplier for one in result.at if one.cut_mse < one.guess_mse]
    second = f"Answering with the mean record has an error of {number(result.at[0].guess_mse)}: "
    if better:
        second += f"at σ = {max(better):g} and less this attack was better than that."
    else:
        second += "at no noise of these was this attack better than that."
    return Headline(None, (first, second), told_of)


def reconstruction_summary(result: ReconstructionResult, width: int | None = None) -> str:
    """The headline, then a row for every noise multiplier."""
    plan = result.plan
    rows: list[Row] = [
        ("attacked", plan.words()),
        ("records", f"{plan.records} of {len(plan.data)}, seed {plan.seed}, {result.seconds:.1f} s"),
    ]
    for one in result.at:
        limits = f"limits {error_words(one.fisher_limit)} (Fisher), {error_words(one.renyi_limit)} (Rényi)"
        rows.append(
            (f"σ = {one.noise_multiplier:g}", f"{_how_good(one)}; before the cut {_before_the_cut(one)}; {limits}")
        )
        rows.append(("", f"noise promises ε ≤ {up(one.epsilon)} at δ = {result.delta:g}, a record replaced"))
    sure = confidence(result.confidence)
    rows.append(("limits", LIMITS_ARE))
    rows.append(("errors", "mean squares per feature; recognised: nearest to the right one of all records, "
                 f"{sure} for each number by itself"))  # fmt: skip
    rows.append(("PRIVATE", "what was rebuilt are records: do not publish it"))
    return told(reconstruction_headline(result).sentences, rows, width)


def reconstruction_to_json(result: ReconstructionResult, command: str = "") -> dict[str, Any]:
    """The result as plain data; the report follows from it."""
    plan, headline = result.plan, reconstruction_headline(result)
    pictures = {f"record {row}": one.to_dict() for row, one in result.pictures().items()}
    low, high = plan.value_range
    document = {
        "kind": plan.kind,
        "schema": SCHEMA,
        "warning": OF_REBUILT,
        "headline": str(headline),
        "quote": headline.quote,
        "verdict": None,
        "attacked": plan.words(),
        "unbiased": plan.attack.unbiased,
        "lower_bound": None,
        "upper_bound": None,
        "family_bound": None,
        "noises": [one.to_dict() for one in result.at],
        "limits_are": LIMITS_ARE,
        "range": {"low": low, "high": high},
        "records": {"rebuilt": plan.rows.tolist(), "of": len(plan.data)},
        "trials": {"records": plan.records, "noises": len(plan.noises)},
        "stopped_early": False,
        "delta": result.delta,
        "confidence": result.confidence,
        "seconds": round(result.seconds, 3),
        "seed": plan.seed,
        "plan": plan.to_dict(),
        "plan_sha256": plan.fingerprint(),
        "scores_sha256": hashlib.sha256(reconstruction_csv(result)).hexdigest(),
        "versions": versions(),
        "figures": {"errors": result.figure().to_dict(), **pictures},
        "command": command,
    }
    converted: dict[str, Any] = json_values(document)
    return converted


def reconstruction_csv(result: ReconstructionResult) -> bytes:
    """The content of scores.csv: a row for each noise and record."""
    plan, (low, high) = result.plan, result.plan.value_range
    pixels = plan.data.x.astype(np.float64)
    rows = []
    for noise, several in zip(plan.noises, result.rebuilt, strict=True):
        for row, one in zip(plan.rows.tolist(), several, strict=True):
            cut = one.within(low, high)
            rows.append((noise, row, one.mse, cut.mse, int(cut.finds(pixels, row))))
    names = ("noise_multiplier", "record", "mse", "cut_mse", "found")
    return csv_of({name: [row[i] for row in rows] for i, name in enumerate(names)})


def write_reconstruction(directory: Path, result: ReconstructionResult, command: str = "") -> Written:
    """result.json, scores.csv and report.html of a run, each whole or not at all."""
    document = reconstruction_to_json(result, command)
    return write_document(directory, document, RESULTS[1], reconstruction_csv(result))


def _noise(one: AtNoise) -> float:
    return one.noise_multiplier


def _before_the_cut(one: AtNoise) -> str:
    """Limits are on means; a median says what is usual where a few estimates are far off."""
    return f"{error_words(one.mean_mse)} in the mean ({error_words(one.mse)} in the median)"


def _how_good(one: AtNoise) -> str:
    return f"an error of {error_words(one.cut_mse)} per feature, {100 * one.found.value:.0f} % recognised"
