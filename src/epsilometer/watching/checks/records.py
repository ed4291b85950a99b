"""Settings that follow from the number of records tell it: under add-remove, worlds differ in that number."""

from __future__ import annotations

import math
from typing import Any

from epsilometer.watching.checks.check import Finding, failed, not_applicable, passed
from epsilometer.watching.checks.seen import SeenTraining


def size_dependence(seen: SeenTraining) -> Finding:
    """Whether sample rate or divisor would be others with one record more or less (Opacus issues 571, 819)."""
    records = seen.records
    given = seen.settings.get("data_loader", seen.loader)
    length = None if records is None else _batches(seen, given, records)
    if records is None or length is None:
        return not_applicable(
            "how many batches there are does not follow from the number of records, or nobody knows how"
        )
    if seen.several_processes:
        return not_applicable("several processes")
    divided = seen.optimizer.loss_reduction == "mean"
    # A script may set both by hand, and then nothing follows from the number of records.
    rate_by_hand = bool(seen.accounted) and not math.isclose(seen.accounted[-1][1], 1 / length, rel_tol=1e-9)
    divisor_by_hand = not divided or seen.optimizer.expected_batch_size != int(records * (1 / length))
    for other in (records + 1, records - 1):
        changed = _batches(seen, given, other) or 1
        if changed != length and not rate_by_hand:
            found = (
                f"with {other} records instead of {records} the sample rate would be 1/{changed} instead of 1/{length}"
            )
        elif not divisor_by_hand and int(other * (1 / changed)) != int(records * (1 / length)):
            now, then = int(records * (1 / length)), int(other * (1 / changed))
            found = f"with {other} records instead of {records} sums would be divided by {then} instead of {now}"
        else:
            continue
        return failed(
            found, "the same settings for neighbouring data (the accountant means one record more or less)",
            "give make_private a DPDataLoader with a fixed sample_rate and set optimizer.expected_batch_size, "
            "or state the promise for replaced records and a public number of records",
        )  # fmt: skip
    return passed(f"the same sample rate and divisor with {records - 1}, {records} and {records + 1} records")


def _batches(seen: SeenTraining, loader: Any, records: int) -> int | None:
    """As Opacus computes it: Poisson sampling takes the inverse twice, and rounding may cost a batch."""
    length = _length(loader, records)
    return int(1 / (1 / length)) if length and seen.poisson else length


def _length(loader: Any, records: int) -> int | None:
    """How many batches the loader would have with so many records."""
    rate = getattr(loader, "sample_rate", None)
    if rate is not None:
        return int(1 / float(rate))
    size: int | None = getattr(loader, "batch_size", None)
    sampler = getattr(loader, "sampler", None)
    if size is None or type(sampler).__name__ not in ("SequentialSampler", "RandomSampler"):
        return None
    if getattr(sampler, "_num_samples", None) is not None:  # RandomSampler(num_samples=…)
        return None
    return max(records // size, 1) if loader.drop_last else math.ceil(records / size)
