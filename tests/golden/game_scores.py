"""Scores of every adversary × model × sampling × relation, in short plans: what no change of design may move.

python tests/golden/game_scores.py          compares with the file, bit by bit
python tests/golden/game_scores.py --write  writes it anew; only where scores change on purpose (TRIAL_VERSION)
"""

from __future__ import annotations

import hashlib
import itertools
import json
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from epsilometer.adversaries import ADVERSARIES
from epsilometer.auditing import Plan, spec_from_dict
from epsilometer.errors import InvalidInput
from epsilometer.runs import Inline, MemoryStore, play
from epsilometer.training import register

FILE = Path(__file__).with_name("game_scores.json")
MODULE = "golden-module"
TRIALS = 2
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "static-poison": [{"shadows": 2}],
    "intermediate": [{"shadows": 2, "statistic": statistic} for statistic in ("mean", "max")],
    "adaptive-poison": [{"shadows": 2}],
    "gradient": [{}, {"direction": "dirac"}, {"direction": "random"}],
    "gradient-steps": [{"coordinates": 4}, {"coordinates": 4, "malicious": True}],
    "worst-case-init": [{"pretraining": 5}, {"pretraining": 0}],
    "clipbkd": [{}, {"copies": 2, "contrast": "row"}],
    "backdoor": [{"size": 2, "probes": 5, "copies": 2}],
    "canaries": [
        {"canaries": 9},
        {"canaries": 9, "kind": "records"},
        {"canaries": 9, "kind": "records", "sees": "model"},
    ],
    "membership": [{"records": 9}],
    "learned": [{"examples": 10}, {"examples": 10, "record": "clipbkd"}, {"examples": 10, "sees": "updates"}],
}


def module(features: int, classes: int) -> Any:
    from torch import nn

    return nn.Sequential(nn.Linear(features, 3), nn.GELU(), nn.Linear(3, classes))


def cells() -> Iterator[tuple[str, dict[str, Any]]]:
    """Names, and specs as nested dictionaries."""
    models: dict[str, dict[str, Any]] = {
        "logistic": {},
        "mlp": {"name": "mlp", "hidden": [4], "activation": "tanh", "initialisation": "random"},
        "module": {"name": MODULE},
    }
    samplings = ("poisson", "full", "shuffle", "fixed-size")
    for name, model, sampling, relation in itertools.product(
        ADVERSARIES, models, samplings, ("add-remove", "replace", "zero-out")
    ):
        if sampling in ("full", "fixed-size") and relation == "zero-out":
            continue
        for settings in SETTINGS.get(name, [{}]):
            told = ", ".join(f"{key} = {value}" for key, value in settings.items())
            yield (
                f"{name}({told}) {model} {sampling} {relation}",
                {
                    "claim": {"epsilon": 4.0, "relation": relation},
                    "data": {"classes": [0, 1, 2], "per_class": 12},
                    "model": models[model],
                    "training": {
                        "noise_multiplier": 1.0,
                        "steps": 4,
                        "sampling": sampling,
                        "sample_rate": 1.0 if sampling == "full" else 0.25,
                        "optimizer": "momentum" if model == "mlp" else "sgd",
                    },
                    "adversary": {"name": name, **settings},
                    "audit": {"trials": TRIALS, "seed": 5},
                    "faults": {"noise_scale": 0.5 if sampling == "full" else 1.0},
                },
            )


def played(spec: dict[str, Any]) -> dict[str, Any]:
    """The plan's fingerprint and its scores, or the line with which it is refused."""
    try:
        plan: Plan = spec_from_dict(spec).plan()
        store = MemoryStore()
        play(plan, store, Inline())
    except InvalidInput as error:
        return {"refused": str(error)}
    results = store.results(plan.fingerprint())
    scores = {f"{world}/{index}": [float(score).hex() for score in seen] for (world, index), seen in results.items()}
    # The fingerprint of a module of one's own has the code of this file in it.
    own = {} if spec["model"].get("name") == MODULE else {"plan": plan.fingerprint()}
    return {**own, "scores": dict(sorted(scores.items()))}


def machine() -> str:
    """What decides the last bits: another processor or library rounds differently.

    A name such as AMD EPYC is that of several processors, so family, model and what they can do count as well.
    """
    import numba
    import torch

    told = dict(
        part for line in reversed(_cpu_lines()) if len(part := [one.strip() for one in line.split(":", 1)]) == 2
    )
    able = hashlib.sha256(told.get("flags", "").encode()).hexdigest()[:8]
    known = [told.get(name, "") for name in ("model name", "cpu family", "model", "stepping")]
    processor = " ".join(known) if "model name" in told else platform.processor()
    return f"{processor} {able}, numpy {np.__version__}, torch {torch.__version__}, numba {numba.__version__}"


def _cpu_lines() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


if __name__ == "__main__":
    register(MODULE, module)
    found = {name: played(spec) for name, spec in cells()}
    if "--write" in sys.argv:
        FILE.write_text(json.dumps({"machine": machine(), "cells": found}, indent=0, ensure_ascii=False) + "\n")
    else:
        kept = json.loads(FILE.read_text())
        changed = [name for name in {**kept["cells"], **found} if kept["cells"].get(name) != found.get(name)]
        print(f"{len(found)} cells, {len(changed)} changed", *changed[:20], sep="\n")
        sys.exit(bool(changed))
