"""Adult (UCI): 48,842 people of the 1994 US census; does the income exceed 50,000 dollars a year?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from epsilometer.data.dataset import Dataset
from epsilometer.data.download import Remote
from epsilometer.data.files import all_in_one_folder
from epsilometer.data.request import TEST, Request
from epsilometer.data.untrusted_files import contents, reading

_ADDRESS = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/"
FILES = (
    Remote("adult.data", f"{_ADDRESS}adult.data", "md5:5d7c39d7b8804f071cdd1f2a7c460872"),
    Remote("adult.test", f"{_ADDRESS}adult.test", "md5:35238206dfdf7f1fe215bbb874adecdc"),
)
CLASS_NAMES = ("<=50K", ">50K")
_COLUMNS = 14
# Where each category's columns are among the features, in the order of their values' names.
CATEGORIES = {
    "workclass": slice(6, 15),
    "education": slice(15, 31),
    "marital-status": slice(31, 38),
    "occupation": slice(38, 53),
    "relationship": slice(53, 59),
    "race": slice(59, 64),  # Amer-Indian-Eskimo, Asian-Pac-Islander, Black, Other, White
    "sex": slice(64, 66),  # Female, Male
    "native-country": slice(66, 108),
}
_NUMBERS = (0, 2, 4, 10, 11, 12)  # age, fnlwgt, education-num, capital-gain, capital-loss, hours-per-week


def adult(request: Request) -> Dataset:
    """Numbers scaled to [0, 1] by the training part's range, then categories one-hot; "?" is a category of its own.

    A category that only the test part has would be all zeros.
    """
    remotes = FILES if request.part == TEST else FILES[:1]
    wanted = [(remote.file, f"{remote.file}.gz") for remote in remotes]
    found = (all_in_one_folder(folder, *wanted) for folder in request.files.folders("adult"))
    paths = next((paths for paths in found if paths), None) or request.files.get("adult", remotes)
    tables = [_table(path) for path in paths]  # the scales are the training part's
    with reading(paths[-1], "numbers in the columns of numbers"):
        features = _encoded(tables[-1][:, :_COLUMNS], tables[0][:, :_COLUMNS])
    labels = (tables[-1][:, _COLUMNS] == CLASS_NAMES[1]).astype(np.int64)
    return request.dataset("adult", lambda rows: features[rows], labels, classes=2, class_names=CLASS_NAMES)


def _table(path: Path) -> NDArray[np.str_]:
    """Fifteen values a line; the test file has a comment in its first line, and a full stop after each income."""
    with reading(path, f"lines of {_COLUMNS} values and an income"):
        lines = contents(path).decode("ascii").splitlines()
        rows = [line.rstrip(".").split(", ") for line in lines if line and not line.startswith("|")]
        for number, row in enumerate(rows, start=1):
            if len(row) != _COLUMNS + 1 or row[-1] not in CLASS_NAMES:
                raise ValueError(f"not so in record {number}")
        if not rows:
            raise ValueError("no records")
        return np.array(rows)


def _encoded(table: NDArray[np.str_], train: NDArray[np.str_]) -> NDArray[np.float32]:
    columns = []
    for column in _NUMBERS:
        known = train[:, column].astype(np.float64)
        low, high = known.min(), known.max()
        values = (table[:, column].astype(np.float64) - low) / max(high - low, 1.0)
        columns.append(values.clip(0, 1)[:, None])
    for column in sorted(set(range(_COLUMNS)).difference(_NUMBERS)):
        columns.append(table[:, column, None] == np.unique(train[:, column]))
    return np.concatenate(columns, axis=1, dtype=np.float32)
