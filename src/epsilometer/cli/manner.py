"""Options: how a command speaks. Apart from `output`, which the supervisor loads before typer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

Quiet = Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]


@dataclass(frozen=True)
class Manner:
    """Whether progress is told, and whether results are for programs."""

    quiet: Quiet = False
    as_json: AsJson = False
