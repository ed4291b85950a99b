"""Data as a frozen feature extractor sees them: a head is trained on them, an attacker may change the images."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epsilometer.data.dataset import Dataset
from epsilometer.data.selection import select
from epsilometer.data.untrusted_files import arrays, broken, reading
from epsilometer.errors import InvalidInput

if TYPE_CHECKING:
    from torch import Tensor, nn

_SHAPES = ((32, 3, 3, 3), (64, 32, 3, 3), (128, 64, 3, 3))
_IMAGE = (3, 32, 32)
_BATCH = 256


@dataclass(frozen=True, eq=False)
class Extractor:
    """Three convolutions of 3 × 3 (the second and third with stride 2), each with ReLU, and a global average.

    `mean` is subtracted from pixels of 0 to 255, `layers` are weights and bias of each convolution.
    """

    name: str
    mean: NDArray[np.float32]
    layers: tuple[tuple[NDArray[np.float32], NDArray[np.float32]], ...]

    @classmethod
    def from_npz(cls, path: Path, net: str) -> Extractor:
        """One of the nets in a file, by its name."""
        fields = [f"{net}.conv{number}.{kind}" for number in (1, 2, 3) for kind in ("weight", "bias")]
        with reading(path, "weights of a network"):
            mean, *values = (np.asarray(found, np.float32) for found in arrays(path, "mean", *fields))
        layers = tuple(zip(values[::2], values[1::2], strict=True))
        shapes = [mean.shape, *(weight.shape for weight, _ in layers), *(bias.shape for _, bias in layers)]
        if shapes != [_IMAGE, *_SHAPES, *((shape[0],) for shape in _SHAPES)]:
            raise broken(path, "three convolutions of 3 × 3 over images of 32 × 32", f"shapes {shapes}")
        return cls(net, mean, layers)

    def fingerprint(self) -> str:
        """SHA-256 of the weights."""
        parts = [self.mean, *(values for layer in self.layers for values in layer)]
        return hashlib.sha256(b"".join(np.ascontiguousarray(part, "<f4").tobytes() for part in parts)).hexdigest()

    def module(self) -> nn.Module:
        """From flat pixels in [0, 1], channels first, to features; differentiable in the pixels, its weights frozen."""
        import torch
        from torch import nn

        class Centred(nn.Module):
            """What the first convolution was trained on."""

            mean: Tensor

            def __init__(self, mean: Tensor) -> None:
                super().__init__()
                self.register_buffer("mean", mean)

            def forward(self, x: Tensor) -> Tensor:
                return x * 255 - self.mean

        steps: list[nn.Module] = [nn.Unflatten(1, _IMAGE), Centred(torch.tensor(self.mean))]
        for stride, (weight, bias) in zip((1, 2, 2), self.layers, strict=True):
            layer = nn.Conv2d(weight.shape[1], weight.shape[0], 3, stride=stride, padding=1)
            layer.load_state_dict({"weight": torch.tensor(weight), "bias": torch.tensor(bias)})
            steps += [layer, nn.ReLU()]
        steps += [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        return nn.Sequential(*steps).requires_grad_(False).eval()

    def features(self, x: ArrayLike) -> NDArray[np.float32]:
        """The features of flat images with pixels in [0, 1].

        On one thread and in batches of one size, so that a machine always gives the same bits.
        """
        import torch

        images = np.asarray(x, dtype=np.float32)
        if images.ndim != 2 or images.shape[1] != np.prod(_IMAGE):
            raise InvalidInput("x", f"shape {images.shape}", f"rows of {np.prod(_IMAGE)} pixels")
        module, threads = self.module(), torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            with torch.no_grad():
                parts = [module(torch.tensor(images[i : i + _BATCH])).numpy() for i in range(0, len(images), _BATCH)]
        finally:
            torch.set_num_threads(threads)
        return np.concatenate([np.empty((0, len(self.layers[-1][1])), np.float32), *parts])


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FeatureDataset(Dataset):
    """`x`: the features that `extractor` gives for the images `raw`.

    A subset has the same records of both; a neighbour made in feature space (`plus`, `with_rows`) is plain data,
    as its new records are nobody's images.
    """

    raw: Dataset
    extractor: Extractor

    def __post_init__(self) -> None:
        super().__post_init__()
        if not np.array_equal(self.y, self.raw.y) or self.classes != self.raw.classes:
            raise InvalidInput("raw", self.raw, "the images of the same records")

    def origin(self) -> dict[str, str]:
        return {"raw_sha256": self.raw.fingerprint(), "extractor_sha256": self.extractor.fingerprint()}

    def subset(self, classes: Sequence[str | int] | None = None, per_class: int | None = None) -> FeatureDataset:
        raw = self.raw.subset(classes, per_class)
        rows = select(self.y, self.classes, self.class_names, classes, per_class).rows
        return FeatureDataset(
            self.name, self.x[rows], raw.y, raw.classes, raw.class_names, raw=raw, extractor=self.extractor
        )  # fmt: skip

    def taken(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> FeatureDataset:
        return FeatureDataset(
            self.name, self.x[rows], self.y[rows], self.classes, self.class_names, raw=self.raw.taken(rows),
            extractor=self.extractor,
        )  # fmt: skip
