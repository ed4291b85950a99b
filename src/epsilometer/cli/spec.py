"""`epsilometer init` and `epsilometer preview`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from epsilometer.cli.groups import grouped
from epsilometer.cli.manner import AsJson
from epsilometer.cli.output import emit_json, print_text, say, width
from epsilometer.cli.plan import PlanOptions, SpecOrTraining, chosen_plan
from epsilometer.errors import InvalidInput


def init(
    path: Annotated[Path, typer.Argument(help="Where to write it; - is stdout.")] = Path("audit.toml"),
    template: Annotated[
        str, typer.Option(help="default, black-box, one-run or early-stop: see `epsilometer list`.")
    ] = "default",
    as_json: AsJson = False,
) -> None:
    """Write a spec file with comments, to be changed to your needs.

    Examples:

    - `epsilometer init` writes audit.toml, with every key.

    - `epsilometer init my.toml --template black-box`
    """
    from epsilometer.auditing.templates import template as text_of

    try:
        text = text_of(template)
    except InvalidInput as error:
        if error.remedy:
            raise
        remedy = "an Opacus script needs no spec: epsilometer watch -- python train.py"
        raise InvalidInput("--template", template, error.expected, remedy) from None
    if str(path) == "-":
        print(text, end="")
        return
    if os.path.lexists(path):
        raise InvalidInput("PATH", str(path), "a file that does not exist yet", "name another, or move it away")
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise InvalidInput("PATH", str(path), f"a file to write to ({error.strerror})") from None
    if as_json:
        emit_json({"wrote": str(path), "template": template})
        return
    say(f"wrote {path}; next: epsilometer preview {path}, then epsilometer audit {path} --out results")


@grouped
def preview(spec: SpecOrTraining = None, *, options: PlanOptions, as_json: AsJson = False) -> None:
    """What a spec would show, without running it: cost (from a few trials), the best ε it could certify, power.

    Examples:

    - `epsilometer preview audit.toml`

    - `epsilometer preview audit.toml --trials 5000 --json`
    """
    from epsilometer.auditing import pilot_trials
    from epsilometer.auditing.preview import preview as previewed
    from epsilometer.report import describe_preview, duration

    chosen = chosen_plan(spec, options, quiet=False)
    plan, rivals = chosen.plan, chosen.adversaries
    say("playing a few trials, and working out what all could show …")
    seen = previewed(plan)
    if as_json:
        emit_json({"plan": plan.to_dict(), "plan_sha256": plan.fingerprint(), **seen.to_dict()})
        return
    print_text(describe_preview(seen, width()))
    if len(rivals) > 1:
        pilot = 2 * pilot_trials(plan) * len(rivals)
        seconds = duration(seen.seconds * pilot / seen.trials)
        print(
            f"pilot        before that, {pilot} trials choose between {len(rivals)} adversaries: about {seconds} more"
        )
