"""Before a stored run goes on, one of its trials is played again: scores of two different games must never be mixed."""

from __future__ import annotations

import logging

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.errors import EpsilometerError
from epsilometer.runs.executors.child import isolated
from epsilometer.runs.executors.executor import Job, play_group
from epsilometer.runs.trials import Results

ROUNDING = 1e-4  # of the spread of scores: processors round differently, by some 1e-6, and no bound notices
_LOG = logging.getLogger("epsilometer")


class ReplayDiffers(EpsilometerError):
    """A stored trial does not give its score any more."""


def require_same_game(job: Job, stored: Results) -> None:
    """Play the first stored trial of the last world again; what cannot be rounding is refused.

    A plan's fingerprint cannot know everything that decides a score: files that an adversary reads, what it imports by
    other means than import, libraries below it.
    """
    played = [trial for trial in stored if trial[0] == max(job.work.worlds)]
    if not played or not job.work.safeguards.repeats:
        return
    trial = min(played)
    (now,) = isolated(job.work.safeguards, "the training", play_group, job, [trial]).scores
    before = stored[trial]
    if now.tobytes() == before.tobytes():
        return
    named = f"trial {trial[1]} of world {trial[0]}"
    differs = apart(before, now, np.concatenate(list(stored.values())))
    if differs is not None:
        raise ReplayDiffers(
            f"the run cannot go on: {named}, played again, has another score ({differs}); undo what has changed since "
            "(code, files that it reads, libraries, machine), or begin anew in another directory"
        )
    _LOG.warning("%s, played again, differs by rounding: another processor or library; going on", named)


def apart(before: Floats, now: Floats, scores: Floats) -> str | None:
    """How the scores of one trial differ, if that cannot be rounding; `scores` are all, whose spread counts."""
    if now.shape != before.shape:
        return f"{len(before)} scores there, {len(now)} now"
    with np.errstate(invalid="ignore"):  # ∞ − ∞
        distance = np.where(now == before, 0.0, np.abs(now - before))
    most = int(np.argmax(distance))
    if distance[most] <= ROUNDING * _spread(scores):
        return None
    return f"{float(before[most])!r} there, {float(now[most])!r} now"


def _spread(scores: Floats) -> float:
    """The deviation of all scores; their size, where all are alike."""
    finite = scores[np.isfinite(scores)]
    if not len(finite):
        return 0.0
    return float(np.std(finite)) or float(np.max(np.abs(finite)))
