"""Figures: their numbers as frozen objects, each with its table; matplotlib draws them, and is loaded then only."""

from epsilometer.figures.distribution import Distribution, Group
from epsilometer.figures.false_alarms import AlarmRate, FalseAlarms
from epsilometer.figures.figure import Drawable, Figure, Table
from epsilometer.figures.grid import Grid, panels
from epsilometer.figures.ladder import Ladder, Rung
from epsilometer.figures.lines import Lines, Series
from epsilometer.figures.path import Level, Path
from epsilometer.figures.pictures import Pictures
from epsilometer.figures.roc import Roc, RocCurve
from epsilometer.figures.scale import Scale, ScaleMark
from epsilometer.figures.scores import ScoreHistograms
from epsilometer.figures.side_by_side import RunMarks, SideBySide
from epsilometer.figures.trade_off import Curve, Point, TradeOff

FIGURES: dict[str, type[Figure]] = {
    one.kind: one
    for one in (
        Distribution,
        FalseAlarms,
        Grid,
        Ladder,
        Lines,
        Path,
        Pictures,
        Roc,
        Scale,
        SideBySide,
        TradeOff,
        ScoreHistograms,
    )
}

__all__ = [
    "FIGURES",
    "AlarmRate",
    "Curve",
    "Distribution",
    "Drawable",
    "FalseAlarms",
    "Figure",
    "Grid",
    "Group",
    "Ladder",
    "Level",
    "Lines",
    "Path",
    "Pictures",
    "Point",
    "Roc",
    "RocCurve",
    "RunMarks",
    "Rung",
    "Scale",
    "ScaleMark",
    "Series",
    "SideBySide",
    "Table",
    "TradeOff",
    "ScoreHistograms",
    "panels",
]
