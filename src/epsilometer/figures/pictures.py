"""Records that are pictures, side by side: what was put in, beside what is natural."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from epsilometer.figures.figure import Figure, Table

DEEPEST = 64  # pixels a side that are kept


@dataclass(frozen=True)
class Picture:
    """Grey values from 0 to 255, row by row."""

    label: str
    rows: int
    columns: int
    pixels: tuple[int, ...]


@dataclass(frozen=True)
class Pictures(Figure):
    kind: ClassVar[str] = "pictures"
    title: str
    pictures: tuple[Picture, ...]
    least: float = 0.0
    most: float = 1.0

    @classmethod
    def of(
        cls, title: str, records: Sequence[tuple[str, Any]], shape: tuple[int, ...], least: float, most: float
    ) -> Pictures:
        """Records of that shape (channels first, if there are any), on one grey scale from `least` to `most`."""
        found = []
        for label, record in records:
            image = np.asarray(record, np.float64).reshape(shape)
            image = image.mean(axis=0) if image.ndim == 3 else image
            step = -(-max(image.shape) // DEEPEST)
            image = image[::step, ::step]
            grey = np.clip((image - least) / ((most - least) or 1.0), 0.0, 1.0)
            pixels = tuple(np.rint(255 * grey).astype(int).ravel().tolist())
            found.append(Picture(label, image.shape[0], image.shape[1], pixels))
        return cls(title, tuple(found), float(least), float(most))

    @property
    def height(self) -> float:
        return 1.5

    @property
    def reading(self) -> str:
        return f"Grey from {self.least:.3g} (black) to {self.most:.3g} (white); what is beyond is cut off."

    @property
    def marks(self) -> int:
        return len(self.pictures)

    def table(self) -> Table:
        rows = tuple(
            (one.label, f"{one.rows} × {one.columns}", *(f"{f(one.pixels) / 255:.3f}" for f in (np.mean, np.max)))
            for one in self.pictures
        )
        return Table(("record", "pixels", "mean brightness", "brightest"), rows)

    def draw(self, ax: Any) -> None:
        for i, one in enumerate(self.pictures):
            image = np.array(one.pixels, np.uint8).reshape(one.rows, one.columns)
            drawn = ax.imshow(
                image, cmap="gray", vmin=0, vmax=255, extent=(1.1 * i, 1.1 * i + 1, 0, one.rows / one.columns),
                interpolation="none",
            )  # fmt: skip
            drawn.set_gid(f"mark-{i}")
            ax.text(1.1 * i + 0.5, -0.06, one.label, ha="center", va="top", fontsize=8)
        ax.set_xlim(-0.05, 1.1 * max(1, len(self.pictures)))
        ax.set_ylim(-0.35, 1.05)
        ax.set_aspect("equal")
        ax.set_axis_off()
