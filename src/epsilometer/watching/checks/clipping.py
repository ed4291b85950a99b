"""What crafted records add: one with a huge gradient, and some that are no numbers."""

from __future__ import annotations

import math

from epsilometer.statements import Basis
from epsilometer.watching.checks.check import Finding, failed, not_applicable, passed
from epsilometer.watching.checks.noise_scale import noise_elsewhere, noise_ratio
from epsilometer.watching.facts import Facts

_SLACK = 1e-3
_ROUNDING = 0.02  # of real records: sums and norms of many numbers, and the scale of noise from those seen


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
    for times, moved in seen.ladder:
        if not moved <= seen.limit * (1 + _SLACK):
            return failed(
                f"a record with gradient norm {times * seen.limit:.4g} among others moves the sum by {moved:.4g}",
                f"at most C = {seen.limit:.4g}", "clip every record by its own norm, whatever that is",
            )  # fmt: skip
    dropped = [times for times, moved in seen.ladder if moved < seen.limit * _SLACK]
    remark = f"; records with gradients of {dropped[0]:g}·C or more do not arrive in the sum" if dropped else ""
    return passed(f"a record with gradient norm {seen.huge:.4g} adds {seen.added:.4g}, C = {seen.limit:.4g}{remark}")


def record_shares(facts: Facts) -> Finding:
    """The same of the training's own records, in the sums that were formed of them."""
    seen = facts.shares
    assert seen is not None
    if not seen.looked:
        return not_applicable("all sums had records that are no numbers")
    hides = seen.limit * _noise_beyond(facts)
    if seen.moved > hides * (1 + _ROUNDING):
        return failed(
            f"step {seen.step}: a record with gradient norm {seen.norm:.4g} added {seen.moved:.4g}",
            f"at most {hides:.4g}, for which the noise of that step was made",
            "clip every record in every step at the norm for which noise is drawn",
            meant=noise_elsewhere(facts),
            step=seen.step,
        )
    unknown = f"; of {seen.unexplained} sums it is not known what they are made of" if seen.unexplained else ""
    return passed(f"no record added more than C in {seen.looked} sums that were looked at{unknown}")


def _noise_beyond(facts: Facts) -> float:
    """By how much all parameters had more noise than is stated: it hides longer parts."""
    parameters = facts.noise.parameters if facts.noise is not None else []
    return max(1.0, min((noise_ratio(one) for one in parameters), default=1.0))


def nonfinite_record(facts: Facts) -> Finding:
    """A record with NaN or infinity must not show in what is released. That no Opacus guards against it is a limit; one
    in the training itself is a breach."""
    assert facts.clipping is not None
    shares, bad = facts.shares, facts.clipping.not_finite
    if bad and shares is not None and shares.not_finite:
        return failed(
            f"step {shares.not_finite_step}: {shares.not_finite} records had NaN or infinity in their gradients, which "
            "clipping does not limit", "a finite sum, whatever a record is",
            "set such rows of grad_sample to 0 before the clipping, in a subclass of DPOptimizer",
            basis=Basis.COUNTEREXAMPLE, step=shares.not_finite_step,
        )  # fmt: skip
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
