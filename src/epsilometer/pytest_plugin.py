"""The fixture `assert_private`, which pytest finds by itself wherever Epsilometer is installed.

Every run of pytest there imports this module, whether or not a test wants an audit: it must stay small, and what an
audit needs is imported when a test asks for the fixture.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import pytest

from epsilometer.errors import InconclusiveAudit

if TYPE_CHECKING:
    from epsilometer.testing.private import AssertPrivate

__all__ = ["InconclusiveAudit", "assert_private", "pytest_addoption"]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("epsilometer", "privacy audits (the fixture assert_private)")
    group.addoption(
        "--epsilometer-trials",
        type=_whole,
        metavar="N",
        help="play N trials of each world in every audit, whatever its test says of trials and seconds",
    )
    group.addoption(
        "--epsilometer-strict", action="store_true", help="audits that are inconclusive fail instead of warning"
    )


@pytest.fixture
def assert_private(request: pytest.FixtureRequest) -> AssertPrivate:
    """Fails if an audit refutes what a training claims: assert_private(train, data=(x, y), epsilon=3, delta=1e-5)."""
    from epsilometer.testing.private import AssertPrivate

    def record(name: str, value: object) -> None:
        """As `record_property` does, which warns of some families of JUnit files, though all have properties."""
        request.node.user_properties.append((name, value))

    return AssertPrivate(
        folders=(request.path.parent, request.config.rootpath, request.config.invocation_params.dir),
        test=request.node.nodeid,
        record=record,
        trials=request.config.getoption("--epsilometer-trials"),
        strict=request.config.getoption("--epsilometer-strict"),
    )


def _whole(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number, at least 1")
    return int(text)
