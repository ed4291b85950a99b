"""How to watch: what the one who starts a training tells the hooks inside it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

FILE = "watch.json"
EXTRA, MODEL = "extra", "model"
MOST = 10_000  # canaries: each that is in is a row as long as all of them
PLACES = {EXTRA: "on an unused extra parameter", MODEL: "at coordinates of the model"}


@dataclass(frozen=True)
class Settings:
    """Number of canaries (0: checks only) and their place; the seed of coins and of the canaries' noise (none: the
    system's entropy); whether the script gets other seeds than it asks for."""

    canaries: int = 200
    place: str = EXTRA
    seed: int | None = None
    other_seeds: bool = False

    def write(self, directory: Path) -> None:
        (directory / FILE).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, directory: Path) -> Settings:
        return cls(**json.loads((directory / FILE).read_text(encoding="utf-8")))
