"""Noise that somebody can compute again: the same in a second run, or of a seed that is easily guessed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.statements import Basis, Statement
from epsilometer.watching.checks.check import CHANCE, Check, Finding, Status, failed, not_applicable, passed
from epsilometer.watching.checks.correlation import chance_of
from epsilometer.watching.checks.noise_scale import no_noise
from epsilometer.watching.facts import Facts, Seeds

NAME = "fresh-noise"
FirstNoise = Sequence[Sequence[float]]  # of the first steps of a training, in units of σ·C
_GUESSED = 1 << 20  # seeds that are tried in no time
_REMEDY = "take the noise of released models from secure_mode=True or a generator that is never seeded"


def compare_runs(first: FirstNoise, second: FirstNoise) -> Check:
    """Two runs of one script, the second with other seeds: no step may have the same noise in both."""
    if not first or not second:
        return _fresh(Status.NOT_APPLICABLE, "no noise was seen in both runs")
    for step, (x, y) in enumerate(zip(first, second, strict=False), start=1):
        if _same(np.array(x), np.array(y)):
            finding = failed(
                f"step {step} has the same noise in a second run, although torch.manual_seed got another seed",
                "noise that nobody can compute again", f"its generator has a fixed seed of its own; {_REMEDY}",
            )  # fmt: skip
            return _fresh(finding.status, finding.reason)
    return _fresh(Status.PASSED, "a second run with other seeds has other noise")


def _fresh(status: Status, reason: str) -> Check:
    return Check(NAME, status, reason, Statement.NOISE, Basis.COUNTEREXAMPLE)


def fresh_noise(facts: Facts) -> Finding:
    """What one run can say of it."""
    seen = facts.seeds
    assert seen is not None
    if not seen.first:
        return not_applicable(no_noise(facts))
    computed = _computed(seen)
    if computed:
        found, expected, step = computed
        return failed(found, expected, _REMEDY, step=step)
    needed = "needs a second run: epsilometer inspect --second-run"
    if seen.guessed is not None:
        return not_applicable(
            f"{needed}; before a release: the noise is that of a generator with seed {seen.guessed}, which anybody can "
            f"take off; {_REMEDY}"
        )
    if seen.seed is not None and seen.seed < 2**32:
        whose = "the noise generator's" if seen.own_generator else "torch's"
        return not_applicable(
            f"{needed}; before a release: {whose} seed {seen.seed} can be guessed, and with it the noise; {_REMEDY}"
        )
    return not_applicable(needed)


def _computed(seen: Seeds) -> tuple[str, str, int] | None:
    """Noise of which one run shows that it can be had again, and what was expected in its place."""
    nobody = "noise that nobody can compute again"
    if seen.guessed is not None and seen.each_step:
        return f"every step draws its noise from a new generator with seed {seen.guessed}", nobody, 1
    again = [(step, seed) for step, seed in seen.again if 0 <= seed < _GUESSED]
    if again:
        step, seed = again[0]
        others = f", then with {', '.join(str(one) for _, one in again[1:4])}" if len(again) > 1 else ""
        when = f"before step {step}, in the middle of the training"
        return f"the generator of the noise was seeded with {seed} {when}{others}", nobody, step
    if seen.back:
        where = f"at step {seen.back[0]} where it had been at step {seen.back[1]}"
        return f"the generator of the noise was {where}", "noise that is fresh in every step", seen.back[0]
    return None


def first_key(facts: Facts) -> Finding:
    """The same of random keys."""
    assert facts.keys is not None
    if facts.keys.first_is_zero is None:
        return not_applicable("no random key was seen in a new state")
    if facts.keys.first_is_zero:
        return failed(
            "the first key is that of seed 0 (also optax's default): anyone can compute the noise and take it off",
            "a key that nobody can guess", "make it from the system's entropy",
        )  # fmt: skip
    return passed("the first key is not that of seed 0; other fixed seeds are not noticed")


def independent_steps(facts: Facts) -> Finding:
    """Is noise fresh in every step, by keys and by what canaries saw?"""
    seen, steps = facts.keys, facts.steps
    assert seen is not None
    assert steps is not None
    if steps.taken < 2:
        return not_applicable("fewer than two steps")
    expected, remedy = "a new key in every step", "keep the state that update returns"
    if seen.remade and seen.repeated:
        found = "init was called again before every step, so that each had the noise of the first"
        return failed(found, expected, "call init once, and keep the state that update returns")
    if seen.repeated:
        found = f"{seen.repeated} of {steps.taken} steps had a random key of a step before: the same noise twice"
        return failed(found, expected, remedy)
    if seen.same_noise:
        return failed(f"{seen.same_noise} of {steps.taken} steps had the noise of the step before", expected, remedy)
    return passed(f"{steps.taken} steps")


def independent_leaves(facts: Facts) -> Finding:
    """And in every leaf?"""
    seen, steps = facts.keys, facts.steps
    assert seen is not None
    assert steps is not None
    if not steps.taken:
        return not_applicable("no step")
    if seen.same_leaf:
        found = f"in {seen.same_leaf} of {steps.taken} steps two leaves had the same noise"
        return failed(found, "noise of its own in every leaf", "split the key, one for each leaf")
    return passed("two leaves of equal shape")


def leaf_noise(facts: Facts) -> Finding:
    """Is there any in each of the script's own leaves?"""
    seen = facts.leaves
    assert seen is not None
    if seen.silent:
        return failed(
            f"what comes into {', '.join(seen.silent[:3])} goes out without noise", "noise in every leaf",
            "let the transformation that adds noise have all of the gradients",
        )  # fmt: skip
    return passed(f"{seen.number} leaves")


def _same(a: Floats, b: Floats) -> bool:
    n = min(len(a), len(b))
    length = float(np.linalg.norm(a[:n]) * np.linalg.norm(b[:n]))
    if n < 2 or not length:
        return False
    return bool(chance_of(np.array(float(np.dot(a[:n], b[:n])) / length), n) < CHANCE / 1000)
