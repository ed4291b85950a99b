"""Settings that follow from the number of records tell it: under add-remove, worlds differ in that number."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from epsilometer.watching.facts import Size

if TYPE_CHECKING:
    from epsilometer.watching.frameworks.opacus.seen import SeenOpacus


def size(seen: SeenOpacus) -> Size | str:
    """What would follow from one record more or less; or why nobody knows."""
    records = seen.records
    given = seen.settings.get("data_loader", seen.loader)
    length = None if records is None else _batches(seen, given, records)
    if records is None or length is None:
        return "how many batches there are does not follow from the number of records, or nobody knows how"
    several = [_batches(seen, given, other) or 1 for other in (records + 1, records - 1)]
    numbers = zip((records, records + 1, records - 1), (length, *several), strict=True)
    divisors = [int(n * (1 / many)) for n, many in numbers]
    divided = seen.optimizer.loss_reduction == "mean"
    # A script may set both by hand, and then nothing follows from the number of records.
    rate_by_hand = bool(seen.accounted) and not math.isclose(seen.accounted[-1][1], 1 / length, rel_tol=1e-9)
    divisor_by_hand = not divided or seen.optimizer.expected_batch_size != divisors[0]
    return Size(records, [length, *several], None if divisor_by_hand else divisors, rate_by_hand)


def _batches(seen: SeenOpacus, loader: Any, records: int) -> int | None:
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
