"""CIFAR-100: 60,000 colour images of 32 × 32 pixels in 100 classes (Krizhevsky 2009), from the binary archive.

A record has two labels, a coarse one (20) and a fine one (100); the fine one is the class.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from epsilometer.data.dataset import Dataset
from epsilometer.data.download import Remote
from epsilometer.data.files import all_in_one_folder
from epsilometer.data.images import image_dataset
from epsilometer.data.request import TEST, TRAIN, Request
from epsilometer.data.untrusted_files import broken, contents, members, reading

ARCHIVE = Remote(
    "cifar-100-binary.tar.gz",
    "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
    "md5:03b5dce01913d631647c71ecec9e9cb8",
)
CLASSES = 100
_FILES = {TRAIN: "train.bin", TEST: "test.bin"}
_NAMES = "fine_label_names.txt"
_RECORD = 2 + 3 * 32 * 32  # coarse label, fine label, then the red, green and blue planes


def cifar100(request: Request) -> Dataset:
    """The official files, packed or not."""
    path, data, names = _found(request)
    if not data or len(data) % _RECORD:
        raise broken(path, f"records of {_RECORD} bytes", f"{len(data)} bytes")
    table = np.frombuffer(data, np.uint8).reshape(-1, _RECORD)
    with reading(path, f"{CLASSES} names of classes"):
        known = tuple(names.decode("ascii").split())
        if len(set(known)) != CLASSES:
            raise ValueError(f"{len(set(known))} different names")
    return image_dataset(request, "cifar100", table[:, 2:].reshape(-1, 3, 32, 32), table[:, 1], known)


def _found(request: Request) -> tuple[Path, bytes, bytes]:
    """Where they are, the records of the part asked for, and the names of classes."""
    wanted = _FILES[request.part]
    for folder in request.files.folders("cifar100"):
        for place in (folder, folder / "cifar-100-binary"):
            if paths := all_in_one_folder(place, [wanted], [_NAMES]):
                return paths[0], contents(paths[0]), contents(paths[1])
    path = request.files.first("cifar100", ARCHIVE.file) or request.files.get("cifar100", [ARCHIVE])[0]
    with members(path, wanted, _NAMES) as found:
        data = {name: stream.read() for name, stream in found}
    return path, data[wanted], data[_NAMES]
