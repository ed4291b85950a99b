"""Location-30: 5,010 people's check-ins in Bangkok, 446 binary features, 30 clusters (Shokri et al. 2017)."""

from __future__ import annotations

from epsilometer.data.binary_table import BinaryTable, labelled_table
from epsilometer.data.dataset import Dataset
from epsilometer.data.download import Remote
from epsilometer.data.request import Request
from epsilometer.data.untrusted_files import arrays, broken

ARCHIVE = Remote(
    "dataset_location.tgz",
    "https://github.com/privacytrustlab/datasets/raw/master/dataset_location.tgz",
    "git:0cfc2caa0c8c8569cd68a5d4ab369a98c1f98447",
)
_FEATURES = 446


def location30(request: Request) -> Dataset:
    """All records, in their order: no split is official."""
    path = request.files.first("location30", ARCHIVE.file, "location30.npz")
    path = path or request.files.get("location30", [ARCHIVE])[0]
    if path.suffix != ".npz":
        return labelled_table(path, "bangkok", _FEATURES).dataset(request, "location30", 30)
    packed, features, labels = arrays(path, "x_packed", "n_features", "y")
    if features.tolist() != _FEATURES or packed.shape != (labels.size, -(-_FEATURES // 8)) or labels.ndim != 1:
        raise broken(path, f"records of {_FEATURES} bits", f"n_features {features}, shape {packed.shape}")
    return BinaryTable(packed, _FEATURES, labels).dataset(request, "location30", 30)
