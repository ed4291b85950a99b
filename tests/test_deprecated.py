"""Old names work for one release more, and say the new one."""

from dataclasses import dataclass
from typing import Any

import pytest

from epsilometer import auditing, runs
from epsilometer.adversaries import Adversary, Gradient
from epsilometer.evidence import OneRun


def test_names_that_moved_are_found_with_a_warning() -> None:
    with pytest.warns(
        DeprecationWarning, match=r"epsilometer\.auditing\.SqliteStore is now epsilometer\.runs\.SqliteStore"
    ):
        assert auditing.SqliteStore is runs.SqliteStore
    with pytest.warns(DeprecationWarning, match=r"epsilometer\.runs\.Trials"):
        assert auditing.Work is runs.Trials
    with pytest.raises(AttributeError, match="has no attribute 'Nonsense'"):
        _ = auditing.Nonsense


def test_an_adversary_of_the_users_own_may_have_the_old_names() -> None:
    with pytest.warns(DeprecationWarning, match="Mine.gives is now evidence_type"):

        @dataclass(frozen=True)
        class Mine(Gradient):
            gives: Any = OneRun

    assert Mine.evidence_type is OneRun
    assert issubclass(Mine, Adversary)
