"""Plans and results for people (text) and for programs (JSON, tables)."""

from epsilometer.report.document import to_json, versions
from epsilometer.report.files import write_results
from epsilometer.report.scores import judged_again, write_scores
from epsilometer.report.text import describe_preview, duration, summary

__all__ = [
    "describe_preview",
    "duration",
    "judged_again",
    "summary",
    "to_json",
    "versions",
    "write_results",
    "write_scores",
]
