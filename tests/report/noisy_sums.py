"""An audit that takes no time: noisy sums of few records, and a point claim."""

from typing import Any

import numpy as np

import epsilometer
from epsilometer.auditing import AuditResult

DATA = (np.random.default_rng(0).normal(size=(40, 5)), np.arange(40) % 2)


def train(data: Any, seed: int) -> Any:
    sums = np.stack([data.x[data.y == label].sum(axis=0) for label in (0, 1)])
    sums += np.random.default_rng(seed).normal(size=sums.shape)
    return lambda points: points @ sums.T


def audited(**settings: Any) -> AuditResult:
    return epsilometer.audit(train, data=DATA, claim=(3.0, 1e-5), trials=25, isolation="here", **settings)
