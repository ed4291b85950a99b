"""What reproductions of membership inference have in common."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from epsilometer.data import Dataset, load
from epsilometer.figures import Lines, Series
from epsilometer.membership import AttackResult, MembershipPlan, MembershipResult, attack_named, run_membership
from epsilometer.reproductions.reproduction import Row, Session
from epsilometer.seeds import Stream, seed_of


def split(data: Dataset, seed: int, *sizes: int) -> list[Dataset]:
    """Parts of the data of these sizes, by a permutation of the seed's."""
    order = np.random.default_rng(seed_of(seed, Stream.SPLITTING, 0)).permutation(len(data))
    ends = np.cumsum([0, *sizes])
    return [data.taken(order[begin:end]) for begin, end in itertools.pairwise(ends)]


def retail(session: Session, clusters: int) -> Dataset:
    """All 20,000 baskets of the stand-in for Purchase-100, with so many classes."""
    parts = [
        load("retail", part=part, clusters=clusters, directory=session.data_dir, progress=session.download)
        for part in ("train", "test")
    ]
    x, y = np.concatenate([part.x for part in parts]), np.concatenate([part.y for part in parts])
    return Dataset("retail", x, y, clusters)


def attacked(plan: MembershipPlan, attacks: Sequence[str], session: Session) -> MembershipResult:
    chosen = [attack_named(name) for name in attacks]
    return run_membership(plan, chosen, session.progress, store=session.store, executor=session.executor)


def precision(attack: AttackResult) -> float:
    """Of the records that a learned attack calls members, the share that are: members and others are as many."""
    said = attack.evidence.scores > 0
    return float(attack.evidence.member[said].mean()) if said.any() else float("nan")


def chart(title: str, rows: Sequence[Row], key: str, x_label: str, y_label: str, *names: tuple[str, str]) -> Lines:
    """Details of rows over the values of one setting; what the paper has is dashed."""
    places = tuple(dict.fromkeys(row.cell[key] for row in rows))
    series = [
        Series(label, tuple((row.cell[key], float(row.details[name])) for row in rows if name in row.details))
        for name, label in names
    ]
    paper = tuple((row.cell[key], row.paper) for row in rows if row.paper is not None)
    if paper:
        series.insert(0, Series("paper", paper, reference=True))
    return Lines(title, places, tuple(series), x_label, y_label, most=1.0)
