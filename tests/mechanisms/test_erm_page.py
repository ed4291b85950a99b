"""What docs/erm.md says is true: its code runs, and LASSO is as unstable as its example shows."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_pages_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "erm.md").read_text(), flags=re.DOTALL)
    exec(compile(first, "erm.md", "exec"), {})
    assert capsys.readouterr().out.splitlines() == ["(ε = 1, δ = 1e-05), replace", "True"]
    exec(compile(second, "erm.md", "exec"), {})
    found, wrong = capsys.readouterr().out.splitlines()
    assert found.endswith(" 1.0 False")
    assert wrong == "True"


def test_lasso_is_not_stable_and_ridge_is() -> None:
    spec = importlib.util.spec_from_file_location("lasso_example", ROOT / "examples" / "lasso_is_not_stable.py")
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    few, many = example.moved(20), example.moved(500)
    assert many[0] == pytest.approx(0.5665, abs=1e-3)
    assert few[0] < 1.1 * many[0]
    assert few[1] > 15 * many[1]
