"""Several runs: those of a folder listed, compared, and shown on a page."""

from epsilometer.several.comparison import Comparison, Setting, compare
from epsilometer.several.listing import KnownRun, runs_in
from epsilometer.several.places import places_below, runs_at

__all__ = ["Comparison", "KnownRun", "Setting", "compare", "places_below", "runs_at", "runs_in"]
