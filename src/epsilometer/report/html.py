"""A page as one HTML file: no script, no network, light and dark, on paper and on a telephone."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

from epsilometer.escape import visible
from epsilometer.figures.palette import DARK
from epsilometer.report.page import Page
from epsilometer.report.seal import EMPTY, sealed

if TYPE_CHECKING:
    from jinja2 import Environment


def render(page: Page) -> bytes:
    """The file. It holds a hash of itself, by which one can tell later whether somebody has changed it."""
    light = {name: colour for colour, (name, _) in DARK.items()}
    dark = dict(DARK.values())
    text = _environment().get_template("report.html").render(page=page, light=light, dark=dark, seal=EMPTY)
    return sealed(re.sub(r"\n\s*\n+", "\n", text).strip() + "\n")


@functools.cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("epsilometer.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters["svg"] = _svg
    return environment


def _shown(value: Any) -> Any:
    """Text from outside as it can be seen; what is markup already (a figure) stays."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return "\n".join(visible(line) for line in value.split("\n"))
    return value


def _svg(figure: Any, name: str) -> Any:
    from markupsafe import Markup

    from epsilometer.figures.canvas import svg

    return Markup(svg(figure, name))  # made here, and its words are escaped there
