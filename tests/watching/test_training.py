"""One watched training, whatever its framework: numbers, coins, records, and a guard around a privatizer."""

import os
from typing import Any

import numpy as np
import pytest

from epsilometer.arrays import Floats
from epsilometer.errors import InvalidInput
from epsilometer.watching.facts import Facts, Steps
from epsilometer.watching.privatizer import Coins, Ledger, Privatizer, Stated
from epsilometer.watching.recording import Ended, MadePrivate, NotAudited, Record, Step, Told
from epsilometer.watching.settings import Settings
from epsilometer.watching.training import Trainings
from epsilometer.watching.watch import Watch

pytestmark = pytest.mark.filterwarnings("ignore")


class Records(list[Record]):
    """A sink."""

    def take(self, record: Record) -> None:
        self.append(record)

    def here(self) -> "Records":
        return self

    def of(self, kind: type) -> list[Any]:
        return [one for one in self if isinstance(one, kind)]


class Gaussian(Privatizer):
    """Adds the noise that it states, or a share of it."""

    def __init__(self, share: float = 1.0, accountant: Any = None) -> None:
        self.share, self.accountant = share, accountant

    def stated(self) -> Stated:
        return Stated("gaussian", 1.2, 0.5, {"said": True})

    def insert(self, coins: Coins, draw: np.random.Generator) -> Floats:
        return coins + 1.2 * self.share * draw.normal(size=len(coins))

    def accounted(self) -> Ledger | None:
        return None if self.accountant is None else Ledger(self.accountant, [[1.2, 0.1, 7.0]], before=1)

    def facts(self, *, end: bool) -> Facts:
        return Facts(steps=Steps(1, 1))


def trainings(canaries: int = 50, seed: int | None = 3) -> tuple[Trainings, Records]:
    sink = Records()
    return Trainings(sink, Settings(canaries, seed=seed)), sink


def test_what_is_recorded_of_a_training() -> None:
    all_of_them, sink = trainings()
    training = all_of_them.begin(Gaussian())
    for _ in range(3):
        training.play()
    all_of_them.tell()
    all_of_them.finish()
    all_of_them.finish()
    training.play()  # a step after the end is recorded, and changes nothing that was said
    (made,) = sink.of(MadePrivate)
    assert made == MadePrivate(1, "gaussian", 1.2, 0.5, 50, "extra", {"said": True}, own_noise=False)
    assert [len(one.coins) for one in sink.of(Step)] == [50] * 4
    assert len(sink.of(Told)) == 2
    assert sink.of(Ended) == [Ended(1, 0)]


def test_coins_are_of_seed_and_number() -> None:
    drawn = []
    for _ in range(2):
        all_of_them, sink = trainings()
        for _ in range(2):
            all_of_them.begin(Gaussian()).play()
        drawn.append([one.coins for one in sink.of(Step)])
    first, second = drawn
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert not np.array_equal(first[0], first[1])


def test_trainings_that_share_an_accountant_are_counted_together() -> None:
    """Six steps were accounted since they began: three are seen, two by one training and one by the other."""
    all_of_them, sink = trainings()
    shared = object()
    one, other, alone = (all_of_them.begin(Gaussian(accountant=who)) for who in (shared, shared, None))
    one.play()
    one.play()
    other.play()
    alone.play()
    all_of_them.finish()
    assert [(ended.training, ended.unseen) for ended in sink.of(Ended)] == [(1, 3), (2, 3), (3, 0)]


@pytest.mark.parametrize(
    ("name", "broken", "words"),
    [
        ("insert", lambda *_: 1 / 0, "the canaries failed (ZeroDivisionError"),
        ("insert", lambda *_: np.zeros(3), "3 scores of 50 canaries"),
        ("why_not", lambda _: "it is Sunday", "it is Sunday"),
    ],
)
def test_what_fails_is_said_once_and_goes_no_further(
    name: str, broken: Any, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_of_them, sink = trainings()
    training = all_of_them.begin(Gaussian())
    training.play()
    monkeypatch.setattr(Gaussian, name, broken)
    for _ in range(3):
        training.play()
    (lost,) = sink.of(NotAudited)
    assert lost.training == 1
    assert words in lost.reason
    assert len(sink.of(Step)) == 1


def test_a_privatizer_that_cannot_say_what_it_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gaussian, "stated", lambda _: 1 / 0)
    monkeypatch.setattr(Gaussian, "accounted", lambda _: 1 / 0)
    all_of_them, sink = trainings()
    all_of_them.begin(Gaussian()).play()
    all_of_them.finish()
    (lost,) = sink.of(NotAudited)
    assert (lost.training, lost.reason) == (
        0, "the hook of a training that begins failed (ZeroDivisionError: division by zero)",
    )  # fmt: skip


def test_a_forked_copy_counts_anew_and_its_parents_trainings_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    all_of_them, sink = trainings()
    training = all_of_them.begin(Gaussian())
    training.play()
    monkeypatch.setattr(os, "getpid", lambda: 1)
    all_of_them.finish()  # of the parent's: nothing to say
    assert not sink.of(Ended)
    training.play()
    assert "forked after the training began" in sink.of(NotAudited)[0].reason
    assert all_of_them.begin(Gaussian()).number == 1


def test_checks_alone_need_no_canaries() -> None:
    all_of_them, sink = trainings(canaries=0)
    training = all_of_them.begin(Gaussian())
    training.play()
    assert (training.seen, sink.of(Step)) == (1, [])


def test_a_watch_of_a_loop_of_ones_own() -> None:
    for share, outcome in ((1.0, "inconclusive"), (0.5, "violated")):
        watch = Watch(seed=1, quiet=True)
        assert str(watch) == "epsilometer: nothing was made private"
        training = watch.begin(Gaussian(share))
        for _ in range(20):
            training.play()
        watch.finish()
        assert watch.verdict.outcome == outcome
        assert str(watch).startswith(f"epsilometer: training 1: {outcome}")
        assert "ε: not measured, because no accountant's history was seen" in str(watch)
        assert [one["steps"] for one in watch.result()] == [20]
        if outcome == "inconclusive":  # no comfort where no check could look
            assert "clipping, sampling and accounting are untested (nothing has tested it)" in watch.verdict.reason


@pytest.mark.parametrize(
    ("argument", "value"),
    [("canaries", 0), ("canaries", 10**9), ("confidence", 1.0), ("delta", 0.0), ("seed", -1), ("ignore", ["smapler"]),
     ("place", "modle")],
)  # fmt: skip
def test_arguments_are_validated_in_one_place(argument: str, value: Any) -> None:
    import optax
    from opacus import PrivacyEngine

    import epsilometer.jax
    import epsilometer.opacus

    ways: dict[str, Any] = {"own": Watch, "opacus": lambda **given: epsilometer.opacus.watch(PrivacyEngine(), **given)}
    if argument != "place":
        stated = {"noise_multiplier": 1.0, "clip_norm": 1.0}
        ways["jax"] = lambda **given: epsilometer.jax.watch(optax.sgd(0.1), **stated, **given)
    told = set()
    for way in ways.values():
        with pytest.raises(InvalidInput, match=argument) as error:
            way(quiet=True, **{argument: value})
        told.add(str(error.value))
    assert len(told) == 1
