"""One verdict by five statements, from recorded facts: which is broken, what ε is left, what would test the rest."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from epsilometer.accounting import DpSgd, account
from epsilometer.cli.app import run
from epsilometer.watching.facts import (
    Accounted,
    Clipping,
    Comparison,
    Facts,
    Kept,
    LayerNorms,
    Mixing,
    Moved,
    Noise,
    OtherSteps,
    Sampling,
    Seeds,
    Steps,
    Target,
    WeighedNoise,
)
from epsilometer.watching.judged import JudgedTraining
from epsilometer.watching.judging import Judging
from epsilometer.watching.monitor import Monitor
from epsilometer.watching.recording import Ended, MadePrivate, Record, Started, Step, Told, Writer
from epsilometer.watching.result import document_of
from epsilometer.watching.settings import Settings

STEPS, SIGMA, RATE, RECORDS = 30, 1.2, 0.1, 1000
SIZES = [int(n) for n in np.random.default_rng(7).binomial(RECORDS, RATE, STEPS)]
RIGHT = Facts(
    steps=Steps(STEPS, STEPS),
    sampling=Sampling(True, RECORDS, RATE, 10, SIZES, None),
    accounted=Accounted([[SIGMA, RATE, STEPS]], STEPS, "RDPAccountant", "rdp", SIGMA, False),
    noise=Noise(
        0, "", 1.0, [WeighedNoise("weight", 50, STEPS, 50.0 * STEPS, 50.0, 0)],
        [Comparison("cosine", [0.1, 32], 10, "steps 1 and 2", False)],
    ),
    kept=Kept(STEPS, {}),
    clipping=Clipping(1.0, 1000.0, 1.0, [1.0], []),
    layers=LayerNorms({"weight (Linear)": 1.0}, ["Linear"], []),
    mixing=Mixing([], 0.0, ""),
    moved=Moved(1, 1, 0, [], 0, []),
    others=OtherSteps([]),
)  # fmt: skip


def records(facts: Facts = RIGHT, noise: float = SIGMA, history: Any = None) -> list[Record]:
    rng, found = np.random.default_rng(0), list[Record]()
    found += [Started(1, ["train.py"], "3.11"), MadePrivate(1, "DPOptimizer", SIGMA, 1.0, 200, "extra", {})]
    for _ in range(STEPS):
        coins = rng.random(200) < 0.5
        found.append(Step(1, coins + rng.normal(0, noise, 200), coins, SIGMA, 1.0))
    spent = [[SIGMA, RATE, STEPS]] if history is None else history
    return [*found, Told(1, facts), Ended(1, 0, spent)]


def watched(facts: Facts = RIGHT, *, judging: Judging | None = None, **recorded: Any) -> JudgedTraining:
    monitor = Monitor(judging)
    for record in records(facts, **recorded):
        monitor.take(record)
    monitor.ended()
    (one,) = monitor
    return one


def changed(**parts: Any) -> Facts:
    return dataclasses.replace(RIGHT, **parts)


def test_all_held_is_consistent_without_replay() -> None:
    one = watched()
    assert [row.standing.value for row in one.statements] == ["held"] * 5
    verdict = one.verdict()
    assert verdict.outcome == "consistent"
    assert verdict.reason.startswith(
        "held: clipping, noise, sampling, accounting; nothing else: held, without replay; "
    )


EPOCHS = -(-sum([100] * STEPS) // RECORDS)
FAULTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "shuffled": (
        {"sampling": dataclasses.replace(RIGHT.sampling, sizes=[100] * STEPS)}, "sampling",
        f"if each record came once in each of {EPOCHS} epochs",
    ),
    "not accounted": (
        {"accounted": dataclasses.replace(RIGHT.accounted, history=[[SIGMA, RATE, 10]], total=10)}, "accounting",
        f"with all {STEPS} steps",
    ),
    "overspent": (
        {"target": Target(1.0, 1e-5, 2.0)}, "accounting", "ε = 2 at δ = 1e-05 is spent where 1 was asked for",
    ),
    "not clipped": (
        {"clipping": Clipping(1.0, 1000.0, 1000.0, [1000.0], [])}, "clipping", "what ε is left is not known",
    ),
    "batch norm": ({"mixing": Mixing(["norm"], None, "")}, "clipping", "what ε is left is not known"),
    "a layer without noise": (
        {"noise": dataclasses.replace(RIGHT.noise, parameters=[WeighedNoise("bias", 9, STEPS, 0.0, 0.0, STEPS)])},
        "noise", "",
    ),
    "noise that comes again": (
        {"seeds": Seeds(None, False, None, True, [[0.1]], back=[11, 1])}, "noise", "what ε is left is not known",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_one_broken_statement_is_a_violation_that_names_it(name: str) -> None:
    parts, statement, left = FAULTS[name]
    history = [[SIGMA, RATE, 10]] if name == "not accounted" else None
    one = watched(changed(**parts), history=history)
    assert [str(row.statement) for row in one.statements if row.standing == "broken"] == [statement]
    verdict = one.verdict()
    assert verdict.outcome == "violated"
    at = " at step 11" if name == "noise that comes again" else ""
    assert verdict.reason.startswith(f"{statement} is broken{at} (by ")
    assert left in verdict.reason
    exceeds = name in ("not accounted", "overspent")
    assert verdict.refuted == f"the stated mechanism{' and the (ε, δ)' if exceeds else ''}: {statement}"
    assert one.quote().startswith(f"broken: {statement}")


def test_what_is_left_is_what_an_accountant_says_of_what_ran() -> None:
    parts, _, _ = FAULTS["not accounted"]
    reason = watched(changed(**parts), history=[[SIGMA, RATE, 10]]).verdict().reason
    found = [float(one) for one in re.findall(r"ε = ([\d.]+) at|, ([\d.]+) accounted", reason)[0] if one]
    assert found[0] == pytest.approx(account(DpSgd(RATE, SIGMA, STEPS), 1e-5).epsilon, abs=1e-3)
    parts, _, _ = FAULTS["shuffled"]
    reason = watched(changed(**parts)).verdict().reason
    (epsilon,) = re.findall(r"ε = ([\d.]+) at", reason)
    assert float(epsilon) == pytest.approx(account(DpSgd(1.0, SIGMA, EPOCHS), 1e-5).epsilon, abs=1e-3)


def test_hints_accuse_nobody_and_name_the_next_command() -> None:
    one = watched(changed(others=OtherSteps([["Adam", False, 3]])))
    verdict = one.verdict()
    assert verdict.outcome == "inconclusive"
    assert verdict.reason.startswith("nothing else is untested (only-private-steps: ")
    assert verdict.reason.endswith("next: --neighbours 2")
    meant = watched(dataclasses.replace(changed(**FAULTS["shuffled"][0]), another_mechanism="adaptive clipping"))
    assert meant.verdict().outcome == "inconclusive"


def test_what_is_untested_has_a_next_command_and_may_be_assumed() -> None:
    unseen = changed(sampling=None)
    verdict = watched(unseen).verdict()
    assert verdict.outcome == "inconclusive"
    assert verdict.reason == "sampling is untested (nothing has tested it); next: --assume sampling"
    assumed = watched(unseen, judging=Judging(assume=("sampling",))).verdict()
    assert assumed.outcome == "consistent"
    assert "assumed by whoever runs the audit: sampling" in assumed.reason
    broken = watched(changed(**FAULTS["shuffled"][0]), judging=Judging(assume=("sampling",))).verdict()
    assert broken.outcome == "violated"


def test_a_process_that_was_lost_is_no_pass() -> None:
    monitor = Monitor()
    for record in records()[:-2]:  # neither facts nor its end
        monitor.take(record)
    monitor.ended()
    (one,) = monitor
    assert one.verdict().outcome == "inconclusive"
    assert "ended before checks were made" in one.verdict().reason
    assert not monitor.supported


def test_the_table_for_a_ci(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same five rows in JUnit and Markdown, from a recording; what was there stays."""
    recorded = tmp_path / "audit"
    recorded.mkdir()
    Settings(seed=1).write(recorded)
    writer, monitor = Writer(recorded / "1-1.jsonl"), Monitor()
    for record in records(changed(**FAULTS["shuffled"][0])):
        writer.take(record)
        monitor.take(record)
    document = document_of(monitor, command=["python", "a|b.py"], exit_code=0, begun="now", seconds=1.0)
    (recorded / "result.json").write_text(json.dumps(document))
    summary, junit = tmp_path / "summary.md", tmp_path / "junit.xml"
    summary.write_text("mine\n")
    words = ["--again", str(recorded), "--summary", str(summary), "--junit", str(junit), "--require", "not-violated"]
    monkeypatch.setattr("sys.argv", ["epsilometer", "watch", *words])
    assert run() == 1
    text = summary.read_text()
    assert text.startswith("mine\n")
    assert "Do not release. Training 1: broken: sampling" in text
    assert "| sampling: broken | " in text
    assert "a|b.py" not in text.split("| | |")[1]  # what comes from outside is escaped
    cases = {case.get("name"): case for case in ElementTree.parse(junit).iter("testcase")}
    assert list(cases) == [
        f"training 1: {name}" for name in ("verdict", "clipping", "noise", "sampling", "accounting", "nothing else")
    ]
    assert {name for name, case in cases.items() if case.find("failure") is not None} == {
        "training 1: verdict", "training 1: sampling",
    }  # fmt: skip
    foreign = tmp_path / "mine.xml"
    foreign.write_text("<mine/>")
    monkeypatch.setattr("sys.argv", ["epsilometer", "watch", "--again", str(recorded), "--junit", str(foreign)])
    assert run() == 2
    assert foreign.read_text() == "<mine/>"
