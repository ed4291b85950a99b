"""A stand-in for Purchase-100, made as it was made, from market baskets that anybody can get (FIMI: retail).

This is NOT Purchase-100: other shoppers, other products, other clusters. Numbers measured on it are not comparable
with published numbers on Purchase-100.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from epsilometer import validate
from epsilometer.data.binary_table import BinaryTable
from epsilometer.data.cached import cached
from epsilometer.data.dataset import Dataset
from epsilometer.data.download import Remote
from epsilometer.data.request import Request
from epsilometer.data.untrusted_files import arrays, contents, reading

BASKETS = Remote("retail.dat.gz", "http://fimi.uantwerpen.be/data/retail.dat.gz")  # no checksum is published
ITEMS, CLUSTERS = 600, 100

_Baskets = tuple[NDArray[np.int64], NDArray[np.int64]]


def retail(request: Request) -> Dataset:
    """Which of the 600 commonest items are in a basket, and its cluster by k-means as its class: one of 100, or of as
    many as are asked for (2 to 100).

    Baskets with none of these items are left out. 10,000 records for training or 10,000 others for testing, by a
    fixed permutation.
    """
    clusters = CLUSTERS if request.clusters is None else request.clusters
    validate.whole("data.clusters", clusters, least=2, most=CLUSTERS)
    recipe = f"600 commonest items; MiniBatchKMeans({clusters}, random_state=0, n_init=1, batch_size=1024)"
    path = request.files.first("retail", BASKETS.file, "retail.dat", "retail_fimi.npz")
    path = path or request.files.get("retail", [BASKETS])[0]
    with reading(path, "market baskets"):
        starts, items = _from_npz(path) if path.suffix == ".npz" else _from_text(path)
        key = hashlib.sha256(recipe.encode() + starts.tobytes() + items.tobytes()).hexdigest()
        made = cached("retail", key, lambda: _clustered(starts, items, clusters))
        table = BinaryTable(made["packed"].astype(np.uint8), ITEMS, made["labels"].astype(np.int64))
    return table.split(request.part).dataset(request, "retail", clusters)


def _from_npz(path: Path) -> _Baskets:
    starts, items = (values.astype(np.int64) for values in arrays(path, "indptr", "indices"))
    if not (starts.ndim == items.ndim == 1 and len(starts) > 1 and starts[0] == 0 and starts[-1] == len(items)):
        raise ValueError("indptr does not fit indices")
    return starts, items


def _from_text(path: Path) -> _Baskets:
    baskets = [line.split() for line in contents(path).splitlines()]
    starts = np.cumsum([0, *map(len, baskets)], dtype=np.int64)
    return starts, np.array([int(item) for basket in baskets for item in basket], dtype=np.int64)


def _clustered(starts: NDArray[np.int64], items: NDArray[np.int64], clusters: int) -> dict[str, NDArray[np.generic]]:
    from scipy.sparse import csr_matrix
    from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_limits

    if len(items) == 0 or items.min() < 0 or (np.diff(starts) < 0).any():
        raise ValueError("items are numbers from 0")
    commonest = np.argsort(-np.bincount(items), kind="stable")[:ITEMS]
    baskets = csr_matrix((np.ones(len(items), np.float32), items, starts))[:, commonest].tocsr()
    baskets.sum_duplicates()
    baskets.data[:] = 1
    baskets = baskets[np.diff(baskets.indptr) > 0]
    if baskets.shape[0] < CLUSTERS or baskets.shape[1] < ITEMS:
        raise ValueError(f"{baskets.shape[0]} baskets of {baskets.shape[1]} items; {CLUSTERS} of {ITEMS} are needed")
    with threadpool_limits(1):  # sums in one order, whatever the machine
        means = MiniBatchKMeans(clusters, random_state=0, n_init=1, batch_size=1024).fit(baskets)
    packed = np.packbits(baskets.toarray().astype(np.uint8), axis=1)
    return {"packed": packed, "labels": means.labels_.astype(np.int64)}
