"""Several runs: those of a folder listed, compared, and shown on a page."""

from epsilometer.several.comparison import Comparison, Setting, compare
from epsilometer.several.listing import KnownRun, runs_in

__all__ = ["Comparison", "KnownRun", "Setting", "compare", "runs_in"]
