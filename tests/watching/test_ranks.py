"""Steps that several processes take together: what each rank gave is added up, and judged as one training."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_watch import SCRIPTS, watch

from epsilometer.watching.facts import Facts, Noise, Sampling, Steps
from epsilometer.watching.facts_together import Spent
from epsilometer.watching.monitor import Monitor
from epsilometer.watching.recording import Ended, MadePrivate, Shared, Told, decode, encode
from epsilometer.watching.sealed import seal, unseal
from epsilometer.watching.settings import SECRET
from epsilometer.watching.watched import Watched

SIZES, STEPS, RECORDS, WORLD = [600, 40], 12, 400, 2
RANKS = [sys.executable, "-W", "ignore", str(SCRIPTS / "ranks.py")]


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRET, "of this test")


def monitored(
    noise: tuple[float, ...] = (1.0, 0.0),
    *,
    seed: int = 0,
    divided: float = 1.0,
    overlap: int = 0,
    missing: bool = False,
    alone: str = "",
) -> Monitor:
    """Two ranks that add so much noise each, as their recordings say it. Sums are large beside it."""
    rng, monitor, width = np.random.default_rng(seed), Monitor(), sum(SIZES)
    told: list[list[Shared]] = [[], []]
    for step in range(1, STEPS + 1):
        total = rng.normal(0.0, 3.0, (WORLD, width))
        noisy = total + np.array(noise)[:, None] * rng.normal(size=(WORLD, width))
        drawn = rng.permutation(RECORDS)[:50].tolist()
        batches = [drawn[:25], drawn[25 - overlap : 50 - overlap]]
        for rank in range(WORLD):
            if alone == "with the same numbers":
                total[rank], noisy[rank], batches[rank] = total[0], noisy[0], batches[0]
            arrived = noisy[rank] if alone else noisy.sum(axis=0) / (8.0 * WORLD * divided)
            content = np.concatenate([total[rank], noisy[rank], arrived]).astype("<f8").tobytes()
            sealed = seal(content + np.array(batches[rank], "<i8").tobytes())
            one = Shared(1, step, rank, WORLD, "g", ["w", "b"], SIZES, 1.0, 8.0, False, True, True, *sealed)
            told[rank].append(one)
    for rank in range(WORLD):
        source = str(rank)
        if missing and rank:
            continue
        facts = Facts(
            several_processes=True,
            steps=Steps(STEPS, STEPS),
            sampling=Sampling(True, RECORDS, 0.125, 8, [25 + rank] * STEPS, 8.0),
            noise=Noise(0, "", 1.0, [], []),
            spent=Spent(1, [], STEPS, RECORDS, list(range(256))),
        )
        made = MadePrivate(1, "DistributedDPOptimizer", 1.0, 1.0, 200, "extra", {}, own_noise=True)
        for record in (made, *told[rank], Told(1, facts), Ended(1, 0)):
            monitor.take(decode(encode(record)), source)
    monitor.ended()
    return monitor


def noise_of(one: Watched) -> tuple[int | None, int]:
    return one.noise_law.refuted_at, one.noise_law.coordinates


def checks(one: Watched) -> dict[str, tuple[str, str]]:
    return {check.name: (check.status.value, check.reason) for check in one.checks}


@pytest.mark.parametrize("noise", [(1.0, 0.0), (0.0, 1.0), (0.5**0.5, 0.5**0.5), (1.0, 1.0)])
def test_noise_is_that_of_the_sum_whoever_adds_it(noise: tuple[float, ...]) -> None:
    """A rank without noise is no fault, and more than is accounted is none; in none of 20 runs."""
    for seed in range(20 if 1.0 in noise[:1] else 3):
        (one,) = monitored(noise, seed=seed)
        assert noise_of(one) == (None, STEPS * sum(SIZES))
        assert checks(one)["noise-scale"][0] == "passed"
        assert (one.ranks, one.facts.several_processes) == (2, False)


@pytest.mark.parametrize("noise", [(0.0, 0.0), (0.5, 0.0), (0.5, 0.5), (0.9, 0.0)])
def test_too_little_noise_is_found(noise: tuple[float, ...]) -> None:
    (one,) = monitored(noise)
    at, _ = noise_of(one)
    assert at is not None
    assert at <= (10 if max(noise) > 0.5 else 1)


def test_a_record_on_two_ranks_is_found_and_batches_are_added_up() -> None:
    (right,), (wrong,) = monitored(), monitored(overlap=3)
    assert checks(right)["ranks"] == ("passed", "no record was on two of 2 ranks in 12 steps")
    assert right.facts.sampling is not None
    assert right.facts.sampling.sizes == [51] * STEPS
    assert checks(wrong)["ranks"][1].startswith("3 records are on two ranks in step 1, where each adds C twice")
    assert [row.standing for row in wrong.statements if row.statement == "sampling"] == ["broken"]


def test_gradients_that_are_averaged_once_too_often() -> None:
    (right,), (wrong,) = monitored(), monitored(divided=2.0)
    assert checks(right)["reduction"][0] == "passed"
    assert "averaged once too often: divided by 2 more" in checks(wrong)["reduction"][1]
    assert checks(wrong)["noise-kept"][0] == "passed"  # a factor hides nothing and brings nothing back


@pytest.mark.parametrize("why", ["missing", "alone", "with the same numbers", "another key"])
def test_ranks_of_which_nothing_is_known_accuse_nobody(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One was not seen, or each trains by itself, or a recording is judged again."""
    if why == "another key":
        monkeypatch.setattr("epsilometer.watching.ranks.unseal", lambda once, sealed: unseal(once + "0", sealed))
    alone = why if why in ("alone", "with the same numbers") else ""
    found = list(monitored((0.0, 0.0), missing=why == "missing", alone=alone))
    assert len(found) == (1 if why == "missing" else 2)
    assert {one.verdict().outcome.value for one in found} == {"inconclusive"}


