"""Figures → SVG: the same numbers are the same bytes, letters stay letters, and colours follow the page."""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

from epsilometer.escape import visible
from epsilometer.figures.figure import WIDTH, Figure
from epsilometer.figures.palette import DARK, GRID, INK, MUTED

LEGEND_ROW = 0.22  # inches
_SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "epsilometer",
    "text.parse_math": False,  # names of people's own may have dollars
    "axes.formatter.use_mathtext": False,
    "axes.unicode_minus": True,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.0,
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.grid": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.facecolor": "none",
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "path.simplify": False,
    "svg.image_inline": True,
}
_FONT = re.compile(r"font: ([\d.]+px) 'DejaVu Sans', [^;\"]*")


def svg(figure: Figure, name: str = "figure", *, alone: bool = False) -> str:
    """The picture for a page, with `name` before every id; `alone`: as a file of its own, with a background."""
    from matplotlib.figure import Figure as Canvas

    parts = figure.parts()
    columns = 1 if len(parts) == 1 else 2
    rows = max(1, math.ceil(len(parts) / columns))
    with _settings():
        drawn = Canvas(layout="constrained", facecolor="white" if alone else "none")
        cells: list[Any] = list(drawn.subplots(rows, columns, squeeze=False).ravel()) if parts else []
        for ax, part in zip(cells, parts, strict=False):
            part.draw(ax)
            if part is not figure:
                ax.set_title(part.title)
        for ax in cells[len(parts) :]:
            ax.set_axis_off()
        legend = _legend(drawn, columns)
        tallest = max((part.height for part in parts), default=1.0)
        drawn.set_size_inches(WIDTH * (1.0 if columns == 1 else 1.6), rows * tallest + LEGEND_ROW * legend)
        text = io.StringIO()
        drawn.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _for_pages(text.getvalue(), figure, name, alone)


def axes_for(figure: Figure, ax: Any = None) -> Any:
    """A figure in matplotlib's own axes; in new ones, of pyplot, if none are given."""
    parts = figure.parts()
    if len(parts) != 1 and ax is not None:
        from epsilometer.errors import InvalidInput

        raise InvalidInput("ax", "axes", f"nothing: {figure.title!r} has {len(parts)} axes of its own")
    with _settings():
        if ax is None:
            from matplotlib import pyplot

            height = max((part.height for part in parts), default=3.0) + LEGEND_ROW
            _, made = pyplot.subplots(
                len(parts), 1, figsize=(WIDTH, height * len(parts)), squeeze=False, layout="constrained"
            )
            cells = list(made.ravel())
        else:
            cells = [ax]
        for cell, part in zip(cells, parts, strict=True):
            part.draw(cell)
            cell.set_title(part.title)
            if cell.get_legend_handles_labels()[1]:
                cell.legend()
    return cells[0] if len(parts) == 1 else cells


@contextmanager
def _settings() -> Iterator[None]:
    import matplotlib as mpl

    with mpl.rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # the browser has other fonts
        yield


def _legend(drawn: Any, columns: int) -> int:
    """One legend for all axes, below them; how many rows it takes."""
    known: dict[str, Any] = {}
    for ax in drawn.axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            known.setdefault(label, handle)
    if not known:
        return 0
    longest = max(map(len, known))
    across = max(1, min(len(known), int(88 * (1.0 if columns == 1 else 1.6) / (longest + 9))))
    drawn.legend(list(known.values()), list(known), loc="outside lower center", ncols=across, fontsize=8.5)
    return math.ceil(len(known) / across)


def _for_pages(text: str, figure: Figure, name: str, alone: bool) -> str:
    """matplotlib's SVG as a part of a page: a name and a title, ids of its own, colours that a style sheet can set."""
    # Whatever names hold that cannot be seen, or be in XML, is written out: matplotlib's own part has nothing of that.
    text = "\n".join(visible(line) for line in text.split("\n"))
    body = text[text.index("<svg") :]
    head, body = body.split(">", 1)
    box = re.search(r'viewBox="([^"]*)"', head)
    assert box is not None
    body = re.sub(r"\s*<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r'<defs>\s*<style type="text/css">.*?</style>\s*</defs>', "", body, count=1, flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = body.replace("url(#", f"url(#{name}-").replace('xlink:href="#', f'href="#{name}-')
    body = body.replace('xlink:href="data:', 'href="data:')
    body = _FONT.sub(r"font-size: \1; font-family: inherit", body)
    for colour, (variable, _) in DARK.items():
        body = body.replace(colour, f"var(--{variable}, {colour})")
    title, words = _xml(figure.title), _xml(figure.reading)
    label = f'role="img" aria-labelledby="{name}-title"' + (f' aria-describedby="{name}-desc"' if words else "")
    own = 'font-family="sans-serif" stroke-linejoin="round" stroke-linecap="butt"'
    size = f' width="{float(box.group(1).split()[2]) * 4 / 3:.0f}"' if alone else ""
    start = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box.group(1)}"{size} {own} {label}>'
    described = f'<desc id="{name}-desc">{words}</desc>' if words else ""
    return f'{start}\n<title id="{name}-title">{title}</title>{described}{body.rstrip()}\n'


def _xml(text: str) -> str:
    return escape(visible(text))
