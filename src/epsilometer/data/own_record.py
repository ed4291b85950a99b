"""One record of the user's own, from a file like those of data: who fears for it can have it put into the training."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.data.dataset import Dataset
from epsilometer.data.own import SUFFIXES, read_pairs
from epsilometer.errors import InvalidInput, one_line


@dataclass(frozen=True, eq=False)
class OwnRecord:
    """Features as they stand in the file, flat, and the label's name; what they mean, the data say."""

    source: str
    x: NDArray[np.float32]
    label: str

    @classmethod
    def read(cls, path: str) -> OwnRecord:
        """From .npz (`x`, `y`), .csv or .parquet with one row."""
        if Path(path).suffix not in SUFFIXES:
            expected = f"a row number, or a file that ends in {', '.join(SUFFIXES)}"
            raise InvalidInput("record", path, expected, "write one record there as your data are written")
        try:
            x, y = read_pairs(Path(path))
            features = np.asarray(x, np.float32)
        except InvalidInput as error:
            raise error.renamed("record") if error.argument == "data" else error from None
        except (TypeError, ValueError) as error:
            raise InvalidInput("record", path, f"features that are numbers ({one_line(str(error))})") from None
        labels = np.asarray(y)
        if labels.size != 1:
            shapes = f"{path}, shapes {features.shape} and {labels.shape}"
            raise InvalidInput("record", shapes, "one record, of features and one label")
        if not features.size or not np.isfinite(features).all():
            raise InvalidInput("record", path, "finite features")
        return cls(path, features.reshape(-1), _name(labels.reshape(-1)[0]))

    def fitted(self, data: Dataset) -> tuple[NDArray[np.float32], int]:
        """Features and class, as the data have them."""
        if len(self.x) != data.x.shape[1]:
            expected = f"a record of {data.x.shape[1]} features, as those of {data.name}"
            raise InvalidInput("record", f"{self.source}, {len(self.x)} features", expected)
        names = data.class_names or tuple(str(label) for label in range(data.classes))
        if self.label not in names:
            shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
            raise InvalidInput("record", f"{self.source}, label {self.label!r}", f"a class of {data.name} ({shown})")
        return self.x, names.index(self.label)

    def fingerprint(self) -> str:
        """SHA-256 of what it is, wherever its file lies."""
        content = np.ascontiguousarray(self.x, "<f4").tobytes()
        return hashlib.sha256(self.label.encode() + b"\0" + content).hexdigest()


def _name(label: Any) -> str:
    """As `own_data` names classes: 3.0 is 3."""
    whole = isinstance(label, float | np.floating) and float(label).is_integer()
    return str(int(label)) if whole else str(label)
