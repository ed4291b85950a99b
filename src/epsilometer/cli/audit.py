"""`epsilometer audit`."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from epsilometer.cli.driver import Means, Players, Study, again, conduct
from epsilometer.cli.groups import grouped
from epsilometer.cli.manner import Manner
from epsilometer.cli.outlets import OutletOptions, telling, this_command
from epsilometer.cli.output import Interrupted, say
from epsilometer.cli.plan import Chosen, PlanOptions, SpecOrTraining, chosen_plan
from epsilometer.cli.progress import downloads

if TYPE_CHECKING:
    from epsilometer.auditing import AuditResult, Plan
    from epsilometer.runs import Executor, Progress


@grouped
def audit(
    spec: SpecOrTraining = None,
    *,
    options: PlanOptions,
    out: Annotated[
        Path | None,
        typer.Option(help="Directory for trials, result.json, scores.csv, report.html; a stopped audit goes on there."),
    ] = None,
    players: Players,
    outlets: OutletOptions,
    manner: Manner,
) -> None:
    """Audit a training, your own or an embedded DP-SGD: theory, attack, verdict.

    Examples:

    - `epsilometer audit mymodule:train --data my.npz --epsilon 3 --delta 1e-5` audits your own `train(data, seed)`.

    - `epsilometer audit mymodule:train --data my.npz --sample-rate 0.1 --noise-multiplier 2 --steps 100` holds it to
      the curve of what it says it does, which needs far fewer trials; `--epochs 15 --batch-size 256 --records 60000`
      may stand in place of rate and steps.

    - `epsilometer audit mymodule:train --data my.npz --epsilon 3 --record mine.npz` asks whether a record of your own,
      which comes to the data, can be told from the model; `--record 17` asks that of row 17.

    - `epsilometer audit` audits the embedded default: logistic regression on digits, claimed ε = 4.

    - `epsilometer audit --noise-scale 0.5` audits the same training with half of its noise: violated.

    - `epsilometer audit --bound eprocess --noise-scale 0.5` stops as soon as the claim is refuted.

    - `epsilometer audit --adversary canaries` trains once, with many canaries.

    - `epsilometer audit my.toml --trials 1000 --out results --json`; the same again continues if it was stopped.

    - `epsilometer audit my.toml`, where the spec says `copies = [1, 2, 4, 8]`, lets a pilot choose.

    - `epsilometer audit my.toml --out results --executor ray --address 10.0.0.1:6379`

    - `epsilometer audit my.toml --require consistent --summary "$GITHUB_STEP_SUMMARY" --junit audit.xml` is for a CI.
    """
    from epsilometer.report import finding_of, summary, to_json, write_results

    others = telling(outlets)
    chosen = chosen_plan(spec, options, quiet=manner.quiet)
    study = Study(
        plan=partial(_decided, chosen, out),
        play=partial(_played, chosen, options.data_dir, manner.quiet),
        document=to_json,
        text=summary,
        write=lambda place, result: write_results(place, result, this_command()),
    )
    result = conduct(study, out, players, manner)
    others.finish(lambda command: finding_of(result, command), result.verdict.outcome)


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
