"""A finding as a run of MLflow (the extra `mlflow`): params, metrics, tags, and the report as artifacts."""

from __future__ import annotations

import json
import math
from typing import Any

from epsilometer import __version__
from epsilometer.auditing import AuditResult
from epsilometer.errors import EpsilometerError, InvalidInput
from epsilometer.report.finding import Finding, finding_of
from epsilometer.report.markdown import job_summary, model_card

_LONGEST = 500  # characters of a param that every server takes


class MlflowFailed(EpsilometerError):
    """MLflow could not be told; the finding itself is not touched by that."""


def require_mlflow() -> None:
    """Fail before the trials, not after them."""
    _mlflow()


def log_to_mlflow(
    found: AuditResult | Finding,
    experiment: str | None = None,
    *,
    run_id: str | None = None,
    tracking_uri: str | None = None,
) -> str:
    """Log to a new run of an experiment, or to the run `run_id` (such as that of the training itself); the run's id.

    Where the server is, MLflow knows itself (`MLFLOW_TRACKING_URI`), unless it is said here. Neither the active run nor
    the active experiment of the process is changed.
    """
    finding = finding_of(found) if isinstance(found, AuditResult) else found
    mlflow = _mlflow()
    if (experiment is None) == (run_id is None):
        raise InvalidInput("experiment", experiment, "either an experiment's name or the id of a run")
    try:
        client = mlflow.MlflowClient(tracking_uri)
        target = run_id or _new_run(client, str(experiment), finding.title)
        entities = mlflow.entities
        client.log_batch(
            target,
            metrics=[entities.Metric(name, value, _now(), 0) for name, value in _metrics(finding).items()],
            params=[entities.Param(name, value[:_LONGEST]) for name, value in _params(finding).items()],
            tags=[entities.RunTag(name, value) for name, value in _tags(finding).items()],
        )
        client.log_text(target, json.dumps(finding.document, indent=2), "epsilometer/result.json")
        client.log_text(target, job_summary(finding), "epsilometer/summary.md")
        client.log_text(target, model_card(finding), "epsilometer/model-card.md")
        if run_id is None:
            client.set_terminated(target)
    except (mlflow.exceptions.MlflowException, OSError) as error:
        raise MlflowFailed(f"MLflow could not be told: {' '.join(str(error).split())[:200]}") from None
    return str(target)


def _new_run(client: Any, experiment: str, name: str) -> str:
    known = client.get_experiment_by_name(experiment)
    where = client.create_experiment(experiment) if known is None else known.experiment_id
    return str(client.create_run(where, run_name=name).info.run_id)


def _params(finding: Finding) -> dict[str, str]:
    low = finding.lower
    told = {
        "training": finding.training or finding.name,
        "claim": finding.claim,
        "delta": f"{low.delta:g}",
        "confidence": f"{low.confidence:.12g}",
        "adversary": finding.adversary,
        "threat_model": finding.threat_model,
        "method": low.method,
        "trials": str(finding.trial_count),
        "seed": None if finding.seed is None else str(finding.seed),
        "command": finding.command,
    }
    return {f"epsilometer.{name}": value for name, value in told.items() if value}


def _metrics(finding: Finding) -> dict[str, float]:
    numbers = {
        "epsilon_lower": finding.lower.epsilon,
        "epsilon_claimed": finding.claimed_epsilon,
        "epsilon_upper": finding.upper_epsilon,
        "power": finding.power,
        "blind_spot": finding.blind_spot,
        "seconds": finding.seconds,
    }
    return {f"epsilometer.{n}": float(v) for n, v in numbers.items() if v is not None and math.isfinite(v)}


def _tags(finding: Finding) -> dict[str, str]:
    plan = finding.document.get("plan_sha256")
    tags = {"verdict": finding.outcome, "reason": finding.reason, "question": finding.key, "plan_sha256": plan}
    tags["version"] = __version__
    return {f"epsilometer.{name}": value for name, value in tags.items() if value}


def _now() -> int:
    import time

    return int(1000 * time.time())


def _mlflow() -> Any:
    try:
        import mlflow
        import mlflow.entities
        import mlflow.exceptions
    except ImportError:
        remedy = "pip install 'epsilometer[mlflow]'"
        raise InvalidInput("mlflow", "missing", "mlflow to be installed", remedy) from None
    return mlflow
