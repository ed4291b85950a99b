"""--unit and claim.unit: whose ε it is, said once and shown wherever a relation is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from stored import PLAN, store_run

from epsilometer.auditing import spec_from_dict
from epsilometer.errors import InvalidInput, NeighboursMismatch

COUNTS = ("--counts", "970", "20", "30", "980", "--delta", "1e-5")
TRAIN = """
import numpy as np

def train(data, seed):
    weights = data.x.sum(axis=0) + np.random.default_rng(seed).normal(size=(2, 4))
    return lambda x: x @ weights.T

def release(value, rng, size):
    return value + rng.laplace(0.0, 1.0, size)
"""


def test_bounds_claims_and_theory_say_their_unit(here) -> None:
    shown = here("bound", *COUNTS, "--claim", "3", "--unit", "user", "--json")
    assert shown.returncode == 1, shown.stderr
    document = json.loads(shown.stdout)
    assert document["lower_bound"]["unit"] == document["claim"]["unit"] == "user"
    assert "user-level add-remove" in document["quote"]
    curve = here("bound", *COUNTS, "--unit", "user", "--sample-rate", "1", "--noise-multiplier", "2", "--steps", "1")
    assert "user-level add-remove: refuted" in curve.stdout
    compared = json.loads(here("compare", *COUNTS, "--unit", "user", "--json").stdout)
    assert {bound["unit"] for bound in compared["bounds"].values() if "unit" in bound} == {"user"}
    theory = ("account", "--sample-rate", "0.1", "--noise-multiplier", "2", "--steps", "10", "--unit", "user")
    assert "user-level add-remove" in here(*theory).stdout
    assert json.loads(here(*theory, "--json").stdout)["bounds"][0]["unit"] == "user"


@pytest.mark.parametrize(
    "command", [("bound", *COUNTS), ("compare", *COUNTS), ("mechanism", "laplace", "--epsilon", "1")]
)
@pytest.mark.parametrize("unit", ["two words", "User", ""])
def test_odd_units_are_refused(here, command: tuple[str, ...], unit: str) -> None:
    shown = here(*command, "--unit", unit)
    assert shown.returncode == 2
    assert "--unit = " in shown.stderr
    assert "one word in lower case" in shown.stderr


def test_the_embedded_training_protects_records(here) -> None:
    shown = here("audit", "--unit", "user")
    assert shown.returncode == 2
    assert shown.stderr.startswith("epsilometer: the claim speaks of one user, the training of one record")
    with pytest.raises(NeighboursMismatch, match="one user, private ridge regression of one record"):
        spec_from_dict({"subject": {"name": "private-ridge"}, "claim": {"epsilon": 1.0, "unit": "user"}}).plan()
    with pytest.raises(InvalidInput, match=r"claim\.unit = 'two words'"):
        spec_from_dict({"claim": {"unit": "two words"}}).plan()


def test_a_training_of_ones_own_may_be_of_users(here, place: Path) -> None:
    Path("mine.py").write_text(TRAIN)
    np.savez("mine.npz", x=np.eye(8, 4), y=np.arange(8) % 2)
    asked = ("audit", "mine.py:train", "--data", "mine.npz", "--epsilon", "2", "--trials", "4", "--executor", "inline")
    shown = here(*asked, "--unit", "user", "--out", "users", "--quiet")
    assert shown.returncode == 0, shown.stderr
    assert "(8 users)" in shown.stdout
    assert "ε = 2 at δ = 1e-05 (user-level add-remove)" in shown.stdout
    result = json.loads(Path("users/result.json").read_text())
    assert result["plan"]["claim"]["unit"] == result["lower_bound"]["unit"] == "user"
    again = here("runs", "users", "--export", "again.csv")
    assert "--relation add-remove --unit user" in again.stdout + again.stderr
    listed = here("runs", "users").stdout.splitlines()[1].split("\t")
    assert listed[3:5] == ["2, user-level", "0.000, user-level"]
    assert json.loads(here("runs", "users", "--json").stdout)["runs"][0]["unit"] == "user"
    here(*asked, "--out", "records", "--quiet")
    both = here("diff", "users", "records")
    assert both.stdout.startswith("not comparable: these runs differ in unit (user, record)")


def test_a_mechanism_of_ones_own_may_be_of_users(here, place: Path) -> None:
    Path("mine.py").write_text(TRAIN)
    asked = ("--epsilon", "1", "--sensitivity", "1", "--neighbours", "0", "1", "--runs", "200", "--unit", "user")
    shown = here("mechanism", "mine.py:release", *asked, "--quiet")
    assert shown.returncode == 0, shown.stderr
    assert "user-level add-remove" in shown.stdout
    refused = here("mechanism", "laplace", "--epsilon", "1", "--unit", "user")
    assert refused.returncode == 2
    assert "--unit = 'user': expected record" in refused.stderr


def test_stored_runs_without_a_unit_are_of_records(here, place: Path) -> None:
    store_run(place / "a", pairs=25, epsilon=0.75)
    store_run(place / "b", replace(PLAN, seed=1), pairs=25, epsilon=0.75)
    document = json.loads(here("diff", "a", "b", "--json").stdout)
    assert [run["unit"] for run in document["runs"]] == ["record", "record"]
    assert document["comparable"]


def test_files_of_scores_say_of_which_neighbours_they_speak(here, place: Path) -> None:
    rows = "".join(
        f"{world},{score},user,replace\n" for world in (0, 1) for score in range(60 * world, 60 * world + 60)
    )
    (place / "users.csv").write_text("world,score,unit,relation\n" + rows)
    refused = here("bound", "users.csv", "--claim", "1")  # of records, as nobody says another unit
    assert (refused.returncode, "epsilons of different units" in refused.stderr) == (2, True)
    said = ("--claim", "1", "--unit", "user", "--relation", "replace")
    assert here("bound", "users.csv", *said).returncode == 1
    found = json.loads(here("bound", "users.csv", "--json").stdout)
    assert (found["lower_bound"]["unit"], found["lower_bound"]["relation"]) == ("user", "replace")
    for option, word in (("--unit", "client"), ("--relation", "zero-out")):
        shown = here("bound", "users.csv", option, word)
        assert (shown.returncode, "as the file says" in shown.stderr) == (2, True)
    (place / "mixed.csv").write_text("world,score,unit\n0,1,user\n1,2,record\n")
    assert "expected one word, the same in every row" in here("bound", "mixed.csv").stderr


def test_scores_of_a_property_are_of_a_participant(here, place: Path) -> None:
    """Whatever hides nobody here has no ε; its file must not be read as one of records."""
    assert here("property", "--trials", "6", "--rounds", "10", "--no-control", "--out", "told").returncode == 0
    found = json.loads(here("bound", "told/scores.csv", "--json").stdout)
    assert (found["lower_bound"]["unit"], found["lower_bound"]["relation"]) == ("participant", "replace")
