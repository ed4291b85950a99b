"""Every check, with the parts of `Facts` that it needs: it is made of each training that tells them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from epsilometer.registry import Registry, instance_of
from epsilometer.statements import Basis, Statement
from epsilometer.watching.checks import (
    accounted,
    batches,
    clipping,
    effective,
    independence,
    kept,
    layers,
    mixing,
    noise_scale,
    repetition,
    replayed,
    sampling,
    size,
    stepping,
    together,
    weights,
)
from epsilometer.watching.checks.check import Check, Finding, not_applicable
from epsilometer.watching.checks.names import QUESTIONS
from epsilometer.watching.facts import PARTS, Facts

Answer = Callable[[Facts], Finding]


@dataclass(frozen=True)
class NamedCheck:
    """What is asked, in one line, and who answers: a function and the parts of `Facts` that it needs. Frameworks that
    tell other parts may have another one. The answer is evidence about a `statement`: one that fails breaks it by a
    counterexample, or is a hint only; one that is `needed` must pass before the statement counts as held."""

    name: str
    question: str
    answers: tuple[tuple[Answer, tuple[str, ...]], ...]
    statement: Statement
    basis: Basis = Basis.HINT
    needed: bool = False

    @property
    def summary(self) -> str:
        return self.question


def _own(
    name: str,
    statement: Statement,
    basis: Basis,
    *answers: tuple[Answer, tuple[str, ...]],
    needed: bool = False,
) -> NamedCheck:
    return NamedCheck(name, QUESTIONS[name], answers, statement, basis, needed)


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
            _own("sampler", Statement.SAMPLING, Basis.TEST, (sampling.sampler, ("sampling",)), needed=True),
            _own(
                "sample-rate",
                Statement.SAMPLING,
                Basis.TEST,
                (sampling.sample_rate, ("sampling",)),
                needed=True,
            ),
            _own("batches", Statement.SAMPLING, Basis.TEST, (batches.batches, ("batches", "steps"))),
            _own("ranks", Statement.SAMPLING, Basis.COUNTEREXAMPLE, (together.ranks, ("ranks",))),
            _own("reduction", Statement.NOTHING_ELSE, Basis.HINT, (together.reduction, ("ranks",))),
            _own("copies", Statement.SAMPLING, Basis.COUNTEREXAMPLE, (batches.copies, ("copies",))),
            _own("empty-batches", Statement.SAMPLING, Basis.TEST, (sampling.empty_batches, ("sampling",))),
            _own(
                "steps",
                Statement.ACCOUNTING,
                Basis.COUNTEREXAMPLE,
                (accounted.steps, ("accounted", "steps")),
                needed=True,
            ),
            _own("multiplier", Statement.ACCOUNTING, Basis.COUNTEREXAMPLE, (accounted.multiplier, ("accounted",))),
            _own("target-epsilon", Statement.ACCOUNTING, Basis.COUNTEREXAMPLE, (accounted.target_epsilon, ("target",))),
            _own("composition", Statement.ACCOUNTING, Basis.HINT, (accounted.composition, ("together",))),
            _own("accountant", Statement.ACCOUNTING, Basis.COUNTEREXAMPLE, (accounted.accountant, ("accounted",))),
            _own("noise-scale", Statement.NOISE, Basis.TEST, (noise_scale.noise_scale, ("noise",))),
            _own("noise-kept", Statement.NOTHING_ELSE, Basis.HINT, (kept.noise_kept, ("kept",))),
            _own("independent-noise", Statement.NOISE, Basis.TEST, (independence.independence, ("noise",))),
            _own(
                "fresh-noise",
                Statement.NOISE,
                Basis.COUNTEREXAMPLE,
                (repetition.fresh_noise, ("seeds",)),
                (repetition.first_key, ("keys",)),
            ),
            _own(
                "independent-steps",
                Statement.NOISE,
                Basis.COUNTEREXAMPLE,
                (repetition.independent_steps, ("keys", "steps")),
            ),
            _own("leaf-noise", Statement.NOISE, Basis.COUNTEREXAMPLE, (repetition.leaf_noise, ("leaves",))),
            _own(
                "independent-leaves",
                Statement.NOISE,
                Basis.COUNTEREXAMPLE,
                (repetition.independent_leaves, ("keys", "steps")),
            ),
            _own(
                "huge-record",
                Statement.CLIPPING,
                Basis.COUNTEREXAMPLE,
                (clipping.huge_record, ("clipping",)),
                needed=True,
            ),
            _own("record-shares", Statement.CLIPPING, Basis.COUNTEREXAMPLE, (clipping.record_shares, ("shares",))),
            _own("record-rows", Statement.CLIPPING, Basis.HINT, (batches.record_rows, ("batches",))),
            _own("nonfinite-record", Statement.CLIPPING, Basis.HINT, (clipping.nonfinite_record, ("clipping",))),
            _own("ghost-clip-norm", Statement.CLIPPING, Basis.COUNTEREXAMPLE, (clipping.ghost_clip_norm, ("ghost",))),
            _own("record-norms", Statement.CLIPPING, Basis.COUNTEREXAMPLE, (layers.record_norms, ("layers",))),
            _own(
                "size-dependence",
                Statement.NOTHING_ELSE,
                Basis.HINT,
                (size.size_dependence, ("size",)),
                (size.rows, ("rows",)),
            ),
            _own("mixing", Statement.CLIPPING, Basis.COUNTEREXAMPLE, (mixing.mixing, ("mixing",))),
            _own("buffers", Statement.NOTHING_ELSE, Basis.HINT, (mixing.buffers, ("moved",))),
            _own("divisor", Statement.NOTHING_ELSE, Basis.COUNTEREXAMPLE, (stepping.divisor, ("divisors",))),
            _own("between-steps", Statement.NOTHING_ELSE, Basis.HINT, (stepping.between_steps, ("between",))),
            _own("inner-optimizer", Statement.NOTHING_ELSE, Basis.HINT, (stepping.inner_optimizer, ("between",))),
            _own(
                "weights-moved",
                Statement.NOTHING_ELSE,
                Basis.HINT,
                (weights.weights_moved, ("moved", "steps")),
                needed=True,
            ),
            _own(
                "only-private-steps",
                Statement.NOTHING_ELSE,
                Basis.HINT,
                (weights.only_private_steps, ("moved", "steps", "others")),
                needed=True,
            ),
            _own(
                "effective-noise",
                Statement.NOISE,
                Basis.TEST,
                (effective.effective_noise, ("effective",)),
                needed=True,
            ),
            _own(
                "effective-clipping",
                Statement.CLIPPING,
                Basis.TEST,
                (effective.effective_clipping, ("effective",)),
                needed=True,
            ),
            _own(
                "effective-sampling",
                Statement.SAMPLING,
                Basis.TEST,
                (effective.effective_sampling, ("effective",)),
                needed=True,
            ),
            _own(
                "replayed-clipping",
                Statement.CLIPPING,
                Basis.COUNTEREXAMPLE,
                (replayed.replayed_clipping, ("replay",)),
            ),
            _own("replayed-sums", Statement.NOTHING_ELSE, Basis.COUNTEREXAMPLE, (replayed.replayed_sums, ("replay",))),
            _own(
                "replayed-batches", Statement.SAMPLING, Basis.COUNTEREXAMPLE, (replayed.replayed_batches, ("replay",))
            ),
            _own(
                "replayed-state", Statement.NOTHING_ELSE, Basis.COUNTEREXAMPLE, (replayed.replayed_state, ("replay",))
            ),
            _own(
                "replayed-files", Statement.NOTHING_ELSE, Basis.COUNTEREXAMPLE, (replayed.replayed_files, ("replay",))
            ),
            _own(
                "replayed-steps", Statement.NOTHING_ELSE, Basis.COUNTEREXAMPLE, (replayed.replayed_steps, ("replay",))
            ),
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
            basis = Basis.HINT if meant else finding.basis or check.basis
            found.append(
                Check(check.name, finding.status, finding.reason, check.statement, basis, check.needed, finding.step)
            )
    return found


def _answer(answer: Answer, facts: Facts) -> Finding:
    try:
        return answer(facts)
    except Exception as error:  # facts that make no sense, or a check of another package
        return not_applicable(f"could not be judged ({type(error).__name__}: {error})")
