"""What a rank gave to a step, as whoever watches all of them is told."""

from __future__ import annotations

from typing import Any

import numpy as np

from epsilometer.watching.collect.ranks import Given, RankShares
from epsilometer.watching.frameworks.opacus.support import is_sharded
from epsilometer.watching.recording import Shared
from epsilometer.watching.sealed import can_seal, seal


def shared_by(given: Given, ranks: RankShares, training: int, optimizer: Any) -> Shared:
    """Sealed; ValueError if nobody could open it."""
    if not can_seal():
        raise ValueError("nobody watches all ranks")
    values = np.concatenate([given.total, given.noisy, given.arrived]).astype("<f8").tobytes()
    once, sealed = seal(values + np.asarray(given.batch or [], "<i8").tobytes())
    return Shared(
        training,
        given.step,
        ranks.rank,
        ranks.world,
        ranks.group,
        given.names,
        given.sizes,
        given.scale,
        given.divisor,
        is_sharded(optimizer),
        bool(optimizer.loss_reduction == "mean"),
        given.batch is not None,
        once,
        sealed,
    )
