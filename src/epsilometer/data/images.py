"""Images as bytes, scaled to [0, 1]."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from epsilometer.data.dataset import Dataset
from epsilometer.data.request import Request
from epsilometer.errors import InvalidInput


def image_dataset(
    request: Request,
    name: str,
    pixels: NDArray[np.uint8],
    labels: NDArray[np.generic],
    class_names: tuple[str, ...],
) -> Dataset:
    """The images asked for, of `pixels` (image first, then channels if any, height, width)."""
    if pixels.dtype != np.uint8 or pixels.size == 0 or pixels.ndim < 2 or labels.shape != pixels.shape[:1]:
        found = f"{pixels.dtype} images of shape {pixels.shape}, labels of shape {labels.shape}"
        raise InvalidInput("data file", name, f"images as bytes and as many labels, got {found}", "get the file again")

    def scaled(rows: NDArray[np.int64]) -> NDArray[np.float32]:
        x = pixels[rows].reshape(len(rows), -1).astype(np.float32)
        x /= 255
        return x

    return request.dataset(
        name, scaled, labels, classes=len(class_names), class_names=class_names, shape=pixels.shape[1:]
    )
