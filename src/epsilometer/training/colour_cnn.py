"""The network that Abadi et al. (2016) train on CIFAR-10: colour images, cropped to 24 × 24 pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epsilometer.errors import InvalidInput
from epsilometer.training.modules import register

if TYPE_CHECKING:
    from torch import nn

CROP, CHANNELS, UNITS = 24, 64, 384


def colour_cnn(features: int, classes: int) -> nn.Module:
    """Two convolutions of 5 × 5 with 64 channels, each with ReLU and a 2 × 2 maximum; two layers of 384 units.

    Larger square images are cropped in the middle; of smaller ones nothing is.
    """
    from torch import nn

    side = round((features / 3) ** 0.5)
    if 3 * side * side != features or side < 4:
        raise InvalidInput("model", f"colour-cnn on {features} features", "square images of three channels")
    kept = min(side, CROP)
    begin = (side - kept) // 2
    reduced = kept // 2 // 2

    class Crop(nn.Module):
        def forward(self, x):  # type: ignore[no-untyped-def]
            return x[:, :, begin : begin + kept, begin : begin + kept]

    return nn.Sequential(
        nn.Unflatten(1, (3, side, side)),
        Crop(),
        nn.Conv2d(3, CHANNELS, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(CHANNELS, CHANNELS, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(CHANNELS * reduced * reduced, UNITS),
        nn.ReLU(),
        nn.Linear(UNITS, UNITS),
        nn.ReLU(),
        nn.Linear(UNITS, classes),
    )


register(
    "colour-cnn", colour_cnn, "the network of Abadi et al. (2016) for CIFAR-10: two convolutions, two layers of 384"
)
