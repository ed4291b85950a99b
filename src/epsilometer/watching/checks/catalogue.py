"""Every check, with the parts of `Facts` that it needs: it is made of each training that tells them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from epsilometer.watching.checks import (
    accounted,
    clipping,
    independence,
    kept,
    layers,
    mixing,
    noise_scale,
    repetition,
    sampling,
    size,
    weights,
)
from epsilometer.watching.checks.check import Check, Finding, Status, not_applicable
from epsilometer.watching.checks.names import REFUTING
from epsilometer.watching.facts import Facts


@dataclass(frozen=True)
class Entry:
    name: str
    answer: Callable[[Facts], Finding]
    needs: tuple[str, ...]


CHECKS = (
    Entry("sampler", sampling.sampler, ("sampling",)),
    Entry("sample-rate", sampling.sample_rate, ("sampling",)),
    Entry("empty-batches", sampling.empty_batches, ("sampling",)),
    Entry("steps", accounted.steps, ("accounted", "steps")),
    Entry("multiplier", accounted.multiplier, ("accounted",)),
    Entry("target-epsilon", accounted.target_epsilon, ("target",)),
    Entry("accountant", accounted.accountant, ("accounted",)),
    Entry("noise-scale", noise_scale.noise_scale, ("noise",)),
    Entry("noise-kept", kept.noise_kept, ("kept",)),
    Entry("independent-noise", independence.independence, ("noise",)),
    Entry("fresh-noise", repetition.fresh_noise, ("seeds",)),
    Entry("fresh-noise", repetition.first_key, ("keys",)),
    Entry("independent-steps", repetition.independent_steps, ("keys", "steps")),
    Entry("independent-leaves", repetition.independent_leaves, ("keys", "steps")),
    Entry("huge-record", clipping.huge_record, ("clipping",)),
    Entry("nonfinite-record", clipping.nonfinite_record, ("clipping",)),
    Entry("ghost-clip-norm", clipping.ghost_clip_norm, ("ghost",)),
    Entry("record-norms", layers.record_norms, ("layers",)),
    Entry("size-dependence", size.size_dependence, ("size",)),
    Entry("size-dependence", size.rows, ("rows",)),
    Entry("mixing", mixing.mixing, ("mixing",)),
    Entry("buffers", mixing.buffers, ("moved",)),
    Entry("weights-moved", weights.weights_moved, ("moved", "steps")),
    Entry("only-private-steps", weights.only_private_steps, ("moved", "steps", "others")),
)


def judge(facts: Facts) -> list[Check]:
    """The answers of all checks whose facts are there, or should be."""
    found = []
    for entry in CHECKS:
        missing = [part for part in entry.needs if getattr(facts, part) is None]
        if any(part not in facts.troubles for part in missing):
            continue  # its framework does not tell
        finding = not_applicable(facts.troubles[missing[0]]) if missing else _answer(entry, facts)
        meant = finding.meant or bool(facts.another_mechanism)
        refutes = finding.status is Status.FAILED and entry.name in REFUTING and not meant
        found.append(Check(entry.name, finding.status, finding.reason, refutes))
    return found


def _answer(entry: Entry, facts: Facts) -> Finding:
    try:
        return entry.answer(facts)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # facts that make no sense
        return not_applicable(f"could not be judged ({type(error).__name__}: {error})")
