"""The function that answers each question of `names`, in the same order."""

from __future__ import annotations

from collections.abc import Callable

from epsilometer.watching.checks import (
    accounted,
    clipping,
    independence,
    kept,
    layers,
    mixing,
    noise_scale,
    records,
    repetition,
    sampling,
    weights,
)
from epsilometer.watching.checks.check import Finding
from epsilometer.watching.checks.names import NAMES
from epsilometer.watching.checks.seen import SeenTraining

_ANSWERS: dict[str, Callable[[SeenTraining], Finding]] = {
    "sampler": sampling.sampler,
    "sample-rate": sampling.sample_rate,
    "empty-batches": sampling.empty_batches,
    "steps": accounted.steps,
    "multiplier": accounted.multiplier,
    "target-epsilon": accounted.target_epsilon,
    "accountant": accounted.accountant,
    "noise-scale": noise_scale.noise_scale,
    "noise-kept": kept.noise_kept,
    "independent-noise": independence.independence,
    "fresh-noise": repetition.fresh_noise,
    "huge-record": clipping.huge_record,
    "nonfinite-record": clipping.nonfinite_record,
    "ghost-clip-norm": clipping.ghost_clip_norm,
    "record-norms": layers.record_norms,
    "size-dependence": records.size_dependence,
    "mixing": mixing.mixing,
    "buffers": mixing.buffers,
    "weights-moved": weights.weights_moved,
    "only-private-steps": weights.only_private_steps,
}
CHECKS = {name: _ANSWERS[name] for name in NAMES}
