"""What is left of the risk when a model is released: what theory allows at most, and the verdict.

A lower bound is evidence beside it: what one attack has shown limits no other.
"""

from __future__ import annotations

DO_NOT_RELEASE = "Do not release."
REFUTED = f"{DO_NOT_RELEASE} A certified test refutes the privacy claim."


def is_refused(verdict: str | None) -> bool:
    """Whether a verdict says that the claim does not hold."""
    return verdict == "violated"


def residual_risk(upper: str | None, verdict: str | None) -> str:
    """The risk in words; `upper` is theory's upper bound in words, none where it says nothing.

    >>> residual_risk("ε ≤ 4 at δ = 1e-05", "consistent")
    'ε ≤ 4 at δ = 1e-05, if the training does what it states; verdict: consistent'
    """
    said = f"verdict: {verdict}" if verdict else "no claim was tested"
    if is_refused(verdict):
        theory = f", and theory ({upper}) speaks of a training that does what it states" if upper else ""
        return f"no upper bound stands: the claim is refuted{theory}; {said}, so do not release"
    limit = f"{upper}, if the training does what it states" if upper else "no upper bound is known"
    return f"{limit}; {said}"


def evidence(quote: str) -> str:
    """A lower bound, called what it is."""
    return f"{quote}; a lower bound by one attack, and no limit on the risk"
