"""Texas-100: 67,330 hospital stays, 6,169 binary features, the 100 commonest procedures (Shokri et al. 2017)."""

from __future__ import annotations

from epsilometer.data.binary_table import BinaryTable, labels_from_one, packed_rows
from epsilometer.data.dataset import Dataset
from epsilometer.data.download import Remote
from epsilometer.data.request import Request
from epsilometer.data.untrusted_files import members

ARCHIVE = Remote(
    "dataset_texas.tgz",
    "https://github.com/privacytrustlab/datasets/raw/master/dataset_texas.tgz",
    "git:966f7ff40b24cf5912ff84759aab9adb8c25f30e",
)
_FEATURES, _LABELS = "100/feats", "100/labels"


def texas100(request: Request) -> Dataset:
    """10,000 records for training or 10,000 others for testing, by a fixed permutation."""
    path = request.files.first("texas100", ARCHIVE.file) or request.files.get("texas100", [ARCHIVE])[0]
    with members(path, _FEATURES, _LABELS) as found:
        for name, lines in found:
            if name == _FEATURES:
                packed = packed_rows(lines, 6169)
            else:
                labels = labels_from_one(lines)
        table = BinaryTable(packed, 6169, labels)
    return table.split(request.part).dataset(request, "texas100", 100)
