"""What `epsilometer audit` plays: a pilot where there is a choice of adversaries, the trials, the models' accuracy."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from epsilometer.cli.driver import Means, Study, again
from epsilometer.cli.outlets import this_command
from epsilometer.cli.output import Interrupted, say
from epsilometer.cli.plan import Chosen
from epsilometer.cli.progress import downloads

if TYPE_CHECKING:
    from epsilometer.auditing import AuditResult, Plan
    from epsilometer.runs import Executor, Progress


def audit_study(chosen: Chosen, out: Path | None, data_dir: Path | None, quiet: bool) -> Study[Plan, AuditResult]:
    """The study of that plan."""
    from epsilometer.report import summary, to_json, write_results

    return Study(
        plan=partial(_decided, chosen, out),
        play=partial(_played, chosen, data_dir, quiet),
        document=to_json,
        text=summary,
        write=lambda place, result: write_results(place, result, this_command()),
    )


def _played(chosen: Chosen, data_dir: Path | None, quiet: bool, plan: Plan, means: Means) -> AuditResult:
    """The audit; and the accuracy of its models, where a report will tell it."""
    from epsilometer.auditing import run
    from epsilometer.auditing.utility import held_out_part, with_accuracy

    result = run(plan, means.told, store=means.store, executor=means.executor)
    if not means.kept:
        return result
    held_out = partial(held_out_part, chosen.spec, plan, data_dir, downloads(quiet))
    return with_accuracy(result, means.told, test=held_out, store=means.store, executor=means.executor)


def _decided(chosen: Chosen, out: Path | None, told: Progress | None, executor: Executor) -> Plan:
    """The plan with one of the adversaries: that of the run in `out`, or else the one that a pilot chooses."""
    try:
        return _after_pilot(chosen, out, told, executor)
    except KeyboardInterrupt:
        raise Interrupted(f"the pilot is not finished; {again(out is not None)}") from None


def _after_pilot(chosen: Chosen, out: Path | None, told: Progress | None, executor: Executor) -> Plan:
    from epsilometer.auditing import choose_adversary
    from epsilometer.runs import begun_in, pilot_directory

    plan, rivals = chosen.plan, chosen.adversaries
    if len(rivals) == 1:
        return plan
    plans = [replace(plan, adversary=rival) for rival in rivals]
    begun = None if out is None else begun_in(out)
    if begun is not None:
        return next((one for one in plans if one.fingerprint() == begun), plan)
    with nullcontext() if out is None else pilot_directory(out) as store:
        choice = choose_adversary(plan, rivals, progress=told, store=store, executor=executor)
    expected = ", ".join(f"{one.adversary}: ε ≥ {one.expected:.3g}" for one in choice.candidates)
    say(f"a pilot of {len(choice.chosen.pilot.out_scores)} trials per world expects, with caution, {expected}")
    return choice.plan
