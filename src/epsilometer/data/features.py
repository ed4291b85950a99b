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
from epsilometer.data.untrusted_files import arrays, broken, fields_of, reading
from epsilometer.errors import InvalidInput

if TYPE_CHECKING:
    from torch import Tensor, nn

STRIDES = (1, 2, 2)  # of files that say nothing
_BATCH = 256
_NETWORK = "convolutions over images, each fitting the one before"


@dataclass(frozen=True, eq=False)
class Extractor:
    """Convolutions (square kernels of odd size, padded), each with ReLU, and a global average.

    `mean` is subtracted from pixels of 0 to 255, and has an image's shape, channels first. `layers` are weights and
    bias of each convolution.
    """

    name: str
    mean: NDArray[np.float32]
    layers: tuple[tuple[NDArray[np.float32], NDArray[np.float32]], ...]
    strides: tuple[int, ...] = STRIDES

    def __post_init__(self) -> None:
        shapes = [self.mean.shape, *(weight.shape for weight, _ in self.layers), *(b.shape for _, b in self.layers)]
        if not self._fits():
            raise InvalidInput("layers", f"shapes {shapes}, strides {self.strides}", _NETWORK)

    def _fits(self) -> bool:
        if self.mean.ndim != 3 or not self.layers or len(self.strides) != len(self.layers):
            return False
        channels = self.mean.shape[0]
        for weight, bias in self.layers:
            square = weight.ndim == 4 and weight.shape[2] == weight.shape[3] and weight.shape[2] % 2 == 1
            if not square or weight.shape[1] != channels or bias.shape != weight.shape[:1]:
                return False
            channels = weight.shape[0]
        return all(stride >= 1 for stride in self.strides) and all(part.size for part in (self.mean, *self.layers[0]))

    @classmethod
    def from_npz(cls, path: Path, net: str) -> Extractor:
        """One of the nets in a file, by its name; as many layers as it has there."""
        known = fields_of(path)
        count = 0
        while f"{net}.conv{count + 1}.weight" in known:
            count += 1
        if not count:
            nets = ", ".join(sorted({field.partition(".")[0] for field in known if ".conv" in field})) or "none"
            raise broken(path, f"a network {net!r}", f"it has {nets}")
        fields = [f"{net}.conv{number}.{kind}" for number in range(1, count + 1) for kind in ("weight", "bias")]
        with reading(path, "weights of a network"):
            mean, *values = (np.asarray(found, np.float32) for found in arrays(path, "mean", *fields))
            strides: tuple[int, ...] = STRIDES
            if f"{net}.strides" in known:
                (stored,) = arrays(path, f"{net}.strides")
                strides = tuple(int(one) for one in stored.ravel())
        try:
            return cls(net, mean, tuple(zip(values[::2], values[1::2], strict=True)), strides)
        except InvalidInput as error:
            raise broken(path, error.expected, str(error.value)) from None

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """What `from_npz` reads."""
        made: dict[str, NDArray[np.generic]] = {"mean": self.mean, f"{self.name}.strides": np.array(self.strides)}
        for number, (weight, bias) in enumerate(self.layers, start=1):
            made |= {f"{self.name}.conv{number}.weight": weight, f"{self.name}.conv{number}.bias": bias}
        return made

    @property
    def pixels(self) -> int:
        """Of an image, all channels."""
        return int(self.mean.size)

    def fingerprint(self) -> str:
        """SHA-256 of the weights, and of strides that are not the usual ones."""
        parts = [self.mean, *(values for layer in self.layers for values in layer)]
        digest = hashlib.sha256(b"".join(np.ascontiguousarray(part, "<f4").tobytes() for part in parts))
        if self.strides != STRIDES:
            digest.update(str(self.strides).encode())
        return digest.hexdigest()

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

        steps: list[nn.Module] = [nn.Unflatten(1, self.mean.shape), Centred(torch.tensor(self.mean))]
        for stride, (weight, bias) in zip(self.strides, self.layers, strict=True):
            size = weight.shape[2]
            layer = nn.Conv2d(weight.shape[1], weight.shape[0], size, stride=stride, padding=size // 2)
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
        if images.ndim != 2 or images.shape[1] != self.pixels:
            raise InvalidInput("x", f"shape {images.shape}", f"rows of {self.pixels} pixels")
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

    @property
    def as_they_were(self) -> Dataset:
        return self.raw

    @property
    def features_by(self) -> Extractor:
        return self.extractor

    def origin(self) -> dict[str, str]:
        return {"raw_sha256": self.raw.fingerprint(), "extractor_sha256": self.extractor.fingerprint()}

    def subset(self, classes: Sequence[str | int] | None = None, per_class: int | None = None) -> FeatureDataset:
        raw = self.raw.subset(classes, per_class)
        rows = select(self.y, self.classes, self.class_names, classes, per_class).rows
        return FeatureDataset(
            self.name, self.x[rows], raw.y, raw.classes, raw.class_names, raw=raw, extractor=self.extractor
        )  # fmt: skip

    def taken(self, rows: NDArray[np.int64] | NDArray[np.bool_] | slice) -> FeatureDataset:
        return FeatureDataset(
            self.name, self.x[rows], self.y[rows], self.classes, self.class_names, raw=self.raw.taken(rows),
            extractor=self.extractor,
        )  # fmt: skip
