"""Runs on disk that nobody has played: a store with as many results as asked for, and an end if there is one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from epsilometer.auditing import Plan, spec_from_dict
from epsilometer.runs import STORE, SqliteStore

PLAN = spec_from_dict({"training": {"steps": 3, "noise_multiplier": 1.0}, "audit": {"trials": 25}}).plan()
REASON = "no violation found, but <script>alert(2)</script> & \x1b[31m"


def planned(**changes: Any) -> Plan:
    return replace(PLAN, **changes)


def results(first: int, count: int) -> dict[tuple[int, int], Any]:
    return {(world, index): np.array([0.5]) for index in range(first, first + count) for world in (0, 1)}


def store_run(where: Path, plan: Plan = PLAN, *, pairs: int = 0, epsilon: float | None = None, **result: Any) -> Path:
    """A run with `pairs` of trials; finished with that bound, if there is one, and with a result.json then."""
    where.mkdir(parents=True, exist_ok=True)
    with SqliteStore(where / STORE) as store:
        store.begin(plan)
        store.add(plan.fingerprint(), results(0, pairs), 1.5)
        if epsilon is not None:
            lower = {"epsilon": epsilon, "delta": plan.delta, "kind": "certified", "method": "exact-rank"}
            verdict = {"outcome": "inconclusive", "reason": REASON, "power": None}
            store.conclude(plan.fingerprint(), {"verdict": verdict, "lower_bound": lower, "stopped_early": False})
            document = {"plan_sha256": plan.fingerprint(), "lower_bound": lower, "upper_bound": {"epsilon": 4.0},
                        "family_bound": {"epsilon": 1.25}, **result}  # fmt: skip
            (where / "result.json").write_text(json.dumps(document))
    return where
