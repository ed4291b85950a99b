"""Facts of several trainings, or of several processes: what they share, and what they spend together."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Together:
    """All trainings on some of the same records: what each accountant was told, the steps that they took, and how many
    records are the same, or 0 where these cannot be told apart, and only the parameters are the same."""

    histories: list[list[list[float]]]
    steps: int
    records: int


@dataclass(frozen=True)
class Ranks:
    """Steps that several processes took together: how many of them were compared, and in how many it is known who was
    in the batches; records that were on two ranks in one step, the first such step, and whether it is certain that they
    are the same; do all ranks draw with the same random numbers; by what the reduced gradient was divided once more."""

    world: int
    compared: int
    known: int
    twice: int
    step: int
    certain: bool
    same_coins: bool
    divided: float


@dataclass(frozen=True)
class Spent:
    """What one training has spent, and on what: all that its accountant counts, whichever of the process that is, and
    the steps that this training took; how many records it has, and a sample of them that other trainings can be held
    against (`collect.records`; empty if they cannot be told apart)."""

    accountant: int
    history: list[list[float]]
    steps: int
    records: int
    sample: list[int]


def shared_records(first: list[int], records: int, second: list[int], others: int) -> int:
    """How many records two data sets share, by samples of the smallest numbers in each; about, if they are large."""
    size = min(len(first), len(second))
    union = sorted({*first, *second})
    if len(first) == records and len(second) == others:  # all of them
        return len(first) + len(second) - len(union)
    both = {*first} & {*second}
    share = sum(one in both for one in union[:size]) / size if size else 0.0
    return round(share * (records + others) / (1.0 + share))
