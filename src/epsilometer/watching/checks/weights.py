"""Who moved the weights: the private optimizer, somebody else, or nobody."""

from __future__ import annotations

from epsilometer.watching.checks.check import Finding, failed, not_applicable, passed
from epsilometer.watching.checks.seen import SeenTraining


def weights_moved(seen: SeenTraining) -> Finding:
    """A private optimizer that trains nothing makes every other answer worthless."""
    if not seen.steps:
        return not_applicable("no private step was taken")
    moved = len(seen.weights.moved())
    if not moved:
        return failed(
            f"none of {len(seen.weights)} parameters moved in {seen.steps} private steps",
            "weights that training moves",
            "check the learning rate, and that the optimizer has the parameters of the model that is trained",
        )  # fmt: skip
    still = "" if moved == len(seen.weights) else "; the others did not, although they had noise: learning rate 0?"
    return passed(f"{moved} of {len(seen.weights)} parameters moved in {seen.steps} private steps{still}")


def only_private_steps(seen: SeenTraining) -> Finding:
    """Nothing but the private optimizer may train the model."""
    for optimizer, bare in seen.steps_taken.bare():
        if optimizer is seen.optimizer.original_optimizer:
            return failed(
                f"{bare} of {bare + seen.steps} steps went to the original optimizer without clipping and noise",
                "private steps only", "call step() of the optimizer that make_private returned",
            )  # fmt: skip
        kind = type(optimizer).__name__
        return failed(
            f"another optimizer ({kind}) took {bare} steps on parameters of the model", "private steps only",
            "give make_private one optimizer with all parameters that are trained, and freeze the others",
        )  # fmt: skip
    moved = seen.unprotected.moved()
    if moved:
        return failed(
            f"{moved[0]} moved and is not in the private optimizer", "private steps only",
            "give it to the optimizer, or freeze it (requires_grad_(False))",
        )  # fmt: skip
    if not seen.steps:
        return not_applicable("no private step was taken, and no other one was seen")
    idle = (
        f"; {len(seen.unprotected)} parameters are trainable, not in the optimizer, and did not move"
        if len(seen.unprotected)
        else ""
    )
    return passed(f"{seen.steps} private steps and no others{idle}")
