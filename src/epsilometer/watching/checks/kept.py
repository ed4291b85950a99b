"""What the inner optimizer steps with: the noisy gradient, or something that a script has put in its place."""

from __future__ import annotations

from epsilometer.watching.checks.check import Finding, failed, not_applicable, passed
from epsilometer.watching.facts import Facts


def noise_kept(facts: Facts) -> Finding:
    """What comes after the noise may not bring back what it hides; a factor, as in scaling or clipping, cannot."""
    kept = facts.kept
    assert kept is not None
    if not kept.steps:
        return not_applicable("no step of the optimizer that make_private was given was seen")
    if kept.changed:
        name, times = max(kept.changed.items(), key=lambda item: item[1])
        return failed(
            f"the gradient of {name} was another one in {times} of {kept.steps} steps than clipping and noise had left "
            f"({len(kept.changed)} parameters)",
            "the noisy gradient, or a multiple of it",
            "leave p.grad alone between pre_step and step; what looks at noisy gradients only may be ignored",
        )  # fmt: skip
    return passed(f"{kept.steps} steps with the gradients that clipping and noise had left")
