"""MLflow, the real one, with a store of its own. Without the extra these tests are skipped, and say so."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from noisy_sums import audited

from epsilometer.auditing import AuditResult
from epsilometer.errors import InvalidInput
from epsilometer.report import log_to_mlflow, require_mlflow

MISSING = importlib.util.find_spec("mlflow") is None
needs_mlflow = pytest.mark.skipif(MISSING, reason="MLflow is not installed: pip install 'epsilometer[mlflow]'")
pytestmark = pytest.mark.filterwarnings("ignore")  # MLflow and what it imports


@pytest.fixture(scope="module")
def result() -> AuditResult:
    return audited()


@pytest.mark.skipif(not MISSING, reason="MLflow is installed")
def test_without_mlflow_one_line_says_how_to_get_it(result: AuditResult) -> None:
    with pytest.raises(InvalidInput, match=r"pip install 'epsilometer\[mlflow\]'"):
        require_mlflow()
    with pytest.raises(InvalidInput, match="mlflow to be installed"):
        log_to_mlflow(result, "privacy")


@needs_mlflow
def test_a_run_has_params_metrics_tags_and_the_report(
    result: AuditResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import mlflow

    monkeypatch.chdir(tmp_path)
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    client = mlflow.MlflowClient(uri)
    for run_id in (log_to_mlflow(result, "privacy", tracking_uri=uri), _existing(client)):
        assert log_to_mlflow(result, run_id=run_id, tracking_uri=uri) == run_id  # the same again changes nothing
        data = client.get_run(run_id).data
        assert data.params["epsilometer.trials"] == "25"
        assert data.params["epsilometer.adversary"].startswith("clipbkd")
        assert data.metrics["epsilometer.epsilon_lower"] == result.lower_bound.epsilon
        assert data.metrics["epsilometer.epsilon_claimed"] == result.plan.claimed_epsilon
        assert data.tags["epsilometer.verdict"] == result.verdict.outcome.value
        assert data.tags["epsilometer.plan_sha256"] == result.plan.fingerprint()
        path = client.download_artifacts(run_id, "epsilometer", str(tmp_path))
        document = json.loads((Path(path) / "result.json").read_bytes())
        assert document["verdict"] == result.verdict.outcome.value
        assert {one.name for one in Path(path).iterdir()} == {"result.json", "summary.md", "model-card.md"}
    assert mlflow.active_run() is None


def _existing(client: object) -> str:
    """A run of a training's own."""
    return str(client.create_run(client.create_experiment("training")).info.run_id)  # type: ignore[attr-defined]


@needs_mlflow
def test_either_an_experiment_or_a_run(result: AuditResult) -> None:
    with pytest.raises(InvalidInput, match="either an experiment"):
        log_to_mlflow(result)
