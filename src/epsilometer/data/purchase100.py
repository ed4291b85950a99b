"""Purchase-100: 197,324 shoppers, which of 600 products each bought, in 100 clusters (Shokri et al. 2017)."""

from __future__ import annotations

from epsilometer.data.binary_table import labelled_table
from epsilometer.data.dataset import Dataset
from epsilometer.data.download import Remote
from epsilometer.data.request import Request

ARCHIVE = Remote(
    "dataset_purchase.tgz",
    "https://github.com/privacytrustlab/datasets/raw/master/dataset_purchase.tgz",
    "git:3efa7476ad5ed7ac3e558d28585a186b38fc5f19",
)


def purchase100(request: Request) -> Dataset:
    """10,000 records for training or 10,000 others for testing, by a fixed permutation."""
    path = request.files.first("purchase100", ARCHIVE.file) or request.files.get("purchase100", [ARCHIVE])[0]
    table = labelled_table(path, "dataset_purchase", 600)
    return table.split(request.part).dataset(request, "purchase100", 100)
