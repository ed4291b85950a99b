"""An audit's result for people (text) and for programs (JSON)."""

from epsilometer.report.document import SCHEMA, to_json, versions
from epsilometer.report.text import summary

__all__ = ["SCHEMA", "summary", "to_json", "versions"]
