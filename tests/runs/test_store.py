"""One contract for every store, and what only a file has: damage, foreign content, other drivers."""

import json
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from epsilometer.adversaries import Gradient, StaticPoison
from epsilometer.auditing import Plan, run, spec_from_dict
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.runs import MemoryStore, Preparation, SqliteStore, StoreError, run_directory
from epsilometer.runs.directory import STORE

PLAN = spec_from_dict({"training": {"steps": 3}, "audit": {"trials": 25}}).plan()
OTHER = spec_from_dict({"training": {"steps": 4}, "audit": {"trials": 25}}).plan()
KEY = PLAN.fingerprint()


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path: Path):
    made = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / STORE)
    yield made
    made.close()


def scores(*values: float) -> np.ndarray:
    return np.array(values)


def test_results_come_back_as_they_were(store) -> None:
    store.begin(PLAN)
    given = {(0, 0): scores(0.1), (1, 7): scores(-np.inf, 1e-300, np.nextafter(1, 2)), (1, 0): scores(-0.0)}
    store.add(KEY, given, 1.5)
    found = store.results(KEY)
    assert found.keys() == given.keys()
    for trial, values in given.items():
        assert found[trial].tobytes() == values.tobytes()


def test_the_first_result_of_a_trial_stays(store) -> None:
    store.begin(PLAN)
    store.add(KEY, {(0, 0): scores(1.0)}, 0.0)
    store.add(KEY, {(0, 0): scores(2.0), (0, 1): scores(3.0)}, 0.0)
    assert {trial: values.item() for trial, values in store.results(KEY).items()} == {(0, 0): 1.0, (0, 1): 3.0}


def test_plans_have_results_of_their_own(store) -> None:
    for plan in (PLAN, OTHER, PLAN):
        store.begin(plan)
    store.add(KEY, {(0, 0): scores(1.0)}, 2.0)
    store.add(KEY, {(0, 1): scores(1.0)}, 0.5)
    store.conclude(KEY, {"verdict": {"outcome": "consistent"}, "epsilon": 1.25})
    first, second = store.runs()
    assert (first.fingerprint, first.trials, first.seconds, first.total) == (KEY, 2, 2.5, 50)
    assert first.conclusion == {"verdict": {"outcome": "consistent"}, "epsilon": 1.25}
    assert (second.trials, second.conclusion) == (0, None)
    assert store.results(OTHER.fingerprint()) == {}
    assert first.plan == json.loads(PLAN.canonical_json())


def test_an_audit_is_the_same_with_any_store(store) -> None:
    """And a second run plays nothing again."""
    expected = run(PLAN)
    first = run(PLAN, store=store)
    told = []
    again = run(PLAN, told.append, store=store)
    assert [snapshot.judging for snapshot in told] == [True]
    for result in (first, again):
        np.testing.assert_array_equal(result.evidence.in_scores, expected.evidence.in_scores)
        np.testing.assert_array_equal(result.evidence.out_scores, expected.evidence.out_scores)
        assert result.verdict == expected.verdict
    assert store.runs()[0].conclusion["verdict"] == expected.verdict.to_dict()


def test_canaries_are_stored_and_judged_alike(store) -> None:
    adversary = {"name": "canaries", "canaries": 60}
    plan = spec_from_dict({"training": {"steps": 3}, "adversary": adversary, "audit": {"trials": 2}}).plan()
    first, again = run(plan, store=store), run(plan, store=store)
    np.testing.assert_array_equal(first.evidence.scores, again.evidence.scores)
    np.testing.assert_array_equal(first.evidence.member, again.evidence.member)
    assert store.runs()[0].trials == store.runs()[0].total == 2


def poisoning(shadows: int = 2) -> Plan:
    """To prepare its game is to train."""
    adversary = {"name": "static-poison", "shadows": shadows}
    return spec_from_dict({"training": {"steps": 3}, "adversary": adversary, "audit": {"trials": 25}}).plan()


class Prepares(Exception):
    pass


def refuse(*_: object) -> None:
    raise Prepares


@pytest.fixture
def forbid(monkeypatch: pytest.MonkeyPatch):
    """From when it is called, nothing may be prepared."""

    def begin() -> None:
        for kind in (StaticPoison, Gradient):
            monkeypatch.setattr(kind, "prepare", refuse)

    return begin


def test_what_was_prepared_comes_back_as_it_was(store) -> None:
    store.begin(PLAN)
    assert store.preparation(KEY) is None
    arrays = {
        "some": scores(0.1, -0.0, np.nextafter(1, 2)),
        "flags": np.array([[True], [False]]),
        "one": np.array(7, np.int32),
        "none": np.zeros((0, 3), np.float32),
    }
    store.keep(KEY, Preparation(arrays))
    found = store.preparation(KEY)
    assert found.arrays.keys() == arrays.keys()
    for name, values in arrays.items():
        assert (found.arrays[name].dtype, found.arrays[name].shape) == (values.dtype, values.shape)
        assert found.arrays[name].tobytes() == values.tobytes()
    assert found.to_bytes() == Preparation(arrays).to_bytes()
    store.keep(KEY, Preparation({"some": scores(2.0)}))  # the first stays
    assert store.preparation(KEY).to_bytes() == Preparation(arrays).to_bytes()
    store.begin(OTHER)
    assert store.preparation(OTHER.fingerprint()) is None


