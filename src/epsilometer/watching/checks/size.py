"""Settings that follow from the number of records tell it: under add-remove, worlds differ in that number."""

from __future__ import annotations

from epsilometer.watching.checks.check import Finding, failed, passed
from epsilometer.watching.facts import Facts


def size_dependence(facts: Facts) -> Finding:
    """Whether sample rate or divisor would be others with one record more or less (Opacus issues 571, 819)."""
    seen = facts.size
    assert seen is not None
    records, (batches, *others) = seen.records, seen.batches
    for place, (other, changed) in enumerate(zip((records + 1, records - 1), others, strict=True), start=1):
        if changed != batches and not seen.rate_by_hand:
            now, then = f"1/{batches}", f"1/{changed}"
            found = f"with {other} records instead of {records} the sample rate would be {then} instead of {now}"
        elif seen.divisors is not None and seen.divisors[place] != seen.divisors[0]:
            then, now = str(seen.divisors[place]), str(seen.divisors[0])
            found = f"with {other} records instead of {records} sums would be divided by {then} instead of {now}"
        else:
            continue
        return failed(
            found, "the same settings for neighbouring data (the accountant means one record more or less)",
            "give make_private a DPDataLoader with a fixed sample_rate and set optimizer.expected_batch_size, "
            "or state the promise for replaced records and a public number of records",
        )  # fmt: skip
    return passed(f"the same sample rate and divisor with {records - 1}, {records} and {records + 1} records")


def rows(facts: Facts) -> Finding:
    """The same of a transformation that divides by the number of records which came in."""
    assert facts.rows is not None
    sizes = facts.rows.sizes
    if len(sizes) > 1:
        several = f"{min(sizes)} to {max(sizes)} rows"
        return failed(
            f"batches have {several}, and what comes out is divided by their number, which no noise hides",
            "one divisor, whatever the batch", "divide by the expected size of a batch",
        )  # fmt: skip
    return passed(f"all batches have {sizes[0]} rows")
