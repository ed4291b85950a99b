"""Published tables and figures, rerun with one command: what the paper has beside what was measured."""

from epsilometer.errors import unknown_name
from epsilometer.reproductions.annamalai_init import ANNAMALAI
from epsilometer.reproductions.cebere_gcr import GCR
from epsilometer.reproductions.directory import VIEWS, reproduction_directory, write_rows
from epsilometer.reproductions.jagielski_appendix_b import APPENDIX_B
from epsilometer.reproductions.jagielski_figure2 import FIGURE2
from epsilometer.reproductions.jagielski_table2 import TABLE2
from epsilometer.reproductions.ladder import ladder, ladder_of
from epsilometer.reproductions.nasr_ladder import NASR_LADDER
from epsilometer.reproductions.reproduction import Cell, Reproduction, Row, Session

REPRODUCTIONS: dict[str, Reproduction] = {
    one.name: one for one in (TABLE2, FIGURE2, APPENDIX_B, NASR_LADDER, GCR, ANNAMALAI)
}


def reproduction_named(name: str) -> Reproduction:
    """The reproduction of that name."""
    if name not in REPRODUCTIONS:
        raise unknown_name("NAME", name, REPRODUCTIONS)
    return REPRODUCTIONS[name]


__all__ = [
    "REPRODUCTIONS",
    "Cell",
    "Reproduction",
    "Row",
    "Session",
    "VIEWS",
    "ladder",
    "ladder_of",
    "reproduction_directory",
    "reproduction_named",
    "write_rows",
]
