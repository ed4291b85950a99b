"""Pre-training of a feature extractor on public images: convolutions that others may freeze."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from epsilometer import validate
from epsilometer.data import Dataset, Extractor
from epsilometer.errors import InvalidInput
from epsilometer.training.losses import accuracy
from epsilometer.training.models import Array

if TYPE_CHECKING:
    from torch import Tensor

NET = "augmented"  # the name that `cifar10-features` looks for
_KERNEL, _SHIFT = 3, 4
_SCALE = 64.0  # about a pixel's deviation: training sees pixels divided by it, and the first layer keeps that


@dataclass(frozen=True)
class Pretraining:
    """The shape of an extractor, and how it is trained: Adam, one cycle, flips and shifts of up to four pixels."""

    channels: tuple[int, ...] = (32, 64, 128)
    strides: tuple[int, ...] = (1, 2, 2)
    epochs: int = 20
    batch: int = 128
    learning_rate: float = 3e-3
    flips: bool = True  # left and right; not for letters or digits

    def __post_init__(self) -> None:
        for name, least, most in (("channels", 1, 4096), ("strides", 1, 16)):
            for value in getattr(self, name):
                validate.whole(name, value, least=least, most=most)
        if not self.channels or len(self.strides) != len(self.channels):
            expected = f"{len(self.channels)} numbers, one a layer, as there are channels"
            raise InvalidInput("strides", self.strides, expected)
        validate.whole("epochs", self.epochs, least=0, most=10_000, remedy="0 gives random weights")
        validate.whole("batch", self.batch, least=2)
        validate.real("learning_rate", self.learning_rate, above=0, below=1)


@dataclass(frozen=True, eq=False)
class Pretrained:
    """An extractor with the linear layer that it was trained under, which nobody needs afterwards."""

    extractor: Extractor
    weights: Array
    biases: Array

    def accuracy(self, data: Dataset) -> float:
        return accuracy(self.extractor.features(data.x) @ self.weights.T + self.biases, data.y)


def pretrain(
    data: Dataset,
    settings: Pretraining,
    seed: np.random.SeedSequence,
    progress: Callable[[int, float], None] | None = None,
) -> Pretrained:
    """Train on all of the data; `progress` is told the epochs that are done and the loss of the last one.

    The same seed gives the same weights on the same machine with as many threads.
    """
    import torch
    from torch import nn
    from torch.nn.functional import cross_entropy

    image = data.shape if len(data.shape) == 3 else (1, *data.shape)
    if len(data.shape) not in (2, 3):
        raise InvalidInput("data", data.name, "images (with a shape)", "pre-train on cifar100 or on other pictures")
    rng = np.random.default_rng(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**62)))
        layers = _convolutions(nn, image[0], settings)
        head = nn.Linear(settings.channels[-1], data.classes)
    network = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), head)
    mean = (255.0 * data.x.mean(axis=0, dtype=np.float64)).astype(np.float32).reshape(image)
    images = torch.tensor((data.x.reshape(-1, *image) * 255.0 - mean) / _SCALE)
    labels = torch.tensor(data.y)
    steps = max(1, settings.epochs * math.ceil(len(data) / settings.batch))
    optimizer = torch.optim.AdamW(network.parameters(), settings.learning_rate, weight_decay=1e-4)
    cycle = torch.optim.lr_scheduler.OneCycleLR(optimizer, settings.learning_rate, total_steps=steps + 1)
    for epoch in range(settings.epochs):
        losses = []
        order = rng.permutation(len(data))
        for begin in range(0, len(data), settings.batch):
            rows = order[begin : begin + settings.batch]
            loss = cross_entropy(network(_varied(images[rows], settings.flips, rng)), labels[rows])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            cycle.step()
            losses.append(float(loss.detach()))
        last = float(np.mean(losses))
        if not math.isfinite(last):
            expected = "a rate at which the training does not diverge"
            raise InvalidInput("learning_rate", settings.learning_rate, expected, "lower it")
        if progress is not None:
            progress(epoch + 1, last)
    return Pretrained(_extractor(layers, mean, settings), _values(head.weight), _values(head.bias))


def _convolutions(nn: Any, channels: int, settings: Pretraining) -> list[Any]:
    layers = []
    for wide, stride in zip(settings.channels, settings.strides, strict=True):
        layer = nn.Conv2d(channels, wide, _KERNEL, stride=stride, padding=_KERNEL // 2)
        nn.init.kaiming_normal_(layer.weight)
        nn.init.zeros_(layer.bias)
        layers += [layer, nn.ReLU()]
        channels = wide
    return layers


def _varied(images: Tensor, flips: bool, rng: np.random.Generator) -> Tensor:
    """A batch shifted by a few pixels, the same way for all of it, and every image flipped or not."""
    import torch
    from torch.nn.functional import pad

    if flips:
        turned = torch.tensor(rng.random(len(images)) < 0.5)
        images = torch.where(turned[:, None, None, None], images.flip(3), images)
    down, right = (int(one) for one in rng.integers(2 * _SHIFT + 1, size=2))
    height, width = images.shape[2:]
    return pad(images, (_SHIFT,) * 4)[:, :, down : down + height, right : right + width]


def _extractor(layers: list[Any], mean: Array, settings: Pretraining) -> Extractor:
    found = [(_values(layer.weight), _values(layer.bias)) for layer in layers[::2]]
    found[0] = (found[0][0] / np.float32(_SCALE), found[0][1])
    return Extractor(NET, mean, tuple(found), settings.strides)


def _values(parameter: Tensor) -> Any:
    return parameter.detach().numpy().copy()
