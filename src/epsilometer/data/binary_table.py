"""Tables of zeros and ones, as the membership-inference literature uses them; kept in memory as bits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from epsilometer.data.dataset import Dataset
from epsilometer.data.request import TEST, Request
from epsilometer.data.untrusted_files import members

PART = 10_000
"""Records for training, and as many for testing, as Jayaraman and Evans (2019) take of Purchase-100 and Texas-100."""
_SPLIT_SEED = 0


@dataclass(frozen=True, eq=False)
class BinaryTable:
    """`packed`: the features of a record in a row of bits; `labels` from 0."""

    packed: NDArray[np.uint8]
    features: int
    labels: NDArray[np.int64]

    def __post_init__(self) -> None:
        if len(self.packed) != len(self.labels):
            raise ValueError(f"{len(self.packed)} records, {len(self.labels)} labels")

    def dataset(self, request: Request, name: str, classes: int) -> Dataset:
        def unpacked(rows: NDArray[np.int64]) -> NDArray[np.float32]:
            return np.unpackbits(self.packed[rows], axis=1, count=self.features).astype(np.float32)

        return request.dataset(name, unpacked, self.labels, classes=classes)

    def split(self, part: str) -> BinaryTable:
        """Records in the order of a fixed permutation: the first 10,000 are for training, the next for testing.

        Of fewer than 20,000 records each part is half. No split of these data is official.
        """
        size = min(PART, len(self.labels) // 2)
        start = size if part == TEST else 0
        rows = np.random.default_rng(_SPLIT_SEED).permutation(len(self.labels))[start : start + size]
        return BinaryTable(self.packed[rows], self.features, self.labels[rows])


def packed_rows(lines: Iterable[bytes], features: int) -> NDArray[np.uint8]:
    """Lines of `0,1,…` as bits: a tenth of a gigabyte instead of several, for Texas-100."""
    rows = []
    for number, line in enumerate(lines, start=1):
        text = np.frombuffer(line.strip(), np.uint8)
        digits = text[::2] ^ ord("0")
        if len(text) != 2 * features - 1 or digits.max() > 1 or (text[1::2] != ord(",")).any():
            raise ValueError(f"record {number} is not {features} values of 0 or 1")
        rows.append(np.packbits(digits))
    if not rows:
        raise ValueError("no records")
    return np.stack(rows)


def labels_from_one(labels: Iterable[bytes]) -> NDArray[np.int64]:
    return np.array([int(label.strip().strip(b'"')) for label in labels], dtype=np.int64) - 1


def labelled_table(archive: Path, name: str, features: int) -> BinaryTable:
    """A file in an archive with lines of `label,0,1,…`; labels count from 1, and may be quoted."""
    labels: list[bytes] = []

    def values(lines: Iterable[bytes]) -> Iterator[bytes]:
        for line in lines:
            label, _, rest = line.partition(b",")
            labels.append(label)
            yield rest

    with members(archive, name) as found:
        (packed,) = [packed_rows(values(lines), features) for _, lines in found]
        return BinaryTable(packed, features, labels_from_one(labels))
