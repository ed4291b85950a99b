"""Plays trials, in whatever processes, and keeps what they give. What is stored is not played again."""

from __future__ import annotations

import time
from contextlib import closing

from epsilometer.runs.executors import Executor
from epsilometer.runs.executors.child import isolated
from epsilometer.runs.executors.executor import Job
from epsilometer.runs.groups import Groups
from epsilometer.runs.progress import Progress, Reporter
from epsilometer.runs.replay import require_same_game
from epsilometer.runs.store import Store
from epsilometer.runs.tally import Tally
from epsilometer.runs.trials import Preparation, Trials


def play(work: Trials, store: Store, executor: Executor, progress: Progress | None = None) -> Tally:
    """All trials, or as many as are needed of work that may stop early. What is finished prepares nothing."""
    key, last = store.begin(work).fingerprint, time.perf_counter()
    stored = store.results(key)
    tally = Tally(work, stored)
    reporter = Reporter(progress, tally)
    if not tally.is_enough():
        safeguards = work.safeguards
        reporter.starting(foreign=safeguards.foreign)
        job = Job.of(work, prepared_for(work, store))
        if safeguards.foreign and not stored:
            _rehearse(work, job.prepared, store, executor, progress)
        require_same_game(job, stored)
        groups = Groups(tally.missing(), alone=safeguards.fresh_process)
        with closing(executor.play(job, groups)) as playing:  # whatever happens here, workers are stopped
            for played in playing:
                groups.learn(played)
                last, since = time.perf_counter(), last
                results = work.accepted(played.results)  # whoever played them, before anything is stored
                store.add(key, results, last - since)
                tally.add(results)
                reporter.tell()
                if tally.is_enough():
                    break
    return tally


def prepared_for(work: Trials, store: Store, like: Trials | None = None) -> Preparation:
    """What was prepared when the work was begun; made (as `like` makes it) and kept, if that was never done."""
    key = store.begin(work).fingerprint
    found = store.preparation(key)
    if found is None:
        found = isolated(work.safeguards, "preparing the attack", (like or work).prepare)
        store.keep(key, found)
    return found


def _rehearse(work: Trials, prepared: Preparation, store: Store, executor: Executor, progress: Progress | None) -> None:
    """Once, before the first trial."""
    rehearsal = work.rehearsal()
    if rehearsal is not None:
        store.keep(store.begin(rehearsal).fingerprint, prepared)
        rehearsal.require_passed(prepared, play(rehearsal, store, executor, progress).results)
