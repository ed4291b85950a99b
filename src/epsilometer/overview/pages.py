"""Pages without scripts: all text from outside is escaped, and what cannot be seen in it is made visible."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jinja2
from markupsafe import Markup

from epsilometer import __version__
from epsilometer.escape import visible
from epsilometer.figures.canvas import svg
from epsilometer.figures.palette import DARK
from epsilometer.overview.comparison import ABSENT, Comparison, shown
from epsilometer.overview.folder import REPORT, Entry
from epsilometer.overview.listing import RUNNING, KnownRun
from epsilometer.report import duration
from epsilometer.rounding import down, up
from epsilometer.runs.directory import flat

SOON, LATER = 5, 60  # seconds until a page is loaded again: while something runs, and else


def index_page(folder: str, entries: Sequence[Entry], complete: bool) -> str:
    """All runs of a folder."""
    running = any(entry.run is not None and entry.run.state == RUNNING for entry in entries)
    refresh = SOON if running else LATER
    return _page("index", folder=folder, entries=entries, complete=complete, refresh=refresh, report=REPORT)


def run_page(entry: Entry) -> str:
    """All that is known of one run."""
    run = entry.run
    refresh = SOON if run is not None and run.state == RUNNING else LATER
    facts = () if run is None else _facts(run)
    settings = () if run is None else [(key, shown(value)) for key, value in flat(run.plan).items()]
    return _page("run", entry=entry, run=run, facts=facts, settings=settings, refresh=refresh)


def error_page(code: int, words: str) -> str:
    return _page("error", code=code, words=words, refresh=None)


def comparison_page(comparison: Comparison) -> str:
    """Runs side by side, in one file with its picture."""
    figure = comparison.figure()
    return _page(
        "comparison",
        names=comparison.names,
        found=comparison.rows(),
        settings=comparison.differences(),
        remarks=comparison.remarks,
        picture=Markup(svg(figure, "runs")),  # its text is escaped where it is drawn
        reading=figure.reading,
        table=figure.table(),
        refresh=None,
    )


def _facts(run: KnownRun) -> list[tuple[str, str]]:
    lower = run.lower or {}
    verdict = run.verdict or {}
    told: list[tuple[str, str | None]] = [
        ("verdict", run.outcome and f"{run.outcome}: {verdict.get('reason', '')}"),
        ("faults", "injected on purpose" if run.has_faults else None),
        ("state", run.state),
        (run.counted, run.progress),
        ("adversary", run.adversary),
        ("claimed", None if run.claimed is None else f"ε = {run.promise} at δ = {run.delta:g} ({run.neighbours})"),
        ("theory", None if run.upper is None else f"ε ≤ {up(run.upper)}"),
        ("lower bound", None if run.proved is None else f"ε ≥ {down(run.proved)} ({lower['kind']})"),
        ("if it is DP-SGD", None if run.family in (None, run.proved) else f"ε ≥ {down(run.family)}"),
        ("time", duration(run.seconds)),
        ("begun", run.begun),
        ("plan", run.fingerprint),
        *(("remark", remark) for remark in run.remarks),
    ]
    return [(label, text) for label, text in told if text]


def _page(template: str, **values: Any) -> str:
    return _environment().get_template(f"{template}.html").render(version=__version__, style=_style(), **values)


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"duration": duration, "at_least": _at_least}
    return environment


def _at_least(value: float | None) -> str:
    return ABSENT if value is None else down(value)


@functools.cache
def _style() -> Markup:
    light = "".join(f"--{name}:{colour};" for colour, (name, _) in DARK.items())
    dark = "".join(f"--{name}:{colour};" for name, colour in DARK.values())
    return Markup(
        f":root{{color-scheme:light dark;--paper:#fff;{light}}}\n"
        f"@media (prefers-color-scheme:dark){{:root{{--paper:#14181d;{dark}}}}}\n"
        "body{margin:1.5rem auto;padding:0 1rem;max-width:72rem;font:1rem/1.5 sans-serif;color:var(--ink);"
        "background:var(--paper)}\n"
        "h1{font-size:1.4rem;overflow-wrap:anywhere}h2{font-size:1.1rem}a{color:var(--certified)}\n"
        ".wide{overflow-x:auto}table{border-collapse:collapse}caption{text-align:left;color:var(--muted)}\n"
        "th,td{padding:.25rem .75rem .25rem 0;text-align:left;vertical-align:top;overflow-wrap:break-word;"
        "border-bottom:1px solid var(--grid)}thead th,.whole{white-space:nowrap}\n"
        "tbody th{min-width:9rem;max-width:24rem}tbody th,.text{overflow-wrap:anywhere}progress{width:6rem}\n"
        ".violated{color:var(--claim);font-weight:bold}.muted,footer{color:var(--muted)}svg{max-width:100%;height:auto}\n"
    )
