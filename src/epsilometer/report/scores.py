"""Stored scores as a table, for other tools."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from epsilometer.audit import Results, toss_coins
from epsilometer.errors import InvalidInput
from epsilometer.evidence import OneRun
from epsilometer.report.files import write_whole

Columns = dict[str, list[Any]]


def write_scores(target: Path, plan: dict[str, Any], results: Results) -> int:
    """Write a run's scores to a new file, CSV or Parquet by its name; how many there were."""
    if target.exists():
        raise InvalidInput("--export", str(target), "a file that does not exist yet", "name another")
    writers = {".csv": _csv, ".parquet": _parquet}
    if target.suffix not in writers:
        raise InvalidInput("--export", str(target), "a name that ends in .csv or .parquet")
    columns = _canaries(plan, results) if plan["evidence"] == OneRun.__name__ else _pairs(results)
    content = writers[target.suffix](columns)
    try:
        write_whole(target, content)
    except OSError as error:
        raise InvalidInput("--export", str(target), f"a file to write to ({error.strerror})") from None
    return len(columns["score"])


def _pairs(results: Results) -> Columns:
    rows = [(world, index, float(scores[0])) for (world, index), scores in sorted(results.items(), key=_by_index)]
    return _columns(("world", "index", "score"), rows)


def _canaries(plan: dict[str, Any], results: Results) -> Columns:
    rows = []
    for (_, index), scores in sorted(results.items(), key=_by_index):
        coins = toss_coins(plan["seed"], index, len(scores))
        numbered = zip(coins.astype(int).tolist(), scores.tolist(), strict=True)
        rows += [(index, canary, member, score) for canary, (member, score) in enumerate(numbered)]
    return _columns(("index", "canary", "member", "score"), rows)


def _by_index(item: tuple[tuple[int, int], Any]) -> tuple[int, int]:
    (world, index), _ = item
    return index, world


def _columns(names: Iterable[str], rows: list[tuple[Any, ...]]) -> Columns:
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def _csv(columns: Columns) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue().encode()


def _parquet(columns: Columns) -> bytes:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise InvalidInput(
            "--export", ".parquet", "pyarrow to be installed", "pip install 'epsilometer[parquet]', or write .csv"
        ) from None
    arrays = {name: np.array(values, np.float64 if name == "score" else np.int64) for name, values in columns.items()}
    buffer = io.BytesIO()
    parquet.write_table(pyarrow.table(arrays), buffer)
    return buffer.getvalue()
