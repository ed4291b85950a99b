"""What runs with one record changed say, in which the noise is the same: counterexamples, which need no statistics."""

from __future__ import annotations

from epsilometer.statements import Basis
from epsilometer.watching.checks.check import Finding, Status, failed, not_applicable, passed
from epsilometer.watching.facts import Facts, Replay, Unlike
from epsilometer.watching.replay.roles import KINDS

_STEPS = 3  # with a changed record in them: fewer would not see much
_CLIPPED = 0.9  # clip norms: a record that moves a sum by so much was clipped, and so would be one that is not


def replayed_clipping(facts: Facts) -> Finding:
    """A changed record moves the sums that it is in by C at most, or 2·C if another one takes its place."""
    seen = _replay(facts)
    # Where a record moves sums that it is not in, those that it is in say nothing of their clipping.
    sums = [one for one in seen.sums if seen.others is None or one.kind in KINDS]
    over = max(sums, key=lambda one: one.most / one.bound, default=None)
    if over is not None and over.over:
        return failed(
            f"a record {over.kind} moves the sum of step {over.step} by {over.most:.4g}·C, most of it in {over.tensor} "
            f"({over.over} of {over.steps} steps)",
            f"{over.bound:g}·C at most",
            "let every record act through its own clipped gradient only: no statistics over a batch, one gradient a "
            "record however many copies it has, every batch clipped",
            step=over.step,
        )
    if seen.mixed is not None:
        one = seen.mixed
        return failed(
            f"a record {one.name} changes the clipped gradients of {one.size:.0f} other records of its batch "
            f"(step {one.step}; {one.steps} steps)", "gradients of others as they were, or C limits nothing",
            "let the loss of a record depend on this record only: no weights, means or negatives from its batch",
            step=one.step,
        )  # fmt: skip
    steps, most = sum(one.steps for one in seen.sums), max((one.most for one in seen.sums), default=0.0)
    found = f"a changed record was in {steps} sums of {seen.compared}, and moved them by {most:.3g}·C at most"
    if steps < _STEPS or most < _CLIPPED:
        return not_applicable(f"{found}, which tests little{_rest(seen)}")
    kinds = "; ".join(f"{one.kind}: {one.most:.4g}·C in {one.steps} steps" for one in seen.sums)
    return passed(f"records changed in {steps} sums ({kinds}){_rest(seen)}")


def replayed_sums(facts: Facts) -> Finding:
    """Sums of steps without the changed record are the same."""
    seen = _replay(facts)
    if seen.others is not None:
        one = seen.others
        return failed(
            f"a record moves the sum of step {one.step} without being in its batch, or through all other records, by "
            f"up to {one.size:.3g}·C ({one.steps} of {seen.absent} steps, {one.neighbour})",
            "the same sum",
            "compute nothing from the data that goes into steps (class weights, normalisation) unless it is noised and "
            "accounted for",
            step=one.step,
        )
    if not seen.absent:
        return not_applicable(f"a changed record was in every step that was compared, or in none{_rest(seen)}")
    return passed(f"{seen.absent} steps without a changed record have the same sums{_rest(seen)}")


def replayed_batches(facts: Facts) -> Finding:
    """Which of the records that were drawn a step is taken on is for nobody to choose by looking at them."""
    seen = _replay(facts)
    if seen.chosen is not None:
        one = seen.chosen
        return failed(
            f"step {one.step} is taken on other records of those that were drawn, with one of them changed "
            f"({one.steps} steps, {one.neighbour})", "all records that were drawn, or a choice that knows none of them",
            "take the step on what the sampler has drawn", step=one.step,
        )  # fmt: skip
    if seen.compared < _STEPS or facts.effective is not None:
        return not_applicable(f"{seen.compared} steps were compared{_rest(seen)}")
    return passed(f"as many records in {seen.compared} steps")


def replayed_state(facts: Facts) -> Finding:
    """Weights, buffers, the optimizer's state and its settings are the same, for all their inputs are."""
    seen = _replay(facts)
    if seen.states:
        first = seen.states[0]
        others = ", ".join(one.what for one in seen.states[1:])
        return failed(
            f"{_where(first)} differs by {first.size:.2g} of its size with the same noisy "
            f"gradients ({first.neighbour}{'; also ' + others if others else ''})",
            "the same: it may depend on the data through noisy gradients only",
            "let nothing that is computed from records reach it: no optimizer state from sums before noise, no "
            "regulariser or average of data, no learning rate from a private loss, no running statistics",
            step=first.step,
        )
    if seen.compared < _STEPS:
        return not_applicable(f"{seen.compared} steps were compared{_rest(seen)}")
    return passed(f"the same in {seen.compared} steps of {len(seen.neighbours)} runs{_rest(seen)}")


def replayed_steps(facts: Facts) -> Finding:
    """Records do not decide which steps are taken, and how many."""
    seen = _replay(facts)
    if seen.ends:
        return failed(
            f"records decide on the steps that are taken ({seen.ends[0]})", f"the same {seen.steps} steps in every run",
            "stop after a number of steps that is fixed beforehand, or by something that is noised and accounted for",
        )  # fmt: skip
    if seen.compared < _STEPS:
        return not_applicable(f"{seen.compared} steps were compared{_rest(seen)}")
    return passed(f"{seen.steps} steps in every run{_rest(seen)}")


def replayed_files(facts: Facts) -> Finding:
    """Checkpoints hold the same."""
    seen = _replay(facts)
    if seen.files:
        return failed(
            f"{seen.files[0]} is another one with other records and the same noisy gradients",
            "checkpoints that depend on the data through noisy gradients only",
            "write nothing into them that is computed from records without noise",
        )
    if seen.figures:
        return failed(
            f"{seen.figures[0]} is another one with other records: it looks like a figure for people",
            "nothing in what is released that is computed from records without noise",
            "keep it out of what you give away", basis=Basis.HINT,
        )  # fmt: skip
    if not seen.files_compared:
        return not_applicable(f"no checkpoint was compared{_rest(seen)}")
    return passed(f"{seen.files_compared} checkpoints hold the same arrays{_rest(seen)}")


def held(facts: Facts) -> bool:
    """Has a replay seen all of "nothing else that is released depends on the data", and found nothing?"""
    if facts.replay is None or not_compared(facts.replay):
        return False
    found = [answer(facts).status for answer in (replayed_sums, replayed_state, replayed_files, replayed_steps)]
    return Status.FAILED not in found and found[1] is found[3] is Status.PASSED


def _replay(facts: Facts) -> Replay:
    assert facts.replay is not None
    return facts.replay


def _where(one: Unlike) -> str:
    return f"{one.what} ({one.name}) at step {one.step}" if one.name else f"{one.what} at step {one.step}"


def _rest(seen: Replay) -> str:
    missing = not_compared(seen)
    return f"; not compared: {'; '.join(missing)}" if missing else ""


def not_compared(seen: Replay) -> list[str]:
    """What, and why."""
    return seen.untested if seen.before else [*seen.untested, "what is computed before training (--neighbours 2)"]
