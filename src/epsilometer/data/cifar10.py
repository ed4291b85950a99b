"""CIFAR-10: 60,000 colour images of 32 × 32 pixels (Krizhevsky 2009).

The archive for Python holds pickles, which can run code when they are read; the binary archive is the same data.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from epsilometer.data.dataset import Dataset
from epsilometer.data.download import Remote
from epsilometer.data.files import all_in_one_folder
from epsilometer.data.images import image_dataset
from epsilometer.data.request import TEST, TRAIN, Request
from epsilometer.data.selection import class_labels, class_numbers
from epsilometer.data.untrusted_files import arrays, broken, contents, members

CLASS_NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
ARCHIVE = Remote(
    "cifar-10-binary.tar.gz",
    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    "md5:c32a1d4ab5d03f1284b67883e8d87530",
)
EXTRACTS = ("cifar10_airplane_automobile.npz", "cifar10_small.npz")
_BATCHES = {TRAIN: tuple(f"data_batch_{number}.bin" for number in range(1, 6)), TEST: ("test_batch.bin",)}
_PER_CLASS = {TRAIN: 5000, TEST: 1000}
_RECORD = 1 + 3 * 32 * 32  # a label, then the red, green and blue planes

_Images = tuple[NDArray[np.uint8], NDArray[np.generic]]


def cifar10(request: Request) -> Dataset:
    """The official files, or an extract if it holds every record asked for: the answer is the same in both cases."""
    pixels, labels = next(_found(request), None) or _archive(
        request.files.get("cifar10", [ARCHIVE])[0], _BATCHES[request.part]
    )
    return image_dataset(request, "cifar10", pixels, labels, CLASS_NAMES)


def _found(request: Request) -> Iterator[_Images]:
    batches = _BATCHES[request.part]
    folders = list(request.files.folders("cifar10"))
    for folder in folders:
        if paths := all_in_one_folder(folder, [ARCHIVE.file]):
            yield _archive(paths[0], batches)
        for place in (folder, folder / "cifar-10-batches-bin"):
            if paths := all_in_one_folder(place, *([name] for name in batches)):
                yield _records([(path, contents(path)) for path in paths])
    for folder in folders:
        for name in EXTRACTS:
            if (paths := all_in_one_folder(folder, [name])) and (images := _extract(paths[0], request)):
                yield images


def _archive(path: Path, batches: tuple[str, ...]) -> _Images:
    with members(path, *batches) as found:
        data = {name: stream.read() for name, stream in found}
    return _records([(path, data[name]) for name in batches])


def _records(batches: list[tuple[Path, bytes]]) -> _Images:
    for path, data in batches:
        if len(data) % _RECORD:
            raise broken(path, f"records of {_RECORD} bytes", f"{len(data)} bytes")
    table = np.concatenate([np.frombuffer(data, np.uint8).reshape(-1, _RECORD) for _, data in batches])
    return table[:, 1:].reshape(-1, 3, 32, 32), table[:, 0]


def _extract(path: Path, request: Request) -> _Images | None:
    """Some of the official records, with the rows that they have there; None unless it has all that are asked for."""
    part = request.part
    pixels, labels, rows = arrays(path, f"x_{part}", f"y_{part}", f"index_{part}")
    if pixels.ndim != 4 or labels.shape != (len(pixels),) or rows.shape != labels.shape:
        raise broken(path, "images of height, width, channels; labels; rows", f"shapes {pixels.shape}, {labels.shape}")
    counts = np.bincount(class_labels(labels, len(CLASS_NAMES)), minlength=len(CLASS_NAMES))
    needed = min(request.per_class or _PER_CLASS[part], _PER_CLASS[part])
    if counts[class_numbers(request.classes, len(CLASS_NAMES), CLASS_NAMES)].min() < needed:
        return None
    order = np.argsort(rows)
    return pixels.transpose(0, 3, 1, 2)[order], labels[order]
