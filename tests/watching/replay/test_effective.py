"""What lines of runs say of a loop by hand: made up here, so that every rule has a case on either side of it."""

from typing import Any

import numpy as np
import pytest

from epsilometer.statements import Basis
from epsilometer.watching.checks.check import Status
from epsilometer.watching.checks.effective import effective_clipping, effective_noise, effective_sampling
from epsilometer.watching.facts import Facts
from epsilometer.watching.replay.effective import data_with_noise, with_effective
from epsilometer.watching.replay.roles import HUGE, NEGATED, NOISE, READ, REFERENCE, REPLACED, ROTATING
from epsilometer.watching.settings import Declared, Replaying

SIZES = {"weight": 1000, "bias": 10}
RUNS = [Replaying("", at, 5, role, "") for at, role in enumerate((REFERENCE, NOISE, ROTATING, NEGATED, READ))]
STEPS = 12
C_OVER_L = 1.0 / 32  # what one record adds at most


def line(step: int, squares: dict[str, float], **others: Any) -> dict[str, Any]:
    return {
        "training": 1, "step": step, "place": "gradient", "drawn": {}, "window": {"normal": 0, "other": 0},
        "unseen": False, "source": 0, "linear": True, "within": False, "size": 32, "records": 400, "loader": True,
        "kind": "", "parted": "", "reached": 1, "differs": [], "squares": {"gradient": squares}, "norm": 1.0,
        "again": 0.0, "members": [1, 2, 3], **others,
    }  # fmt: skip


def runs(
    *, sigma: float = 1.0, silent: tuple[str, ...] = (), moved: float = 1.9, before: int = 0, **others: Any
) -> dict[int, list[dict[str, Any]]]:
    """Noise of this multiplier, and records that move steps by so many clip norms."""
    rng = np.random.default_rng(3)
    deviation = sigma * C_OVER_L

    def noise(times: float) -> dict[str, float]:
        return {
            name: 0.0 if name in silent else float(times * deviation**2 * rng.chisquare(size))
            for name, size in SIZES.items()
        }

    steps = range(1, STEPS + 1)
    record = {"weight": 0.9 * (moved * C_OVER_L) ** 2, "bias": 0.1 * (moved * C_OVER_L) ** 2}
    return {
        0: [
            {"pid": 1}, {"outside": True, "noise before": False, "drawn before": before},
            {"training": 1, "sizes": SIZES}, {"training": 1, "end": STEPS},
        ],
        1: [line(step, noise(2.0), **others) for step in steps],
        2: [line(step, record, kind=(REPLACED, HUGE)[step % 2], **others) for step in steps],
        3: [line(step, noise(4.0), **others) for step in steps],
        4: [],
    }  # fmt: skip


def facts(
    lines: dict[int, list[dict[str, Any]]],
    declared: Declared = Declared(1.0, 0.08, 1.0),  # noqa: B008
    failed: int | None = None,
) -> Facts:
    codes = {one.run: int(one.run == failed) for one in RUNS}
    return with_effective(Facts(), RUNS, lines, data_with_noise(RUNS, lines), declared, codes)


def test_a_right_loop() -> None:
    found = facts(runs())
    assert effective_noise(found).status is Status.PASSED
    assert effective_clipping(found).status is Status.PASSED
    assert found.effective is not None
    assert min(found.effective.kinds.values()) == pytest.approx(2 / 1.9, rel=0.1)
    assert min(found.effective.kinds.values()) > 2 / 1.9  # it is an upper limit


