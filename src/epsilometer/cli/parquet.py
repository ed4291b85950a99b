"""Score files in Parquet, read by pyarrow or polars, whichever is installed."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.arrays import Floats
from epsilometer.cli.columns import Columns, find_columns
from epsilometer.cli.scores import missing_world, one_word_each
from epsilometer.errors import InvalidInput

_MAGIC = b"PAR1"
_File = tuple[list[str], Callable[[str], NDArray[Any]]]  # names of columns, and how to get one


@dataclass(frozen=True, eq=False)
class Table:
    """What a file says of each row."""

    columns: Columns
    inside: NDArray[np.bool_]
    scores: Floats  # higher means member
    group_size: int | None
    neighbours: dict[str, str]  # unit and relation, if the file says them

    @property
    def worlds(self) -> tuple[Floats, Floats]:
        """Scores of the out-world and of the in-world."""
        if self.inside.all() or not self.inside.any():
            raise missing_world(0 if self.inside.all() else 1)
        return self.scores[~self.inside], self.scores[self.inside]


def is_parquet(path: Path, content: bytes) -> bool:
    """By its first bytes, which stdin has too; a file that is called so must be one."""
    return content.startswith(_MAGIC) or path.suffix == ".parquet"


def read_parquet(content: bytes, argument: str, side: str) -> Table:
    """The rows of a table with the columns `side` ("world" or "member") and score."""
    try:
        names, column = _opened(content, argument)
        header = [name.strip().lower() for name in names]
        columns = find_columns(header, side)

        def numbers(name: str) -> Floats:
            return _numbers(name, column(names[header.index(name)]))

        scores, sides = columns.sign * numbers(columns.score_name), numbers(columns.side_name)
        sizes = numbers("group_size") if "group_size" in header else np.empty(0)
        words = [name for name in header if name in ("unit", "relation")]
        said = {name: {*map(str, column(names[header.index(name)]))} for name in words}
    except (InvalidInput, MemoryError):
        raise
    except Exception as error:  # the two libraries have dozens of their own
        expected = f"a Parquet file ({type(error).__name__}: {str(error)[:80]})"
        raise InvalidInput(argument, f"{len(content)} bytes", expected, "write it again, or as .csv") from None
    if not len(scores):
        raise InvalidInput(argument, "no rows", "a row for each score")
    odd = np.flatnonzero(~np.isin(sides, (0, 1)))
    if odd.size:
        where = f"{columns.side_name} in row {odd[0] + 1}"
        raise InvalidInput(where, float(sides[odd[0]]), "0 (out) or 1 (in)")
    return Table(columns, sides == 1, scores, _group_size(sizes), one_word_each(said))


def _opened(content: bytes, argument: str) -> _File:
    for opened in (_by_pyarrow, _by_polars):
        try:
            return opened(content)
        except ImportError:
            continue
    remedy = "pip install 'epsilometer[parquet]', or write .csv"
    raise InvalidInput(argument, "a Parquet file", "pyarrow or polars to be installed", remedy)


def _by_pyarrow(content: bytes) -> _File:
    import pyarrow
    from pyarrow import parquet

    file = parquet.ParquetFile(pyarrow.BufferReader(content))
    return list(file.schema_arrow.names), lambda name: file.read(columns=[name]).column(0).to_numpy()


def _by_polars(content: bytes) -> _File:
    import polars

    frame = polars.read_parquet(io.BytesIO(content))
    return list(frame.columns), lambda name: frame[name].to_numpy()


def _numbers(name: str, values: NDArray[Any]) -> Floats:
    if values.dtype.kind not in "biuf":  # truth values with nulls come as objects, too
        raise InvalidInput(name, f"a column of {values.dtype.name}", "a column of numbers without gaps", "convert it")
    found = values.astype(np.float64)
    gaps = np.flatnonzero(np.isnan(found))
    if gaps.size:
        raise InvalidInput(f"{name} in row {gaps[0] + 1}", "none", "a number", "find out which trial failed")
    return found


def _group_size(cells: Floats) -> int | None:
    """As in our own files: one whole number in every row."""
    sizes = np.unique(cells)
    if len(sizes) > 1 or not all(size.is_integer() and size >= 0 for size in sizes.tolist()):
        raise InvalidInput("group_size", sizes[:4].tolist(), "one whole number in every row", "remove the column")
    return int(sizes[0]) if len(sizes) else None
