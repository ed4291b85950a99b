"""Steps that several processes take together."""

from __future__ import annotations

from epsilometer.statements import Basis
from epsilometer.watching.checks.check import Finding, failed, not_applicable, passed
from epsilometer.watching.facts import Facts
from epsilometer.watching.facts_together import Ranks

_SAME = 1e-2


def ranks(facts: Facts) -> Finding:
    """A record that is on two ranks in one step adds C on each; ranks draw their records independently."""
    seen = _of(facts)
    if seen.twice:
        return failed(
            f"{seen.twice} records are on two ranks in step {seen.step}, where each adds C twice",
            "every record on one rank", "DPDataLoader.from_data_loader(…, distributed=True)", step=seen.step,
            basis=Basis.COUNTEREXAMPLE if seen.certain else Basis.HINT,
        )  # fmt: skip
    if seen.same_coins:
        return failed(
            f"all {seen.world} ranks draw batches with the same random numbers, so that records come in groups",
            "records that are drawn independently of each other", "seed each rank by its number", basis=Basis.HINT,
        )  # fmt: skip
    if not seen.known:
        return not_applicable("which records ranks have in their batches was not seen")
    return passed(f"no record was on two of {seen.world} ranks in {seen.known} steps")


def reduction(facts: Facts) -> Finding:
    """What is not divided as it should be harms no privacy by itself, and is no step that anybody means."""
    seen = _of(facts)
    if abs(seen.divided - 1.0) < _SAME:
        return passed(f"the gradient of {seen.compared} steps is the sum over {seen.world} ranks, divided once")
    once = "averaged once too often" if abs(seen.divided / seen.world - 1.0) < _SAME else "scaled after it was reduced"
    return failed(
        f"gradients are {once}: divided by {seen.divided:.3g} more than the number of ranks and records",
        "one division by both", "leave the reduction to DistributedDPOptimizer.step",
    )  # fmt: skip


def _of(facts: Facts) -> Ranks:
    assert facts.ranks is not None
    return facts.ranks