def test_right_loops_are_not_accused_by_chance() -> None:
    """A record that moves all that it may, in 200 trainings."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        lines = runs(moved=2.0)
        for one in lines[1]:
            one["squares"]["gradient"] = {n: 2 * C_OVER_L**2 * rng.chisquare(size) for n, size in SIZES.items()}
        assert effective_noise(facts(lines)).status is not Status.FAILED


def test_too_little_noise() -> None:
    seen = facts(runs(sigma=0.8))
    found = effective_noise(seen)
    assert found.status is Status.FAILED
    assert "at most 0.8" in found.reason
    assert effective_clipping(seen).status is Status.NOT_APPLICABLE


def test_a_record_that_moves_too_much_is_a_fault_of_clipping() -> None:
    found = facts(runs(moved=6.0))
    assert effective_clipping(found).status is Status.FAILED
    assert effective_noise(found).status is not Status.FAILED


def test_records_that_hardly_move_anything_test_nothing() -> None:
    found = facts(runs(moved=0.5))
    assert effective_noise(found).status is Status.NOT_APPLICABLE


def test_a_tensor_without_noise() -> None:
    found = effective_noise(facts(runs(silent=("bias",))))
    assert found.status is Status.FAILED
    assert "bias" in found.reason


@pytest.mark.parametrize(
    "others",
    [
        {"before": 12 * 1010},  # it may have been drawn before the training,
        {"window": {"normal": 0, "other": 5000}},  # or before the batch, of uniform numbers,
        {"unseen": True},  # or by a function that nobody sees
    ],
)
def test_noise_that_may_be_elsewhere_accuses_nobody(others: dict[str, Any]) -> None:
    found = facts(runs(silent=tuple(SIZES), **others))
    assert effective_noise(found).status is Status.NOT_APPLICABLE


def test_steps_without_noise_on_other_data_may_be_public() -> None:
    lines = runs()
    for run in (1, 2, 3):
        for one in lines[run][::2]:
            one["source"] = 1
            if run != 2:
                one["squares"] = {"gradient": dict.fromkeys(SIZES, 0.0)}
    found = facts(lines)
    assert effective_noise(found).status is Status.NOT_APPLICABLE
    for run in (1, 2, 3):  # the same steps on the data of the others
        for one in lines[run]:
            one["source"] = 0
    assert effective_noise(facts(lines)).status is Status.FAILED
    for run in (1, 2, 3):  # on records of it that no other step takes
        for one in lines[run][::2]:
            one["members"] = [4, 5, 6]
    assert effective_noise(facts(lines)).status is Status.NOT_APPLICABLE


def test_a_run_that_took_fewer_steps_tells_of_the_record_unless_it_failed() -> None:
    lines = runs()
    lines[2].append({"training": 1, "end": 5, "fewer": True})
    stopped, crashed = facts(lines).replay, facts(lines, failed=2).replay
    assert stopped is not None
    assert stopped.ends == ["another record of every batch: 5 steps, not 12"]
    assert crashed is not None
    assert not crashed.ends
    assert "another record of every batch: it ended with exit code 1" in crashed.untested


def test_noise_that_repeats() -> None:
    lines = runs()
    for one in lines[1][1:]:
        one["again"] = 1.0
    assert effective_noise(facts(lines)).status is Status.FAILED


def test_noise_that_takes_off_that_of_the_step_before() -> None:
    lines = runs()
    for one in lines[1][1::2]:
        one["again"] = -1.0
    assert effective_noise(facts(lines)).status is Status.FAILED


def test_noise_that_is_not_followed_is_not_held() -> None:
    lines = runs()
    for one in lines[3]:
        one["squares"] = {"gradient": dict.fromkeys(SIZES, 0.0)}
    assert effective_noise(facts(lines)).status is Status.NOT_APPLICABLE


def test_streams_that_part_are_not_compared() -> None:
    lines = runs(moved=50.0)
    for one in lines[2]:
        one["parted"] = "random streams"
    assert effective_clipping(facts(lines)).status is Status.NOT_APPLICABLE


def test_noise_on_weights_between_steps_is_not_taken_for_noise_of_gradients() -> None:
    """Gradients differ by little there, for they are those of other weights."""
    lines = runs(sigma=0.01)
    for one in lines[1]:
        one["differs"] = [["weights: weight", 0.01]]
    assert effective_noise(facts(lines)).status is Status.NOT_APPLICABLE


def test_a_step_after_one_that_drew_within_itself_is_not_compared() -> None:
    lines = runs()
    for run in (1, 2, 3):
        lines[run][4] |= {"within": False, "place": "gradient"}
        for at in range(5, STEPS):
            lines[run][at] |= {"within": True, "place": "weights", "drawn": {"gradient": False, "weights": False}}
    lines[1][5]["squares"] = {"gradient": {"weight": 1e-6, "bias": 1e-8}}  # at other weights
    found = facts(lines)
    assert effective_noise(found).status is Status.PASSED
    assert found.effective is not None
    assert found.effective.step != 6


def test_states_that_differ_with_other_noise_as_well_accuse_nobody() -> None:
    lines = runs()
    for one in lines[2]:
        one["differs"] = [["buffers: mean", 0.1]]
    replay = facts(lines).replay
    assert replay is not None
    assert [one.what for one in replay.states] == ["buffers"]
    lines[1][0]["differs"] = [["buffers: mean", 0.1]]
    replay = facts(lines).replay
    assert replay is not None
    assert not replay.states


def test_batches() -> None:
    lines = runs()
    equal = effective_sampling(facts(lines))
    assert equal.basis is Basis.HINT  # nobody said that these are Poisson samples
    for one in lines[1]:
        one["size"] = 64
    larger = effective_sampling(facts(lines))
    assert larger.status is Status.FAILED
    assert larger.basis is None
    for one in lines[1]:
        one["loader"] = False  # taken by index: perhaps not for the step
    assert effective_sampling(facts(lines)).basis is Basis.HINT
