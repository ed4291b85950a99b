"""Who moved the weights: the private optimizer, somebody else, or nobody."""

from __future__ import annotations

from epsilometer.watching.checks.check import Finding, failed, not_applicable, passed
from epsilometer.watching.facts import Facts


def weights_moved(facts: Facts) -> Finding:
    """A private optimizer that trains nothing makes every other answer worthless."""
    seen, steps = facts.moved, facts.steps
    assert seen is not None
    assert steps is not None
    if not steps.taken:
        return not_applicable("no private step was taken")
    if not seen.moved:
        return failed(
            f"none of {seen.private} parameters moved in {steps.taken} private steps",
            "weights that training moves",
            "check the learning rate, and that the optimizer has the parameters of the model that is trained",
        )  # fmt: skip
    still = "" if seen.moved == seen.private else "; the others did not, although they had noise: learning rate 0?"
    return passed(f"{seen.moved} of {seen.private} parameters moved in {steps.taken} private steps{still}")


def only_private_steps(facts: Facts) -> Finding:
    """Nothing but the private optimizer may train the model."""
    seen, steps, others = facts.moved, facts.steps, facts.others
    assert seen is not None
    assert steps is not None
    assert others is not None
    for kind, inner, bare in others.found:
        if inner:
            return failed(
                f"{bare} of {bare + steps.taken} steps went to the original optimizer without clipping and noise",
                "private steps only", "call step() of the optimizer that make_private returned",
            )  # fmt: skip
        return failed(
            f"another optimizer ({kind}) took {bare} steps on parameters of the model", "private steps only",
            "give make_private one optimizer with all parameters that are trained, and freeze the others",
        )  # fmt: skip
    if seen.unprotected_moved:
        return failed(
            f"{seen.unprotected_moved[0]} moved and is not in the private optimizer", "private steps only",
            "give it to the optimizer, or freeze it (requires_grad_(False))",
        )  # fmt: skip
    if not steps.taken:
        return not_applicable("no private step was taken, and no other one was seen")
    idle = f"; {seen.unprotected} parameters are trainable, not in the optimizer, and did not move"
    return passed(f"{steps.taken} private steps and no others{idle if seen.unprotected else ''}")
