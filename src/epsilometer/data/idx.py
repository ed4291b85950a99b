"""Data sets in the IDX files that MNIST introduced."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from epsilometer.data.dataset import Dataset
from epsilometer.data.download import Remote
from epsilometer.data.files import all_in_one_folder
from epsilometer.data.images import image_dataset
from epsilometer.data.request import TEST, TRAIN, Request
from epsilometer.data.untrusted_files import arrays, broken, contents
from epsilometer.errors import InvalidInput

_PREFIX = {TRAIN: "train", TEST: "t10k"}

# Two data sets whose files have the same names, told apart by the MD5 of their unpacked labels.
_LABELS = {
    "a25bea736e30d166cdddb491f175f624": "mnist",
    "27ae3e4e09519cfbb04c329615203637": "mnist",
    "9018921c3c673c538a1fc5bad174d6f9": "fashion-mnist",
    "15d484375f8d13e6eb1aabb0c3f46965": "fashion-mnist",
}


@dataclass(frozen=True)
class IdxImages:
    """Four gzipped files under one address, with the MD5 of each; `npz` and `places`: where else they may be."""

    name: str
    class_names: tuple[str, ...]
    address: str
    md5: Mapping[str, str]
    npz: str = ""
    places: tuple[str, ...] = ()

    def load(self, request: Request) -> Dataset:
        pixels, labels = self._arrays(request)
        return image_dataset(request, self.name, pixels, labels, self.class_names)

    def _arrays(self, request: Request) -> tuple[NDArray[np.uint8], NDArray[np.generic]]:
        part = _PREFIX[request.part]
        names = [f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte"]
        for folder in request.files.folders(self.name, *self.places):
            if paths := all_in_one_folder(folder, *((f"{name}.gz", name) for name in names)):
                return self._read(*paths)
            if self.npz and (paths := all_in_one_folder(folder, [self.npz])):
                pixels, labels = arrays(paths[0], f"x_{request.part}", f"y_{request.part}")
                return pixels, labels
        remotes = [Remote(f"{name}.gz", f"{self.address}{name}.gz", f"md5:{self.md5[f'{name}.gz']}") for name in names]
        return self._read(*request.files.get(self.name, remotes))

    def _read(self, images: Path, labels: Path) -> tuple[NDArray[np.uint8], NDArray[np.generic]]:
        digest = hashlib.md5(contents(labels), usedforsecurity=False).hexdigest()
        whose = _LABELS.get(digest, self.name)
        if whose != self.name:
            raise InvalidInput(
                "data file", str(labels), f"the labels of {self.name}", f"put {whose}'s files in a folder {whose}"
            )
        return read_idx(images, 3), read_idx(labels, 1)


def read_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """The bytes in an IDX file, gzipped or not."""
    data, expected = contents(path), f"an IDX file of bytes in {dimensions} dimension(s)"
    header = 4 + 4 * dimensions
    if len(data) < header or data[:4] != bytes([0, 0, 8, dimensions]):
        raise broken(path, expected, f"magic number {data[:4].hex()}")
    shape = [int(size) for size in np.frombuffer(data, ">u4", dimensions, 4)]
    if len(data) - header != math.prod(shape):
        raise broken(path, expected, f"{len(data) - header} bytes for shape {tuple(shape)}")
    if 0 in shape:
        raise broken(path, expected, f"it is empty: shape {tuple(shape)}")
    return np.frombuffer(data, np.uint8, offset=header).reshape(shape)
