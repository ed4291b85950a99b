"""Scripts to be watched are no tests, and tests are no script: each begins as if nothing had been trained before."""

import weakref

import pytest

collect_ignore = ["heldout", "scripts"]


@pytest.fixture(autouse=True)
def nothing_trained_before(monkeypatch: pytest.MonkeyPatch) -> None:
    from epsilometer.watching.frameworks.opacus import attach, spending

    monkeypatch.setattr(spending, "_ALL", weakref.WeakSet())
    monkeypatch.setattr(attach, "_STRANGERS", [])
