"""Several runs: those of a folder listed, compared, and shown on a page."""

from epsilometer.overview.comparison import Comparison, Setting, compare
from epsilometer.overview.listing import KnownRun, runs_in
from epsilometer.overview.places import places_below, runs_at

__all__ = ["Comparison", "KnownRun", "Setting", "compare", "places_below", "runs_at", "runs_in"]
