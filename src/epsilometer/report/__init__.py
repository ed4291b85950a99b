"""Plans and results for people (text, Markdown) and for programs (JSON, JUnit, tables, MLflow)."""

import importlib
from typing import TYPE_CHECKING

from epsilometer.versions import versions

# Names and the modules they live in, loaded on first use: a bound's headline needs no audit.
_HOMES = {
    "Finding": "finding",
    "Headline": "headline",
    "Outlets": "outlets",
    "describe_preview": "text",
    "duration": "text",
    "finding_of": "finding",
    "headline_of": "headline",
    "instances_summary": "instances",
    "instances_to_json": "instances",
    "job_summary": "markdown",
    "judged_again": "scores",
    "junit_xml": "junit",
    "log_to_mlflow": "to_mlflow",
    "membership_summary": "membership",
    "membership_to_json": "membership",
    "model_card": "markdown",
    "property_summary": "property",
    "property_to_json": "property",
    "reconstruction_summary": "reconstruction",
    "reconstruction_to_json": "reconstruction",
    "require_mlflow": "to_mlflow",
    "summary": "text",
    "to_json": "document",
    "write_instances": "instances",
    "write_membership": "membership",
    "write_membership_scores": "membership",
    "write_property": "property",
    "write_reconstruction": "reconstruction",
    "write_results": "files",
    "write_scores": "scores",
}
__all__ = [
    "Finding",
    "Headline",
    "Outlets",
    "describe_preview",
    "duration",
    "finding_of",
    "headline_of",
    "instances_summary",
    "instances_to_json",
    "job_summary",
    "judged_again",
    "junit_xml",
    "log_to_mlflow",
    "membership_summary",
    "membership_to_json",
    "model_card",
    "property_summary",
    "property_to_json",
    "reconstruction_summary",
    "reconstruction_to_json",
    "require_mlflow",
    "summary",
    "to_json",
    "versions",
    "write_instances",
    "write_membership",
    "write_membership_scores",
    "write_property",
    "write_reconstruction",
    "write_results",
    "write_scores",
]

if TYPE_CHECKING:
    from epsilometer.report.document import to_json
    from epsilometer.report.files import write_results
    from epsilometer.report.finding import Finding, finding_of
    from epsilometer.report.headline import Headline, headline_of
    from epsilometer.report.instances import instances_summary, instances_to_json, write_instances
    from epsilometer.report.junit import junit_xml
    from epsilometer.report.markdown import job_summary, model_card
    from epsilometer.report.membership import (
        membership_summary,
        membership_to_json,
        write_membership,
        write_membership_scores,
    )
    from epsilometer.report.outlets import Outlets
    from epsilometer.report.property import property_summary, property_to_json, write_property
    from epsilometer.report.reconstruction import reconstruction_summary, reconstruction_to_json, write_reconstruction
    from epsilometer.report.scores import judged_again, write_scores
    from epsilometer.report.text import describe_preview, duration, summary
    from epsilometer.report.to_mlflow import log_to_mlflow, require_mlflow


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(importlib.import_module(f"epsilometer.report.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'epsilometer.report' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