def test_objects_are_never_kept(store) -> None:
    """They would have to be unpickled, and could run anything."""
    store.begin(PLAN)
    with pytest.raises(ValueError, match="allow_pickle=False"):
        Preparation({"odd": np.array([{}], object)}).to_bytes()


def test_an_audit_prepares_once_and_goes_on_with_what_was_prepared(store, forbid) -> None:
    plan = poisoning()
    expected = run(plan)

    def interrupt(snapshot) -> None:
        if snapshot.done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(plan, interrupt, store=store)
    assert 0 < store.runs()[0].trials < 50
    forbid()
    with pytest.raises(Prepares):
        run(plan)  # without what was prepared, there is no game
    result = run(plan, store=store)
    assert result.evidence.in_scores.tobytes() == expected.evidence.in_scores.tobytes()
    assert result.evidence.out_scores.tobytes() == expected.evidence.out_scores.tobytes()


def test_a_finished_run_is_judged_again_without_preparing_anything(store) -> None:
    for plan in (PLAN, poisoning()):
        first = run(plan, store=store)
        with pytest.MonkeyPatch.context() as patch:
            for name in ("prepare", "game", "play"):
                patch.setattr(Plan, name, refuse)
            again = run(plan, store=store)
        assert (again.verdict, again.lower_bound) == (first.verdict, first.lower_bound)
        assert again.evidence.in_scores.tobytes() == first.evidence.in_scores.tobytes()
        assert again.evidence.out_scores.tobytes() == first.evidence.out_scores.tobytes()


def test_what_was_prepared_decides_the_game(store) -> None:
    """It is really used: another poison in the store gives other scores."""
    plan = poisoning()
    key, own = store.begin(plan).fingerprint, plan.prepare()
    other = {**own.arrays, "x": 1 - own.arrays["x"]}
    store.keep(key, Preparation(other))
    found, expected = run(plan, store=store), run(plan)
    assert not np.isclose(found.evidence.in_scores, expected.evidence.in_scores).any()


