"""`epsilometer audit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from epsilometer.cli.audit_study import audit_study
from epsilometer.cli.driver import Players, conduct
from epsilometer.cli.groups import grouped
from epsilometer.cli.manner import Manner
from epsilometer.cli.outlets import OutletOptions, telling
from epsilometer.cli.plan import PlanOptions, SpecOrTraining, chosen_plan


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
    from epsilometer.report import finding_of

    others = telling(outlets)
    chosen = chosen_plan(spec, options, quiet=manner.quiet)
    result = conduct(audit_study(chosen, out, options.data_dir, manner.quiet), out, players, manner)
    others.finish(lambda command: finding_of(result, command), result.verdict.outcome)
