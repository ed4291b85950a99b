"""Named data sets. A new one is one small file and one entry in `DATASETS`, or an entry point of another package."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from epsilometer.data.adult import adult
from epsilometer.data.cifar10 import cifar10
from epsilometer.data.cifar10_features import cifar10_features
from epsilometer.data.cifar100 import cifar100
from epsilometer.data.dataset import Dataset
from epsilometer.data.digits import digits
from epsilometer.data.download import Progress
from epsilometer.data.fashion_mnist import FASHION_MNIST
from epsilometer.data.features import Extractor, FeatureDataset
from epsilometer.data.files import Files
from epsilometer.data.location30 import location30
from epsilometer.data.mnist import MNIST
from epsilometer.data.own import SUFFIXES, own_data, read_pairs
from epsilometer.data.own_record import OwnRecord
from epsilometer.data.purchase100 import purchase100
from epsilometer.data.regression import RegressionData
from epsilometer.data.request import TEST, TRAIN, Request, Source
from epsilometer.data.retail import retail
from epsilometer.data.texas100 import texas100
from epsilometer.errors import InvalidInput
from epsilometer.registry import Registry, instance_of

_OWN = {
    "digits": Source(
        "1797 handwritten digits, 64 pixels, 10 classes; embedded, nothing to download",
        lambda request: digits().subset(request.classes, request.per_class),
        parts=(TRAIN,),
    ),
    "mnist": Source("60,000 handwritten digits, 784 pixels, 10 classes", MNIST.load),
    "fashion-mnist": Source("60,000 pictures of clothes, 784 pixels, 10 classes", FASHION_MNIST.load),
    "cifar10": Source("50,000 colour images, 3 × 32 × 32, 10 classes", cifar10),
    "cifar10-features": Source("CIFAR-10 seen by a small CNN trained on CIFAR-100: 128 features", cifar10_features),
    "cifar100": Source("50,000 colour images, 3 × 32 × 32, 100 classes", cifar100),
    "purchase100": Source("10,000 shoppers, 600 binary features, 100 classes", purchase100),
    "texas100": Source("10,000 hospital stays, 6,169 binary features, 100 classes", texas100),
    "location30": Source("5,010 people's check-ins, 446 binary features, 30 classes", location30, parts=(TRAIN,)),
    "adult": Source("32,561 people of a census, 108 features, 2 classes of income", adult),
    "retail": Source(
        "10,000 market baskets made as Purchase-100 was: 600 binary features, 100 classes", retail, clustered=True
    ),
}
DATASETS: Registry[Source] = Registry(
    "datasets",
    _OWN,
    argument="data.name",
    expected="a Source",
    accept=instance_of(Source),
)


def load(
    name: str,
    *,
    part: str = TRAIN,
    classes: Sequence[str | int] | None = None,
    per_class: int | None = None,
    clusters: int | None = None,
    directory: str | PathLike[str] | None = None,
    download: bool = True,
    progress: Progress | None = None,
) -> Dataset:
    """The data set of that name: a part of it, some of its classes, the first `per_class` records of each.

    `clusters` is the number of classes where these are made by clustering (retail: 2 to 100). Its files are looked for
    in `directory`, in the directory that EPSILOMETER_DATA names and in the cache; if they are in none of them they are
    downloaded, unless `download` is False.
    """
    source = DATASETS[name]
    if part not in source.parts:
        only = f"{name} has no official test part" if part == TEST else ""
        raise InvalidInput("data.part", part, " or ".join(repr(one) for one in source.parts), only)
    if clusters is not None and not source.clustered:
        made = ", ".join(one for one, known in DATASETS.items() if known.clustered)
        raise InvalidInput(
            "data.clusters", clusters, f"nothing: the classes of {name} are given", f"{made} has clusters"
        )
    files = Files(None if directory is None else Path(directory), download, progress)
    return source.load(Request(part, classes, per_class, files, clusters))


__all__ = [
    "DATASETS",
    "SUFFIXES",
    "Dataset",
    "Extractor",
    "FeatureDataset",
    "OwnRecord",
    "Progress",
    "RegressionData",
    "Request",
    "Source",
    "digits",
    "load",
    "own_data",
    "read_pairs",
]
