"""Gradients of single records, as they are computed for each kind of layer, against plain autograd."""

from __future__ import annotations

from epsilometer.watching.checks.check import Finding, failed, not_applicable, passed
from epsilometer.watching.facts import Facts

_TOLERANCE = 1e-3


def record_norms(facts: Facts) -> Finding:
    """The norm of a record's gradient decides how it is clipped: one that is too small lets it through."""
    seen = facts.layers
    assert seen is not None
    for name, share in seen.found.items():
        if share < 1 - _TOLERANCE:
            return failed(
                f"{name}: norms of records are {1 / max(share, 1e-9):.3g} times too small",
                "the norm that autograd gives", "use Opacus 1.5.4 or later (PR 751) or grad_sample_mode='hooks'",
            )  # fmt: skip
    if not seen.kinds and not seen.unknown:
        return not_applicable("no forward pass with known input was seen")
    if not seen.kinds:
        return not_applicable(f"no small copy can be made of {', '.join(seen.unknown)}")
    untried = f"; not tried: {', '.join(seen.unknown)}" if seen.unknown else ""
    return passed(f"norms as autograd has them: {', '.join(seen.kinds)}{untried}")
