"""Who else is told of a verdict, and what exit code it has: options of `audit` and `bound` for a CI."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from epsilometer.cli.output import TOO_WEAK, say
from epsilometer.errors import EpsilometerError, InvalidInput

if TYPE_CHECKING:
    from epsilometer.report import Finding, Outlets

CONSISTENT = "consistent"

_OPTIONS = ("--summary", "--junit", "--model-card", "--mlflow", "--require")


@dataclass(frozen=True)
class OutletOptions:
    """Options: who else is told, and what is required."""

    require: Annotated[
        str | None,
        typer.Option(
            help="consistent: exit code 4 unless the audit was strong enough to say so (1 stays for violated)."
        ),
    ] = None
    summary_file: Annotated[
        Path | None,
        typer.Option(
            "--summary", help="Markdown file to add a section to, e.g. a CI's job summary; the rest of it stays."
        ),
    ] = None
    junit: Annotated[
        Path | None, typer.Option("--junit", help="JUnit XML file: violated fails, inconclusive is skipped.")
    ] = None
    model_card: Annotated[
        Path | None,
        typer.Option("--model-card", help="Markdown file to add a section for a model card to; the rest of it stays."),
    ] = None
    mlflow: Annotated[
        str | None,
        typer.Option("--mlflow", help="Log to a run of this MLflow experiment (pip install 'epsilometer[mlflow]')."),
    ] = None


@dataclass(frozen=True)
class Telling:
    """Files and an experiment that are told, and whether less than `consistent` will do."""

    outlets: Outlets | None
    experiment: str | None
    require_consistent: bool

    def finish(self, finding: Callable[[str], Finding], outcome: str | None) -> None:
        """Tell everybody, and exit: with 1 if violated, with 4 if more was required than was found.

        `finding` is made from the command that would play it again. Whoever cannot be told must not hide an accusation.
        """
        try:
            self._tell(finding)
        except EpsilometerError as error:
            if outcome != "violated":
                raise
            say(f"epsilometer: {error}")
        if outcome == "violated":
            raise typer.Exit(1)
        if self.require_consistent and outcome != CONSISTENT:
            say(f"epsilometer: --require consistent, but the audit is {outcome}: it was too weak to say more")
            raise typer.Exit(TOO_WEAK)

    def _tell(self, finding: Callable[[str], Finding]) -> None:
        if self.outlets is None and self.experiment is None:
            return
        told = finding(this_command())
        if self.outlets is not None:
            try:
                written = self.outlets.write(told, require_consistent=self.require_consistent)
            except InvalidInput as error:
                raise error.renamed(f"--{error.argument}") from None
            if written:
                say(f"wrote {' and '.join(map(str, written))}")
        if self.experiment is not None:
            from epsilometer.report import log_to_mlflow

            say(f"logged to MLflow: experiment {self.experiment}, run {log_to_mlflow(told, self.experiment)}")


def telling(options: OutletOptions) -> Telling:
    """The same as options say it, refused before anything is played if it could not be written afterwards."""
    require, experiment = options.require, options.mlflow
    if require not in (None, CONSISTENT):
        raise InvalidInput("--require", require, CONSISTENT, "leave it out, if inconclusive will do")
    outlets = None
    if options.summary_file is not None or options.junit is not None or options.model_card is not None:
        from epsilometer.report import Outlets

        try:
            outlets = Outlets(options.summary_file, options.junit, options.model_card)
        except InvalidInput as error:
            raise error.renamed(f"--{error.argument}") from None
    if experiment is not None:
        from epsilometer.report import require_mlflow

        if not experiment.strip():
            raise InvalidInput("--mlflow", experiment, "the name of an experiment")
        require_mlflow()
    return Telling(outlets, experiment, require is not None)


def this_command() -> str:
    """What was typed, without who is told of it."""
    return shlex.join(["epsilometer", *without_outlets(sys.argv[1:])])


def without_outlets(arguments: list[str]) -> list[str]:
    """The command without who is told of it: what is left gives the same result.

    >>> without_outlets(["audit", "--summary", "a.md", "my.toml", "--junit=b.xml", "--seed", "1"])
    ['audit', 'my.toml', '--seed', '1']
    """
    kept, words = [], iter(arguments)
    for word in words:
        if word in _OPTIONS:
            next(words, None)
        elif word.partition("=")[0] not in _OPTIONS:
            kept.append(word)
    return kept
