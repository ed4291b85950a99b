"""Runs in lockstep: nobody is ahead, nobody waits for one that has gone, and memory is as large as one step."""

import threading
import time
from pathlib import Path

import pytest
import torch

from epsilometer.watching.replay.channel import Follow, Lead
from epsilometer.watching.replay.control import Control, Gone, create

STEPS = 30


def tensors(step: int) -> dict[str, torch.Tensor]:
    """From step 10 on there is one more, as an optimizer makes them."""
    found = {"sum:a": torch.full((3, 2), float(step)), "scalar": torch.tensor(step), "empty": torch.zeros(0, 4)}
    return found | ({"late": torch.full((5,), step, dtype=torch.bfloat16)} if step >= 10 else {})


def test_every_step_reaches_every_run(tmp_path: Path) -> None:
    create(tmp_path)
    lead = Lead(tmp_path, 3)
    seen: dict[int, list[int]] = {1: [], 2: []}
    asked: list[int] = []

    def follow(run: int) -> None:
        follower = Follow(tmp_path, run)
        for step in range(STEPS):
            found, text = follower.step()
            expected = tensors(step)
            assert found.keys() == expected.keys()
            assert all(torch.equal(found[name], expected[name]) for name in expected)
            seen[run].append(text["step"])
            follower.done()
            if run == 1:  # slow, and asks as often as the lead
                time.sleep(0.002)
                asked.append(follower.request()["at"])
                if step % 4 == 3:
                    asked.append(follower.request()["at"])
        with pytest.raises(Gone):
            follower.step()

    others = [threading.Thread(target=follow, args=(run,)) for run in seen]
    for one in others:
        one.start()
    expected = []
    for step in range(STEPS):
        lead.wait()
        lead.publish(tensors(step), {"step": step})
        for part in range(2 if step % 4 == 3 else 1):
            lead.request({"at": 10 * step + part})
            expected.append(10 * step + part)
    lead.wait()
    lead.end()
    for one in others:
        one.join(timeout=20)
        assert not one.is_alive()
    assert seen == {1: list(range(STEPS)), 2: list(range(STEPS))}
    assert asked == expected
    assert len(list(tmp_path.glob("block-*"))) <= 3  # the last block, and a line on each


def test_nobody_waits_for_one_that_has_gone(tmp_path: Path) -> None:
    create(tmp_path)
    lead, follower, parent = Lead(tmp_path, 3), Follow(tmp_path, 2), Control(tmp_path)
    parent.set_status(1, 2)  # it has never come
    lead.wait()
    lead.publish(tensors(0), {"step": 0})
    lead.request({})
    lead.request({})
    assert not lead.alone()
    follower.end()
    lead.wait()
    assert lead.alone()
    assert (tmp_path / "control").stat().st_mode & 0o777 == 0o600
    assert all(one.stat().st_mode & 0o077 == 0 for one in tmp_path.glob("block-?"))


def test_a_run_that_does_not_move_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("epsilometer.watching.replay.control._LONGEST", 0.1)
    create(tmp_path)
    lead, follower = Lead(tmp_path, 2), Follow(tmp_path, 1)
    lead.wait()
    lead.publish(tensors(0), {})
    lead.wait()
    assert lead.alone()
    follower.step()
    follower.done()
    with pytest.raises(Gone):
        follower.step()
