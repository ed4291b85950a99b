"""What lines of several runs say: who is accused of what, and what is not tested."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from epsilometer.statements import Statement
from epsilometer.watching.checks.catalogue import judge
from epsilometer.watching.checks.replayed import held
from epsilometer.watching.facts import Facts, Replay, Steps
from epsilometer.watching.recording import Reader, Told, Writer
from epsilometer.watching.replay.marks import marks_of
from epsilometer.watching.replay.merge import replay_of, tell
from epsilometer.watching.replay.roles import (
    FIXED,
    HUGE,
    LEFT_OUT,
    NOISE,
    OTHERS,
    PLACEHOLDER,
    READ,
    REFERENCE,
    ROTATING,
)
from epsilometer.watching.settings import Replaying

STEPS = 8
ROLES = (REFERENCE, NOISE, ROTATING, FIXED)
RUNS = [Replaying("", run, len(ROLES), role, "", run) for run, role in enumerate(ROLES)]
Line = dict[str, Any]


def line(step: int, **given: Any) -> Line:
    usual = {
        "kind": "",
        "reached": 0,
        "size": 20,
        "parted": "",
        "drew": False,
        "delta": 0.0,
        "tensor": "w",
        "mixed": False,
    }
    return {"training": 1, "step": step, **usual, "differs": [], **given}


def lines() -> dict[int, list[Line]]:
    """Of a right training."""
    end = {"training": 1, "end": STEPS}
    kinds = [HUGE, LEFT_OUT] * STEPS
    return {
        0: [{"pid": 1}, {"training": 1}, end, {"over": ""}],
        1: [*(line(t) for t in range(1, STEPS + 1)), {**end, "differs": [], "drew": False}],
        2: [
            *(line(t, kind=kinds[t], reached=1, delta=1.0) for t in range(1, STEPS + 1)),
            {**end, "differs": [], "drew": False},
        ],
        3: [
            {"training": 1, "changed": HUGE},
            *(line(t, reached=t % 2, delta=0.5 * (t % 2)) for t in range(1, STEPS + 1)),
            {**end, "differs": [], "drew": False},
        ],
    }


def replay(found: dict[int, list[Line]], codes: dict[int, int] | None = None) -> Replay:
    return replay_of(RUNS, found, {}, codes)


def answers(found: Replay) -> dict[str, tuple[str, str]]:
    facts = Facts.from_dict(Facts(replay=found).to_dict())
    assert facts.replay == found
    return {one.name: (one.status.value, one.reason) for one in judge(facts)}


def failing(found: Replay) -> list[str]:
    return [name for name, (status, _) in answers(found).items() if status == "failed"]


def test_a_right_training_passes() -> None:
    found = replay(lines())
    statuses = {name: status for name, (status, _) in answers(found).items()}
    assert statuses == {
        "replayed-clipping": "passed",
        "replayed-sums": "passed",
        "replayed-batches": "passed",
        "replayed-state": "passed",
        "replayed-files": "not applicable",
        "replayed-steps": "passed",
    }
    assert held(Facts(replay=replace(found, before=True)))
    assert not held(Facts(replay=found))  # nothing was changed in what the script computes before
    assert not held(Facts())
    assert (found.steps, found.compared, found.absent, found.untested) == (STEPS, 2 * STEPS, STEPS // 2, [])


@pytest.mark.parametrize(
    ("kind", "delta", "broken"),
    [(LEFT_OUT, 1.2, True), (HUGE, 1.9, False), (HUGE, 2.1, True), (LEFT_OUT, 1.004, False)],
)
def test_what_a_record_may_move(kind: str, delta: float, broken: bool) -> None:
    given = lines()
    given[2][4] = line(5, kind=kind, reached=1, delta=delta)
    assert failing(replay(given)) == (["replayed-clipping"] if broken else [])
    by = {one.name: one.statement for one in judge(Facts(replay=replay(given)))}
    assert by["replayed-clipping"] is Statement.CLIPPING
    assert by["replayed-state"] is by["replayed-sums"] is Statement.NOTHING_ELSE


def test_a_record_that_is_not_there() -> None:
    given = lines()
    given[3][2] = line(2, reached=0, delta=0.01)
    assert failing(replay(given)) == ["replayed-sums"]


def test_all_other_records_are_others() -> None:
    """As when all are scaled by what all of them are; copies of one record may be many, too."""
    given = lines()
    given[3][2] = line(2, reached=9, size=30, delta=0.3)
    assert not failing(replay(given))
    given[3][2] = line(2, reached=20, delta=0.3)
    assert failing(replay(given)) == ["replayed-sums"]


def test_first_differences_by_what_they_are_of() -> None:
    given = lines()
    given[2][2]["differs"] = [["weights: a", 0.1], ["buffers: b", 0.2]]
    given[3][2]["differs"] = [["weights: a", 0.3]]
    found = replay(given)
    assert not held(Facts(replay=found))
    assert [(one.what, one.name, one.step, one.steps) for one in found.states] == [
        ("weights", "a", 2, 2),
        ("buffers", "b", 3, 1),
    ]
    assert failing(found) == ["replayed-state"]


def test_what_depends_on_noise_accuses_nobody() -> None:
    given = lines()
    for run in (1, 2):
        for at in range(4, STEPS):
            given[run][at]["differs"] = [["weights: a", 0.1]]
    found = replay(given)
    assert not failing(found)
    assert not held(Facts(replay=found))
    assert "steps 5 to 8: weights: a depends on noise" in found.untested[0]


def test_first_weights_of_a_later_training_are_drawn_where_noise_may_be() -> None:
    given = lines()
    given[1][0] = line(1, delta=3.0, differs=[["weights: a", 0.5]])
    given[2][0] = line(1, kind=HUGE, reached=1, delta=5.0)
    assert not failing(replay(given))
    given[2][1] = line(2, kind=HUGE, reached=1, delta=5.0)
    found = replay(given)
    assert failing(found) == ["replayed-clipping"]
    assert found.compared == 2 * (STEPS - 1)


def test_numbers_that_are_never_the_same_twice_get_a_tolerance() -> None:
    given = lines()
    for at, one in enumerate(given[1][:STEPS]):
        one["delta"], one["differs"] = 1e-4, [["buffers: b", 1e-5 * (at > 3)]]
    given[3][2]["delta"] = 9e-4
    given[2][5]["differs"] = [["buffers: b", 9e-5]]
    assert not failing(replay(given))
    given[2][5]["differs"] = [["buffers: b", 2e-4]]
    assert failing(replay(given)) == ["replayed-state"]
    given[3][2]["delta"] = 2e-3
    assert failing(replay(given)) == ["replayed-sums", "replayed-state"]


def test_random_numbers_of_the_script_between_steps() -> None:
    """A stop by a noisy accuracy may be the same with other noise, and another one with other data."""
    given = lines()
    for run in (1, 2, 3):
        for one in given[run]:
            if one.get("step", 0) > 3 or "end" in one:
                one["drew"] = True
    given[3] = [*given[3][:5], {"training": 1, "end": 4, "fewer": True}]
    found = replay(given)
    assert not failing(found)
    assert any("epsilometer.opacus.release" in why for why in found.untested)


def test_streams_that_part() -> None:
    given = lines()
    given[2] = [*given[2][:3], {"training": 1, "step": 4, "kind": HUGE, "parted": "random streams", "drew": False}]
    found = replay(given)
    assert not failing(found)
    assert any("steps 4 to 8: random streams part" in why for why in found.untested)
    given[1] = given[1][:1]
    assert replay(given).compared == 2  # of both neighbours the first step only


def test_another_number_of_steps() -> None:
    given = lines()
    given[2] = [*given[2][:3], {"training": 1, "end": 3, "fewer": True}]
    assert failing(replay(given)) == ["replayed-steps"]
    assert not failing(replay(given, {0: 0, 2: 1}))  # it came to nothing
    given = lines()
    given[3] = [*given[3][:-1], {"training": 1, "step": STEPS + 1, "more": True}]
    assert failing(replay(given)) == ["replayed-steps"]
    given[1] = given[1][:-1]  # whether the number depends on noise is not known
    assert not failing(replay(given))


def test_a_step_that_is_not_taken() -> None:
    given = lines()
    skipped = {"training": 1, "step": 4, "kind": HUGE, "parted": "random streams", "skips": True, "drew": False}
    given[2] = [*given[2][:3], skipped]
    assert failing(replay(given)) == ["replayed-steps"]
    given[2] = [*given[2][:3], {**skipped, "drew": True}]  # by something noisy, perhaps
    assert not failing(replay(given))


def test_a_batch_that_is_chosen() -> None:
    """Then sums are of other records, and say nothing of clipping."""
    given = lines()
    given[2][3] = line(4, kind=HUGE, reached=1, delta=9.0, batches=2, chose=True)
    given[3][4] = line(5, reached=1, delta=9.0, batches=2)
    found = replay(given)
    assert failing(found) == ["replayed-batches"]
    assert found.chosen is not None
    assert found.chosen.step == 4


def test_gradients_of_other_records() -> None:
    given = lines()
    given[2][3] = line(4, kind=HUGE, reached=1, delta=1.0, mixes=5)
    found = replay(given)
    assert failing(found) == ["replayed-clipping"]
    assert "changes the clipped gradients of 5 other records" in answers(found)["replayed-clipping"][1]
    given[1][3] = line(4, mixes=1)  # they are others with other noise, too
    assert not failing(replay(given))


def with_role(role: str) -> list[Replaying]:
    return [*RUNS[:3], replace(RUNS[3], role=role)]


def test_all_other_records_say_nothing_of_sums() -> None:
    """They move every sum, and may do nothing else."""
    given = lines()
    given[3] = [line(t, reached=20, delta=7.0) for t in range(1, STEPS + 1)] + [given[3][-1]]
    found = replay_of(with_role(OTHERS), given, {})
    assert not failing(found)
    assert found.compared == STEPS
    given[3][-1] = {**given[3][-1], "differs": [["weights: a", 0.1]]}
    assert failing(replay_of(with_role(OTHERS), given, {})) == ["replayed-state"]
    given[3] = [*given[3][:3], {"training": 1, "end": 3, "fewer": True}]
    assert failing(replay_of(with_role(OTHERS), given, {})) == ["replayed-steps"]
    found = replay_of(with_role(OTHERS), given, {}, {0: 0, 3: 1})  # it came to nothing
    assert not failing(found)
    assert not found.untested


def test_steps_that_no_run_follows() -> None:
    """Of an optimizer made by hand, say: after them everything is another one in every run."""
    given = lines()
    given[2][4]["differs"] = given[3][-1]["differs"] = [["weights: a", 0.1]]
    assert failing(replay(given)) == ["replayed-state"]
    found = replay_of(RUNS, given, {}, None, 3)
    assert not failing(found)
    assert found.untested[0] == "nothing: 3 private steps were not followed"
    for run in given:
        given[run] = [{**one, "end": 0} for one in given[run] if "step" not in one]
    assert not failing(replay(given))
    assert replay(given).untested[0] == "nothing: no private step was followed"


def test_what_is_saved() -> None:
    given = lines()
    for run, digest in enumerate("aaab"):
        arrays = {"model": digest, "noise": "abcd"[run]}
        given[run].insert(1, {"save": 1, "arrays": arrays})
    found = replay(given)
    assert failing(found) == ["replayed-files"]
    assert found.files == ["what torch.save wrote as number 1 (model)"]
    given[3][1]["arrays"] |= {"model": "a", "train_loss": "0.5"}
    for run in (0, 1, 2):
        given[run][1]["arrays"]["train_loss"] = "0.4"
    found = replay(given)
    assert (found.files, found.figures) == ([], ["what torch.save wrote as number 1 (train_loss)"])
    by = {one.name: one for one in judge(Facts(replay=found))}
    assert (by["replayed-files"].status, by["replayed-files"].basis) == ("failed", "hint")
    given[3][1]["arrays"] |= {"model": "b", "train_loss": "0.4"}
    assert failing(replay(given)) == ["replayed-files"]
    given[1][1]["arrays"]["model"] = "c"  # it depends on noise
    assert not failing(replay(given))
    given = lines()
    for run in (0, 1, 2):
        given[run].insert(1, {"save": 1, "arrays": {}})
    assert failing(replay(given)) == ["replayed-files"]
    assert "0 times, not 1" in replay(given).files[0]


@pytest.mark.parametrize(
    ("own", "broken"),
    [([0.0, 1.0, 9.0], ["replayed-state"]), ([0.0, 1.0, 2.0], []), ([1.0, 2.0, 3.0], [])],
    ids=["there", "not-there", "measured-by-it"],
)
def test_a_record_that_was_read(own: list[float], broken: list[str]) -> None:
    """It may be none of those that are to be protected."""
    given = lines()
    rows = np.array([[0.0], [1.0], [2.0], *[[5.0]] * 20])
    moved = rows + (own[0] > 0)
    moved[:3, 0] = own
    given[0].insert(1, {"training": 1, "marks": marks_of(rows)})
    given[3][0] = {"training": 1, "changed": "in what a reader returns", "marks": marks_of(moved)}
    given[3][1]["differs"] = [["weights: a", 0.1]]
    found = replay_of(with_role(READ), given, {})
    assert failing(found) == broken
    assert any("not in the data of the training" in why for why in found.untested) is not bool(broken)


def test_a_record_in_no_sum_tests_nothing() -> None:
    given = lines()
    given[2] = [line(t) for t in range(1, STEPS + 1)]
    given[3] = [line(t) for t in range(1, STEPS + 1)]
    status, why = answers(replay(given))["replayed-clipping"]
    assert status == "not applicable"
    assert "in 0 sums of 16" in why


def test_statistics_before_the_sum_that_may_be_noisy() -> None:
    given = lines()
    given[2][3] = line(4, kind=HUGE, reached=1, delta=5.0, mixed=True)
    found = replay(given)
    assert not failing(found)
    assert any("move every record's gradient" in why for why in found.untested)


def test_no_run_with_other_noise_no_word() -> None:
    given = lines()
    given[1] = [{"over": "the replay failed (OSError: no room)"}]
    given[2][3] = line(4, kind=HUGE, reached=1, delta=5.0)
    found = replay(given)
    assert not failing(found)
    assert "no room" in found.untested[0]


def test_a_neighbour_of_the_users_own_is_named() -> None:
    runs = [Replaying("", run, 3, role, "", run) for run, role in enumerate((REFERENCE, NOISE, PLACEHOLDER))]
    given = {run: lines()[run] for run in (0, 1, 2)}
    assert replay_of(runs, given).neighbours == ["neighbour 2 (of the command)"]


def test_what_is_told_to_the_recording_of_the_reference(tmp_path: Path) -> None:
    """Another process, or another library, is not followed, and said to be so."""
    meeting, recordings = tmp_path / "meeting", tmp_path / "recordings"
    meeting.mkdir()
    recordings.mkdir()
    for run, found in lines().items():
        torn = b'{"step": 9, "delta'
        (meeting / f"{run}.jsonl").write_bytes(b"".join(json.dumps(one).encode() + b"\n" for one in found) + torn)
    for name, trainings in (("1-5", (1, 2)), ("15-6", (1,))):
        for training in trainings:
            Writer(recordings / f"{name}.jsonl").take(Told(training, Facts(steps=Steps(8, 8))))
    tell(meeting, RUNS, recordings, {}, dict.fromkeys(range(len(RUNS)), 0))
    monitor = {}
    for path in recordings.iterdir():
        for record in Reader(path).new():
            assert isinstance(record, Told)
            monitor[path.stem, record.training] = record.facts
    assert all(facts.steps == Steps(8, 8) for facts in monitor.values())
    assert monitor["1-5", 1].replay == replay(lines())
    for other in (("1-5", 2), ("15-6", 1)):
        facts = monitor[other]
        assert facts.replay is None
        assert {one.reason for one in judge(facts) if one.name.startswith("replayed")} == {facts.troubles["replay"]}
