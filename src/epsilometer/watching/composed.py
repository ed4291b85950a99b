"""Trainings on some of the same records, in all processes of a command: what each of them spends adds up.

Every process tells what its trainings spent, with a sample of their records; here they are held against each other.
Processes that share one training (several ranks) count it once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from epsilometer.watching.checks.names import COMPOSITION
from epsilometer.watching.facts_together import Spent, Together, shared_records

if TYPE_CHECKING:
    from epsilometer.watching.watched import Watched

Key = tuple[str, int]  # a process, and a training of it


def composed(trainings: Mapping[Key, Watched]) -> dict[Key, Together]:
    """Of each that shares records with others which nobody in its own process knows."""
    known = {key: one.facts.spent for key, one in trainings.items() if one.facts.spent is not None}
    found = {}
    for key, own in known.items():
        alike = {key: own.records}
        for other, its in known.items():
            if other != key and not _one_training(trainings[key], trainings[other], key, other):
                shared = _shared(own, its)
                if shared:
                    alike[other] = shared
        together = _together({one: known[one] for one in alike}, min(alike.values()))
        before = trainings[key].facts.together
        if len(alike) > 1 and (before is None or together.steps > before.steps):
            found[key] = together
    return found


def with_composition(one: Watched, together: Together) -> None:
    """Its checks, with what is known of all trainings on its records."""
    from epsilometer.watching.checks.catalogue import judge

    one.facts = replace(one.facts, together=together)
    (check,) = (check for check in judge(one.facts) if check.name == COMPOSITION)
    one.checks = [*(each for each in one.checks if each.name != check.name), check]


def _one_training(one: Watched, other: Watched, key: Key, another: Key) -> bool:
    """Do several processes take its steps together?"""
    return key[0] != another[0] and one.facts.several_processes and other.facts.several_processes


def _shared(one: Spent, other: Spent) -> int:
    if not (one.sample and other.sample):
        return 0
    return shared_records(one.sample, one.records, other.sample, other.records)


def _together(alike: Mapping[Key, Spent], records: int) -> Together:
    histories = {(key[0], one.accountant): one.history for key, one in alike.items()}
    return Together(list(histories.values()), sum(one.steps for one in alike.values()), records)
