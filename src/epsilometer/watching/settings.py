"""How to watch: what the one who starts a training tells the hooks inside it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

FILE = "watch.json"
SECRET = "EPSILOMETER_WATCH_SECRET"  # in the environment of a command, and nowhere else
EXTRA, MODEL = "extra", "model"
MOST = 10_000  # canaries: each that is in is a row as long as all of them
PLACES = {EXTRA: "on an unused extra parameter", MODEL: "at coordinates of the model"}


@dataclass(frozen=True)
class Replaying:
    """One of several runs of the same command in lockstep (`watching.replay`): where they meet, which of how many this
    is (0 is the reference), what it is for, and the random number that all of them share."""

    meeting: str
    run: int
    runs: int
    role: str
    salt: str
    number: int = 0  # of runs with the same role


@dataclass(frozen=True)
class Declared:
    """What whoever starts a command says of a loop by hand in it: what is accounted, and the norm of clipping."""

    noise_multiplier: float
    sample_rate: float | None = None
    clip_norm: float | None = None


@dataclass(frozen=True)
class Settings:
    """Number of canaries (0: checks only) and their place; the seed of coins and of the canaries' noise (none: the
    system's entropy); whether the script gets other seeds than it asks for; whether it is one run of several; what is
    declared of a loop by hand."""

    canaries: int = 200
    place: str = EXTRA
    seed: int | None = None
    other_seeds: bool = False
    replaying: Replaying | None = None
    declared: Declared | None = None

    @property
    def follows(self) -> bool:
        """Is this run there to be compared with another, and nothing else?"""
        return self.replaying is not None and self.replaying.run > 0

    def write(self, directory: Path) -> None:
        (directory / FILE).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, directory: Path) -> Settings:
        found = json.loads((directory / FILE).read_text(encoding="utf-8"))
        replaying = found.pop("replaying", None)
        declared = found.pop("declared", None)
        return cls(
            **found,
            replaying=None if replaying is None else Replaying(**replaying),
            declared=None if declared is None else Declared(**declared),
        )
