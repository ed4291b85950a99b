"""Scripts under test: run once and watched, by the same fixture as functions."""

from __future__ import annotations

from pathlib import Path

import pytest

from epsilometer.errors import InconclusiveAudit, InvalidInput
from epsilometer.testing.private import AssertPrivate, NotPrivate

SCRIPTS = Path(__file__).parents[1] / "watching" / "scripts"


@pytest.fixture
def assert_script() -> tuple[AssertPrivate, dict[str, object]]:
    told: dict[str, object] = {}
    return AssertPrivate(folders=(SCRIPTS,), record=told.__setitem__), told


def test_a_script_without_half_of_its_noise_fails(assert_script: tuple[AssertPrivate, dict[str, object]]) -> None:
    assert_private, told = assert_script
    with pytest.raises(NotPrivate, match=r"violated: noise is broken at step (.|\n)*epsilometer watch"):
        assert_private("digits.py", command=["--noise-scale", "0.5", "--steps", "8"])
    assert told["epsilometer.verdict"] == "violated"
    assert told["epsilometer.steps"] == 8


@pytest.mark.full
def test_a_right_script_passes_and_is_held_to_its_epsilon(
    assert_script: tuple[AssertPrivate, dict[str, object]],
) -> None:
    assert_private, told = assert_script
    words = ["--steps", "30"]
    assert_private("digits.py", command=words, epsilon=5.0, delta=1e-5)
    assert told["epsilometer.verdict"] == "consistent"
    with pytest.raises(NotPrivate, match=r"amounts to ε = .* more than 0.1"):
        assert_private("digits.py", command=words, epsilon=0.1, delta=1e-5)
    with pytest.raises(InvalidInput, match="ended with 3"):
        assert_private("digits.py", command=[*words, "--exit", "3"])
    with pytest.warns(InconclusiveAudit):
        assert_private("digits.py", command=["--steps", "1"])


def test_what_a_script_cannot_be_given(assert_script: tuple[AssertPrivate, dict[str, object]]) -> None:
    assert_private, _ = assert_script
    with pytest.raises(InvalidInput, match="train_or_script"):
        assert_private("nowhere.py")
    with pytest.raises(InvalidInput, match="data"):
        assert_private("digits.py", data=([[1.0]], [0]))
