"""An audit's result for people (text) and for programs (JSON)."""

from epsilometer.report.document import to_json, versions
from epsilometer.report.text import summary

__all__ = ["summary", "to_json", "versions"]