def test_what_is_sealed_is_read_by_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    once, sealed = seal(b"a batch")
    assert unseal(once, sealed) == b"a batch"
    assert seal(b"a batch") != (once, sealed)
    monkeypatch.setenv(SECRET, "another")
    assert unseal(once, sealed) != b"a batch"


def training(tmp_path: Path, *options: str, required: str = "consistent") -> tuple[int, dict[str, Any]]:
    """Exit code, and the one training that two processes have."""
    out = tmp_path / "audit"
    seen = watch("--require", required, "--out", str(out), "--", *RANKS, *options, cwd=tmp_path)
    assert seen.stdout == "done\n", seen.stderr
    (one,) = json.loads((out / "result.json").read_text())["trainings"]
    assert one["ranks"] == 2
    assert not list(out.glob("*secret*"))
    return seen.returncode, one


def test_two_processes_with_half_of_the_noise(tmp_path: Path) -> None:
    code, one = training(tmp_path, "--fault", "half", "--steps", "6")
    noise = next(row for row in one["statements"] if row["statement"] == "noise")
    assert (code, one["verdict"], noise["standing"], noise["step"]) == (1, "violated", "broken", 1)


@pytest.mark.full
@pytest.mark.parametrize("mode", ["hooks", "ghost", "fsdp"])
@pytest.mark.parametrize("fault", ["", "every"])
def test_right_trainings_of_two_processes(tmp_path: Path, mode: str, fault: str) -> None:
    if (mode, fault) == ("fsdp", "every"):
        pytest.skip("every rank adds noise to its own part")
    code, one = training(tmp_path, "--mode", mode, "--fault", fault)
    assert (code, one["verdict"]) == (0, "consistent"), one["reason"]
    assert one["epsilon"]["upper_bound"] is not None


@pytest.mark.full
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--fault none", "noise is broken at step 1"),
        ("--fault half --mode ghost", "noise is broken at step 1"),
        ("--fault half --mode fsdp", "noise is broken at step 1"),
        ("--fault shares", "noise is broken at step 1"),
        ("--fault twice", "reduction: gradients are averaged once too often"),
        ("--fault unaccounted", "accounting is broken (by steps): rank 1: 0 steps accounted; expected 10"),
        ("--fault same-records", "records are on two ranks in step 1"),
    ],
)
def test_faults_of_two_processes(tmp_path: Path, options: str, words: str) -> None:
    code, one = training(tmp_path, *options.split())
    assert code == (4 if "twice" in options else 1)
    assert words in one["reason"]


POOL = """
import multiprocessing, sys
sys.path.insert(0, {place!r})

def work(share):
    from script import train, private
    import opacus.optimizers.optimizer as inner
    right = inner._generate_noise
    inner._generate_noise = lambda std, **others: right(std=share * std, **others)
    train(private(), 12)

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.map(work, [0.5, 1.0], chunksize=1)
"""


@pytest.mark.full
def test_a_sweep_in_a_pool_tells_all_though_the_pool_ends_its_workers(tmp_path: Path) -> None:
    from test_watch import PRIVATE

    (tmp_path / "script.py").write_text(PRIVATE)
    (tmp_path / "sweep.py").write_text(POOL.format(place=str(tmp_path)))
    out = tmp_path / "audit"
    ignored = ("--ignore", "composition", "--require", "not-violated")
    seen = watch(*ignored, "--out", str(out), "--", sys.executable, "-W", "ignore", str(tmp_path / "sweep.py"))
    trainings = json.loads((out / "result.json").read_text())["trainings"]
    assert sorted((one["verdict"], one["ended"]) for one in trainings) == [("consistent", True), ("violated", True)]
    assert seen.returncode == 1


@pytest.mark.full
def test_weights_of_two_processes_are_those_without_watch(tmp_path: Path) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    words = [*RANKS, "--weights"]
    plain = subprocess.run(words, check=True, capture_output=True, text=True, cwd=tmp_path, env=environment).stdout
    assert watch("--", *RANKS, "--weights", cwd=tmp_path).stdout == plain
    assert plain.count("weights") == 2
