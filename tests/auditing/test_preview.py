"""What `check` says that a plan will cost."""

import importlib

import pytest

from epsilometer.auditing import preview, spec_from_dict
from epsilometer.auditing.groups import Played
from epsilometer.errors import InvalidInput

MODULE = importlib.import_module("epsilometer.auditing.preview")  # whose name its function has too


@pytest.mark.parametrize("adversary", ["gradient", "canaries"])
def test_the_cost_is_that_of_a_group_when_all_is_compiled(adversary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A world's first trial compiles what the other does not need; 3 h 53 min were predicted for 7 minutes."""
    seen: set[int] = set()

    def play(plan, trials) -> Played:
        compiling = sum(5.0 for world in {world for world, _ in trials} - seen)
        seen.update(world for world, _ in trials)
        return Played(trials, [], compiling + 0.01 + 0.001 * len(trials))

    monkeypatch.setattr(MODULE, "play_group", play)
    chosen = {"adversary": {"name": adversary}, "audit": {"trials": 100}, "training": {"steps": 5}}
    assert preview(spec_from_dict(chosen).plan()).seconds_a_trial == pytest.approx(0.001 + 0.01 / 64)


def test_trials_that_take_long_are_not_played_again(monkeypatch: pytest.MonkeyPatch) -> None:
    played = []

    def play(plan, trials) -> Played:
        played.extend(trials)
        return Played(trials, [], 100.0)

    monkeypatch.setattr(MODULE, "play_group", play)
    assert preview(spec_from_dict({"training": {"steps": 5}}).plan()).seconds_a_trial == 50.0
    assert played == [(0, 0), (1, 0)]


def test_one_training_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODULE, "play_group", lambda _, trials: Played(trials, [], 0.25))
    chosen = {"adversary": {"name": "canaries"}, "audit": {"trials": 1}, "training": {"steps": 5}}
    assert preview(spec_from_dict(chosen).plan()).seconds_a_trial == 0.25


def test_more_trials_than_anybody_plays_are_refused() -> None:
    """They filled 11.5 GB before one was played."""
    with pytest.raises(InvalidInput, match=r"audit.trials = 100000000: expected a whole number from 2 to 1,000,000"):
        spec_from_dict({"audit": {"trials": 10**8}}).plan()
