"""Trials played, kept and resumed: it knows who they are and how they are played, and nothing of privacy."""

from epsilometer.runs.directory import (
    RESULTS,
    SEARCH_SECONDS,
    STORE,
    begun_in,
    pilot_directory,
    plan_of,
    run_directory,
    stores_below,
)
from epsilometer.runs.executors import EXECUTORS, Auto, Executor, Inline, Local, OnRay, TrialsFailed, executor_named
from epsilometer.runs.play import play
from epsilometer.runs.progress import Progress, Snapshot
from epsilometer.runs.sqlite_store import SqliteStore
from epsilometer.runs.store import MemoryStore, Store, StoredRun, StoreError
from epsilometer.runs.trials import Preparation, Rehearsal, Results, Trials

__all__ = [
    "Auto",
    "EXECUTORS",
    "Executor",
    "Inline",
    "Local",
    "MemoryStore",
    "OnRay",
    "Preparation",
    "Progress",
    "RESULTS",
    "Rehearsal",
    "Results",
    "SEARCH_SECONDS",
    "STORE",
    "Snapshot",
    "SqliteStore",
    "Store",
    "StoreError",
    "StoredRun",
    "Trials",
    "TrialsFailed",
    "begun_in",
    "executor_named",
    "pilot_directory",
    "plan_of",
    "play",
    "run_directory",
    "stores_below",
]
