"""A record may act through its own gradient only: not through other records' outputs, and not through buffers."""

from __future__ import annotations

from epsilometer.watching.checks.check import Finding, failed, not_applicable, passed
from epsilometer.watching.facts import Facts

_TOLERANCE = 1e-4
_REMEDY = "replace such layers by GroupNorm or LayerNorm (opacus.validators.ModuleValidator.fix)"


def mixing(facts: Facts) -> Finding:
    """Batch normalisation, and anything else by which a record's output depends on its neighbours in the batch."""
    seen = facts.mixing
    assert seen is not None
    if seen.batch_norms:
        found = f"batch normalisation in {seen.batch_norms[0]}"
        return failed(found, "outputs that depend on one record only", _REMEDY)
    if seen.influence is None:
        return passed(f"no batch normalisation; outputs were not compared: {seen.unknown}")
    if seen.influence > _TOLERANCE:
        return failed(
            f"a record's output changes by {seen.influence:.2g} of its size with the other records of the batch",
            "outputs that depend on one record only", "remove statistics over the batch from the model",
        )  # fmt: skip
    return passed("no batch normalisation; a record's output does not depend on other records")


def buffers(facts: Facts) -> Finding:
    """Buffers are released with the model, and nothing clips or noises what goes into them."""
    seen = facts.moved
    assert seen is not None
    if not (facts.steps and facts.steps.taken):
        return not_applicable("no private step was taken")
    if not seen.buffers:
        return passed("the model has no buffers")
    if seen.buffers_moved:
        return failed(
            f"buffer {seen.buffers_moved[0]} changed in the training", "buffers that no record has changed",
            "keep running statistics of records out of the model, e.g. track_running_stats=False",
        )  # fmt: skip
    return passed(f"none of {seen.buffers} buffers changed")
