"""What crafted records add: one with a huge gradient, and some that are no numbers."""

from __future__ import annotations

import math

from epsilometer.watching.checks.check import Finding, failed, not_applicable, passed
from epsilometer.watching.facts import Facts

_SLACK = 1e-3


def huge_record(facts: Facts) -> Finding:
    """A record whose gradient is 1000·C in all parameters, or in any one of them, adds C at most."""
    seen = facts.clipping
    assert seen is not None
    if not math.isfinite(seen.limit) or seen.limit <= 0:
        return failed(f"clip norm {seen.limit}", "a positive number", "give make_private a max_grad_norm")
    if seen.idle > _SLACK * seen.limit:
        return not_applicable(f"its clipping adds {seen.idle:.3g} without any record: noise, perhaps")
    if not seen.added <= seen.limit * (1 + _SLACK):
        return failed(
            f"a record with gradient norm {seen.huge:.4g} adds {seen.added:.4g}", f"at most C = {seen.limit:.4g}",
            "clip every record's gradient over all parameters together (DPOptimizer.clip_and_accumulate)",
        )  # fmt: skip
    return passed(f"a record with gradient norm {seen.huge:.4g} adds {seen.added:.4g}, C = {seen.limit:.4g}")


def nonfinite_record(facts: Facts) -> Finding:
    """A record with NaN or infinity must not show in what is released."""
    assert facts.clipping is not None
    bad = facts.clipping.not_finite
    if bad:
        return failed(
            f"one record with {' or '.join(bad)} in its gradient makes the whole sum NaN: all can see that it is there",
            "a finite sum, whatever a record is",
            "no Opacus up to 1.6.0 guards against this: set such rows of grad_sample to 0 before the clipping, "
            "in a subclass of DPOptimizer",
        )  # fmt: skip
    return passed("records with NaN or infinity leave the sum finite")


def ghost_clip_norm(facts: Facts) -> Finding:
    """In ghost mode the module clips and the optimizer adds noise: both need the same C."""
    assert facts.ghost is not None
    for clips, noise in facts.ghost.pairs:
        if clips > noise * (1 + 1e-6):
            return failed(
                f"records are clipped at {clips:.4g}", f"C = {noise:.4g}, for which noise is added",
                "use Opacus 1.5.3 or later (PR 664), or set module.max_grad_norm",
            )  # fmt: skip
    return passed("records are clipped at the norm for which noise is added")