# ------------------------------------------------------------------------------------------------------ files
def filled(path: Path, trials: int = 300) -> Path:
    with SqliteStore(path) as store:
        store.begin(PLAN)
        store.keep(KEY, Preparation({"direction": scores(0.625, 0.75)}))
        store.add(KEY, {(i % 2, i // 2): scores(float(i)) for i in range(trials)}, 1.0)
    return path


def damage_truncated(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def damage_overwritten(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096 : 4096 + 3000] = b"\xa5" * 3000
    path.write_bytes(bytes(content))


def damage_flipped_bit(path: Path) -> None:
    """In a score, which SQLite itself would not notice."""
    content = path.read_bytes()
    at = content.index(np.array([123.0]).tobytes())
    path.write_bytes(content[: at + 2] + bytes([content[at + 2] ^ 1]) + content[at + 3 :])


def damage_flipped_bit_of_what_was_prepared(path: Path) -> None:
    content = path.read_bytes()
    at = content.index(np.array([0.625, 0.75]).tobytes())
    path.write_bytes(content[: at + 6] + bytes([content[at + 6] ^ 1]) + content[at + 7 :])


def damage_changed_plan(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"confidence": 0.95', b'"confidence": 0.99'))


def damage_not_a_database(path: Path) -> None:
    path.write_bytes(b"world,score\n0,1.0\n" * 100)


def damage_foreign(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE photos (name TEXT)")
    connection.close()


def damage_newer(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (damage_truncated, "intact"),
        (damage_overwritten, "intact"),
        (damage_flipped_bit, "trial 61 of world 1 is not what was written"),
        (damage_changed_plan, "not the one that was begun"),
        (damage_not_a_database, "not a database"),
        (damage_foreign, "not another program's database"),
        (damage_newer, "update epsilometer"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_damaged_store_is_refused_and_left_alone(tmp_path: Path, damage, words: str) -> None:
    path = filled(tmp_path / STORE)
    damage(path)
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match=words) as caught, run_directory(tmp_path, PLAN) as store:
        run(PLAN, store=store)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == before
    with pytest.raises(InvalidInput, match=words), SqliteStore.reading(path) as store:
        [store.results(stored.fingerprint) for stored in store.runs()]


def test_a_flipped_bit_in_what_was_prepared_is_noticed_before_anything_is_played(tmp_path: Path) -> None:
    path = filled(tmp_path / STORE, trials=20)
    damage_flipped_bit_of_what_was_prepared(path)
    before, told = path.read_bytes(), []
    with (
        pytest.raises(InvalidInput, match="what was prepared for a run is not what was written"),
        run_directory(tmp_path, PLAN) as store,
    ):
        run(PLAN, told.append, store=store)
    assert all(now.starting for now in told)
    assert path.read_bytes() == before


def test_a_store_of_the_first_version_can_be_read(tmp_path: Path) -> None:
    """A file that was written once and is kept: later versions must read it, or say that they cannot."""
    path = tmp_path / STORE
    path.write_bytes((Path(__file__).parent / "stores" / "version-1.sqlite").read_bytes())
    with SqliteStore(path) as store:
        (run,) = store.runs()
        assert (run.trials, run.total, run.seconds) == (50, 50, 1.5)
        assert run.about["claimed_epsilon"] == pytest.approx(4.0, abs=0.01)
        assert run.conclusion["verdict"] == {"outcome": "inconclusive"}
        assert store.results(run.fingerprint)[1, 24] == 24.5


def test_a_changed_plan_is_refused_and_the_difference_shown(tmp_path: Path) -> None:
    filled(tmp_path / STORE)
    before = (tmp_path / STORE).read_bytes()
    with pytest.raises(InvalidInput, match=r"recipe\.steps: 3 there, 4 now") as caught, run_directory(tmp_path, OTHER):
        pass
    assert "recipe.hidden" not in str(caught.value)
    with SqliteStore.reading(tmp_path / STORE) as store:
        assert [stored.trials for stored in store.runs()] == [300]
    assert len((tmp_path / STORE).read_bytes()) == len(before)


def test_data_in_another_order_are_another_plan() -> None:
    data = PLAN.subject.data
    turned = Dataset("digits", data.x[::-1], data.y[::-1], 10)
    assert replace(PLAN, subject=replace(PLAN.subject, data=turned)).fingerprint() != KEY


def test_modules_are_known_by_what_they_do() -> None:
    """Two modules under one name in two processes: the plan tells them apart."""
    from torch import nn

    from epsilometer.training import ModuleNetwork

    def small(features: int, classes: int) -> nn.Module:
        return nn.Sequential(nn.Linear(features, 3), nn.GELU(), nn.Linear(3, classes))

    def other(features: int, classes: int) -> nn.Module:
        return nn.Sequential(nn.Linear(features, 3), nn.GELU(approximate="tanh"), nn.Linear(3, classes))

    first, second = (ModuleNetwork(factory, 5, 2).fingerprint() for factory in (small, other))
    assert first != second
    assert first == ModuleNetwork(small, 5, 2).fingerprint()


def test_a_second_driver_is_told_who_the_first_is(tmp_path: Path) -> None:
    code = f"""
import sys
from epsilometer.runs import SqliteStore
store = SqliteStore({str(tmp_path / STORE)!r})
print("open", flush=True)
sys.stdin.read()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1, text=True) as first:
        assert first.stdout.readline() == "open\n"
        with pytest.raises(StoreError, match=f"process {first.pid}"):
            SqliteStore(tmp_path / STORE)
        with SqliteStore.reading(tmp_path / STORE) as reading:  # looking is allowed
            assert reading.runs() == []
        first.kill()  # no chance to clean up
    SqliteStore(tmp_path / STORE).close()


def test_a_second_driver_in_the_same_process_is_refused_too(tmp_path: Path) -> None:
    failures = []

    def try_again() -> None:
        try:
            SqliteStore(tmp_path / STORE)
        except StoreError as error:
            failures.append(error)

    with SqliteStore(tmp_path / STORE):
        thread = threading.Thread(target=try_again)
        thread.start()
        thread.join()
    assert failures


def test_a_driver_that_comes_too_late_removes_nothing(tmp_path: Path) -> None:
    """While the first has no results yet, its store looks like one that could go."""
    with run_directory(tmp_path / "run", PLAN) as store:
        with pytest.raises(StoreError, match="being written to"), run_directory(tmp_path / "run", PLAN):
            pass
        store.add(KEY, {(0, 0): scores(1.0)}, 0.0)
    with SqliteStore.reading(tmp_path / "run" / STORE) as reading:
        assert reading.runs()[0].trials == 1


def test_a_store_that_goes_away_is_noticed(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / STORE) as store:
        store.begin(PLAN)
        (tmp_path / STORE).unlink()
        with pytest.raises(StoreError, match="moved or removed"):
            store.add(KEY, {(0, 0): scores(1.0)}, 0.0)


def test_numbers_have_one_way_to_be_written() -> None:
    recipe = replace(PLAN.subject.recipe, clip_norm=1, weight_decay=-0.0)
    written = replace(PLAN, subject=replace(PLAN.subject, recipe=recipe), confidence=0.95)
    assert written.fingerprint() == KEY


def test_a_run_without_results_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), run_directory(tmp_path / "new" / "run", PLAN):
        raise KeyboardInterrupt
    assert list((tmp_path / "new").iterdir()) == []


def test_a_hundred_thousand_results_are_a_small_file(tmp_path: Path) -> None:
    """Under 50 MB; the time to read them is in benchmarks/runs.py."""
    rng = np.random.default_rng(0)
    with SqliteStore(tmp_path / STORE) as store:
        store.begin(PLAN)
        for start in range(0, 50_000, 5000):
            store.add(KEY, {(w, i): rng.normal(size=1) for i in range(start, start + 5000) for w in (0, 1)}, 1.0)
        assert len(store.results(KEY)) == 100_000
    assert (tmp_path / STORE).stat().st_size < 50e6
