"""Every check, with the parts of `Facts` that it needs: it is made of each training that tells them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from epsilometer.registry import Registry, instance_of
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
from epsilometer.watching.checks.names import JAX, NAMES, REFUTING
from epsilometer.watching.facts import PARTS, Facts

Answer = Callable[[Facts], Finding]


@dataclass(frozen=True)
class NamedCheck:
    """What is asked, in one line, and who answers: a function and the parts of `Facts` that it `needs`. Frameworks that
    tell other parts may have another one. A training of the stated mechanism passes a check that `refutes` it."""

    name: str
    question: str
    answers: tuple[tuple[Answer, tuple[str, ...]], ...]
    refutes: bool = False

    @property
    def summary(self) -> str:
        return self.question


def _own(name: str, *answers: tuple[Answer, tuple[str, ...]]) -> NamedCheck:
    return NamedCheck(name, {**NAMES, **JAX}[name], answers, name in REFUTING)


def _usable(name: str, found: object) -> NamedCheck | None:
    """One that asks for parts which there are."""
    check = instance_of(NamedCheck)(name, found)
    known = check is not None and all(part in PARTS for _, needs in check.answers for part in needs)
    return check if known else None


CHECKS: Registry[NamedCheck] = Registry(
    "checks",
    {
        one.name: one
        for one in (
            _own("sampler", (sampling.sampler, ("sampling",))),
            _own("sample-rate", (sampling.sample_rate, ("sampling",))),
            _own("empty-batches", (sampling.empty_batches, ("sampling",))),
            _own("steps", (accounted.steps, ("accounted", "steps"))),
            _own("multiplier", (accounted.multiplier, ("accounted",))),
            _own("target-epsilon", (accounted.target_epsilon, ("target",))),
            _own("accountant", (accounted.accountant, ("accounted",))),
            _own("noise-scale", (noise_scale.noise_scale, ("noise",))),
            _own("noise-kept", (kept.noise_kept, ("kept",))),
            _own("independent-noise", (independence.independence, ("noise",))),
            _own("fresh-noise", (repetition.fresh_noise, ("seeds",)), (repetition.first_key, ("keys",))),
            _own("independent-steps", (repetition.independent_steps, ("keys", "steps"))),
            _own("independent-leaves", (repetition.independent_leaves, ("keys", "steps"))),
            _own("huge-record", (clipping.huge_record, ("clipping",))),
            _own("nonfinite-record", (clipping.nonfinite_record, ("clipping",))),
            _own("ghost-clip-norm", (clipping.ghost_clip_norm, ("ghost",))),
            _own("record-norms", (layers.record_norms, ("layers",))),
            _own("size-dependence", (size.size_dependence, ("size",)), (size.rows, ("rows",))),
            _own("mixing", (mixing.mixing, ("mixing",))),
            _own("buffers", (mixing.buffers, ("moved",))),
            _own("weights-moved", (weights.weights_moved, ("moved", "steps"))),
            _own("only-private-steps", (weights.only_private_steps, ("moved", "steps", "others"))),
        )
    },
    argument="check",
    expected="a watching.checks.catalogue.NamedCheck with the name {name!r}, of parts of Facts",
    accept=_usable,
)


@functools.cache
def _all() -> tuple[NamedCheck, ...]:
    """Packages are looked for once: facts may be judged in every step."""
    return tuple(CHECKS.values())


def judge(facts: Facts) -> list[Check]:
    """The answers of all checks whose facts are there, or should be."""
    found = []
    for check in _all():
        for answer, needs in check.answers:
            missing = [part for part in needs if getattr(facts, part) is None]
            if any(part not in facts.troubles for part in missing):
                continue  # its framework does not tell
            finding = not_applicable(facts.troubles[missing[0]]) if missing else _answer(answer, facts)
            meant = finding.meant or bool(facts.another_mechanism)
            refutes = finding.status is Status.FAILED and check.refutes and not meant
            found.append(Check(check.name, finding.status, finding.reason, refutes))
    return found


def _answer(answer: Answer, facts: Facts) -> Finding:
    try:
        return answer(facts)
    except Exception as error:  # facts that make no sense, or a check of another package
        return not_applicable(f"could not be judged ({type(error).__name__}: {error})")
