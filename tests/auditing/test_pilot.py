"""A pilot chooses the adversary; the audit knows nothing of its trials, so that nothing has to be paid for."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy import special, stats

from epsilometer import DpSgdTraining, PairedRuns, PointClaim, Recipe, run
from epsilometer.adversaries import Adversary, Canaries, ClipBkd, Game, two_worlds
from epsilometer.auditing import Plan, choose_adversary, pilot
from epsilometer.bounds import ClopperPearson, EProcess, ExactRank, Fixed, UnionBound
from epsilometer.bounds.one_run import one_run_epsilon
from epsilometer.claims import Relation
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.runs import Inline, Local, MemoryStore, SqliteStore
from epsilometer.subjects import Sees, ThreatModel
from mechanisms import least_favourable

FOUR = [ClipBkd(k, "row") for k in (1, 2, 4, 8)]


def small() -> Dataset:
    rng = np.random.default_rng(0)
    return Dataset("small", rng.normal(size=(50, 6)), rng.integers(0, 3, 50), 3)


def plan(noise: float = 1.0, **changes) -> Plan:
    data = small()
    recipe = Recipe(records=50, steps=5, sample_rate=0.5, sampling="shuffle", noise_multiplier=noise)
    quick = ClopperPearson(UnionBound())
    settings = {"adversary": ClipBkd(), "trials": 40, "seed": 3, "method": quick} | changes
    return Plan(DpSgdTraining(recipe, data), PointClaim(4.0, 1e-5, Relation.REPLACE), 1e-5, **settings)


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by the number of trainings whenever trials are played."""
    counts: list[int] = []
    before = DpSgdTraining.run

    def counting(self: DpSgdTraining, insertions, *rest):
        counts.append(len(insertions))
        return before(self, insertions, *rest)

    monkeypatch.setattr(DpSgdTraining, "run", counting)
    return counts


# -- what is chosen --------------------------------------------------------------------------------------------------


def test_nothing_but_the_adversary_changes() -> None:
    asked = plan()
    choice = choose_adversary(asked, FOUR, pilot=10)
    assert choice.plan.adversary in FOUR
    for field in fields(Plan):
        if field.name != "adversary":
            assert getattr(choice.plan, field.name) == getattr(asked, field.name), field.name
    assert [candidate.adversary for candidate in choice.candidates] == FOUR
    assert choice.chosen.adversary == choice.plan.adversary
    assert choice.chosen.expected == max(candidate.expected for candidate in choice.candidates)
    assert asked.adversary == ClipBkd()  # and the plan that was given stays as it was


def test_who_does_more_is_chosen() -> None:
    """At little noise; a poison that hardly moves the model is no match. Nor does the order matter."""
    weak, strong = ClipBkd(1, "row", norm=1e-3), ClipBkd(1, "row", norm=3.0)
    for order in ([weak, strong], [strong, weak]):
        assert choose_adversary(plan(0.05), order, pilot=20).plan.adversary == strong


def test_the_strongest_of_equals_is_chosen() -> None:
    """None is expected to prove anything at such noise; who lies further apart may yet."""
    choice = choose_adversary(plan(1000.0), FOUR, pilot=10)
    assert {candidate.expected for candidate in choice.candidates} == {0.0}
    assert choice.chosen.strength == max(candidate.strength for candidate in choice.candidates)


@pytest.mark.parametrize(
    ("out_score", "in_score", "strength"),
    [
        (0.0, 0.0, 0.0),
        (0.0, 1.0, math.inf),
        (1.0, 0.0, -math.inf),
        (math.inf, math.inf, 0.0),
        (0.0, math.inf, math.inf),
    ],
)
def test_the_strength_of_worlds_without_spread_is_a_number(out_score: float, in_score: float, strength: float) -> None:
    """Numbers compare; what is not a number would be chosen or not by its place."""
    seen = PairedRuns(np.full(10, out_score), np.full(10, in_score), Relation.REPLACE)
    with np.errstate(invalid="ignore"):
        assert pilot.Candidate(ClipBkd(), seen, 0.0).strength == strength


def test_caution_chooses_better() -> None:
    """k copies of a weak poison lie k times as far apart; whoever takes the largest expectation takes k too small.

    Simulated pilots of 50 trials, judged by what an audit of 500 would prove with the k that was taken, as a share of
    what the best k would: .78 by the largest expectation, .90 with caution.
    """
    rng = np.random.default_rng(0)
    asked, copies, error = plan(trials=500, method=ExactRank(), confidence=0.99), (1, 2, 4, 8), math.sqrt(2 / 50)
    gaps = np.linspace(0, 2, 6)
    spread = np.tile([-1.0, 1.0], 25) * math.sqrt(49 / 50)  # a standard deviation of 1, of 50 scores

    def after(gap: float, nearer: float) -> float:
        return pilot._expected(asked, PairedRuns(spread, spread + gap, Relation.REPLACE), nearer)

    assert after(1.0, pilot.CAUTION) == pytest.approx(after(1.0 - error, 0.0), rel=1e-6)
    promised = [after(gap, 0.0) for gap in gaps]  # by one copy; k of them prove the kth part, or little more
    shares = {}
    for nearer in (0.0, 1.0):
        got = best = 0.0
        for weak in (0.1, 0.15, 0.2):
            truth = np.array([np.interp(k * weak, gaps, promised) / k for k in copies])
            seen = np.array(copies) * weak + error * rng.normal(size=(2000, 4))
            hopes = np.interp(seen - nearer * error, gaps, promised) / copies
            got, best = got + truth[(hopes + 1e-9 * seen).argmax(1)].mean(), best + truth.max()
        shares[nearer] = got / best
    assert shares[0.0] < 0.8, shares
    assert shares[1.0] > 0.85, shares


def test_the_threshold_is_one_that_the_pilot_suggests() -> None:
    choice = choose_adversary(plan(0.05), FOUR, pilot=20)
    pilot_scores = choice.chosen.pilot
    assert pilot_scores.out_scores.mean() < choice.threshold < pilot_scores.in_scores.mean()
    assert ClopperPearson(Fixed(choice.threshold)).bound(pilot_scores).epsilon > 0


def test_worlds_that_lie_apart_are_cut_between_them() -> None:
    """Not at the largest score of world 0, which every other audit's scores are about as likely to exceed."""
    rng = np.random.default_rng(0)
    for spreads in ((1e-3, 1e-3), (1e-3, 0.1), (0.0, 0.0)):
        seen = PairedRuns(rng.normal(0, spreads[0], 10), rng.normal(1, spreads[1], 10), Relation.REPLACE)
        asked = plan()
        choice = pilot.Choice(asked, (pilot.Candidate(asked.adversary, seen, 1.0),))
        assert 0.3 < choice.threshold < 0.7, spreads


def test_worlds_that_overlap_are_cut_where_most_is_proved() -> None:
    rng = np.random.default_rng(0)
    seen = PairedRuns(rng.normal(size=50), rng.normal(1.5, 1, 50), Relation.REPLACE)
    asked = plan(trials=500)
    threshold = pilot.Choice(asked, (pilot.Candidate(asked.adversary, seen, 1.0),)).threshold
    audit = PairedRuns(rng.normal(size=500), rng.normal(1.5, 1, 500))

    def proved(cut: float) -> float:
        return ClopperPearson(Fixed(cut)).bound(audit, delta=1e-5).epsilon

    assert proved(threshold) > 0.75 * max(proved(cut) for cut in np.linspace(-2, 4, 61))
    assert proved(threshold) > proved(0.75)  # halfway between the worlds proves less


def test_spreads_that_differ_by_chance_promise_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wider of two normal worlds has all that lies far out: k would be chosen for that."""
    rng = np.random.default_rng(0)
    asked = plan(trials=500, method=ExactRank())
    likely = special.ndtri((np.arange(500) + 0.5) / 500)
    truth = asked.planned_method.bound(PairedRuns(likely, likely + 0.5), delta=1e-5, confidence=0.95).epsilon
    pilots = [PairedRuns(rng.normal(size=50), rng.normal(0.5, 1, 50), Relation.REPLACE) for _ in range(40)]

    def expected() -> float:
        return float(np.mean([pilot._expected(asked, seen) for seen in pilots]))

    assert expected() == pytest.approx(truth, abs=0.1)
    monkeypatch.setattr(
        pilot, "_spreads", lambda seen: [np.std(scores, ddof=1) for scores in (seen.out_scores, seen.in_scores)]
    )
    assert expected() > truth + 0.2
    monkeypatch.undo()
    few, many = rng.normal(0, 1, 50), rng.normal(0, 3, 50)
    narrow, wide = pilot._spreads(PairedRuns(few, many))
    assert 1.5 < wide / narrow < np.std(many, ddof=1) / np.std(few, ddof=1)


@pytest.mark.parametrize(
    ("adversaries", "trials", "words"),
    [
        ([], 10, "adversaries of paired runs, at least one"),
        ([ClipBkd(), Canaries(10)], 10, "adversaries of paired runs"),
        (FOUR, 9, "pilot = 9: expected a whole number ≥ 10; fewer trials tell adversaries apart by luck only"),
    ],
)
def test_what_cannot_be_chosen_from_is_refused(adversaries: list, trials: int, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        choose_adversary(plan(), adversaries, pilot=trials)


# -- what is played --------------------------------------------------------------------------------------------------


def test_pilot_and_audit_share_no_randomness() -> None:
    store = MemoryStore()
    choice = choose_adversary(plan(trials=20), FOUR, pilot=20, store=store)
    seeds = {one.plan["seed"] for one in store.runs()}
    assert len(seeds) == 1
    assert choice.plan.seed not in seeds
    audit = run(choice.plan).evidence
    seen = choice.chosen.pilot
    assert not np.intersect1d(np.r_[seen.out_scores, seen.in_scores], np.r_[audit.out_scores, audit.in_scores]).size
    # The test has teeth: a pilot with the audit's own seed sees the very trials of the audit.
    same = run(replace(choice.plan, trials=10)).evidence
    np.testing.assert_array_equal(same.in_scores, audit.in_scores[:10])


def test_every_seed_has_a_pilot_of_its_own() -> None:
    first, second = (choose_adversary(plan(seed=seed), FOUR[:1], pilot=10).chosen.pilot for seed in (3, 4))
    assert not np.intersect1d(first.out_scores, second.out_scores).size


def test_one_world_0_is_played_once(trained: list[int]) -> None:
    choice = choose_adversary(plan(), FOUR, pilot=10)
    assert sum(trained) == 10 + 4 * 10
    outs = [candidate.pilot.out_scores for candidate in choice.candidates]
    # Bit for bit what each would have seen by itself.
    own = [choose_adversary(plan(), [adversary], pilot=10).chosen.pilot for adversary in FOUR]
    for found, candidate, alone in zip(outs, choice.candidates, own, strict=True):
        np.testing.assert_array_equal(found, alone.out_scores)
        np.testing.assert_array_equal(candidate.pilot.in_scores, alone.in_scores)


def test_worlds_0_that_differ_are_all_played(trained: list[int]) -> None:
    choice = choose_adversary(plan(), [ClipBkd(k, "label") for k in (1, 2, 4)], pilot=10)
    assert sum(trained) == 3 * 2 * 10
    first, second, _ = (candidate.pilot.out_scores for candidate in choice.candidates)
    assert not np.isclose(first, second).any()


def test_a_game_is_prepared_and_crafted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """To prepare may mean to train; the games of earlier candidates are not needed again."""
    made: dict[str, list[int]] = {"prepare": [], "craft": []}

    def counted(name: str) -> None:
        before = getattr(ClipBkd, name)

        def counting(self: ClipBkd, *arguments):
            made[name].append(self.copies)
            return before(self, *arguments)

        monkeypatch.setattr(ClipBkd, name, counting)

    for name in made:
        counted(name)
    choose_adversary(plan(), [ClipBkd(k, "label") for k in (1, 2, 4, 8)], pilot=10)
    assert made == {"prepare": [1, 2, 4, 8], "craft": [1, 2, 4, 8]}


def test_the_audit_plays_the_attack_that_the_pilot_saw() -> None:
    """Also where it is drawn: how good a poison was says nothing of another one."""
    store = MemoryStore()
    choice = choose_adversary(plan(), [ClipBkd(2)], pilot=10, store=store)  # which rows it replaces is drawn
    (played,) = store.runs()  # the audit is not begun
    seen = store.preparation(played.fingerprint)
    assert seen is not None
    assert seen.to_bytes() == choice.plan.prepare().to_bytes()
    assert seen.to_bytes() != replace(choice.plan, seed=played.plan["seed"]).prepare().to_bytes()


class Stops(Exception):
    pass


def test_a_pilot_resumes(tmp_path, trained: list[int]) -> None:
    whole = choose_adversary(plan(), FOUR, pilot=12)
    needed = sum(trained)

    def until(limit: int):
        def tell(_) -> None:
            if sum(trained) >= limit:
                raise Stops

        return tell

    trained.clear()
    with SqliteStore(tmp_path / "trials.sqlite") as store:
        for limit in (needed // 5, needed // 2):
            with pytest.raises(Stops):
                choose_adversary(plan(), FOUR, pilot=12, store=store, progress=until(limit))
        assert sum(trained) < needed
        again = choose_adversary(plan(), FOUR, pilot=12, store=store)
        assert needed <= sum(trained) <= needed + 2  # each time it goes on, a stored trial may be played again
        played = sum(trained)
        once_more = choose_adversary(plan(), FOUR, pilot=12, store=store)
        assert sum(trained) == played
    for choice in (again, once_more):
        assert choice.plan.fingerprint() == whole.plan.fingerprint()
        for one, other in zip(choice.candidates, whole.candidates, strict=True):
            np.testing.assert_array_equal(one.pilot.in_scores, other.pilot.in_scores)
            np.testing.assert_array_equal(one.pilot.out_scores, other.pilot.out_scores)
            assert one.expected == other.expected


def test_other_processes_choose_the_same() -> None:
    here = choose_adversary(plan(0.05), FOUR[:2], pilot=10, executor=Inline())
    there = choose_adversary(plan(0.05), FOUR[:2], pilot=10, executor=Local(1))
    assert here.plan.fingerprint() == there.plan.fingerprint()
    assert [one.expected for one in here.candidates] == [one.expected for one in there.candidates]


# -- what is expected ------------------------------------------------------------------------------------------------


def test_what_is_expected_is_what_such_scores_give() -> None:
    """Scores N(0, 1) and N(2, 1), as the pilot's are: what is expected is about the mean bound of such audits."""
    rng = np.random.default_rng(0)
    seen = PairedRuns(rng.normal(size=2000), rng.normal(2, 1, 2000))
    for method in (ExactRank(), EProcess()):
        asked = plan(trials=80, method=method)
        drawn = [PairedRuns(rng.normal(size=80), rng.normal(2, 1, 80)) for _ in range(8)]
        mean = np.mean([asked.planned_method.bound(one, delta=1e-5, confidence=0.95).epsilon for one in drawn])
        assert 0.6 * mean < pilot._expected(asked, seen) < 1.8 * mean, method.name
    # Sorted scores would not do: what takes trials in their order sees more than there is.
    likely = pilot.likely_scores(seen, 80)
    in_order = PairedRuns(np.sort(likely.out_scores), np.sort(likely.in_scores))
    assert asked.planned_method.bound(in_order, delta=1e-5, confidence=0.95).epsilon > 2 * mean


# -- the statistics --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Synthetic(Adversary):
    """Scores with the ROC that (ε, 0) allows; each number has randomness of its own."""

    number: int
    name: ClassVar[str] = "synthetic"
    summary: ClassVar[str] = "scores of known ε"
    threat: ClassVar[ThreatModel] = ThreatModel(Sees.FINAL_MODEL, (), "nothing")

    def craft(self, subject, relation, prepared) -> Game:
        nobody: Any = None  # nobody observes: scores are drawn below
        return Game(relation, two_worlds(subject.data, subject.data), lambda: nobody)


@dataclass(frozen=True)
class Accuracy:
    """The binomial bound on how often a fixed threshold is right: exact for (ε, 0), hence no caution hides a fault."""

    threshold: float
    name: ClassVar[str] = "accuracy"
    evidence_type: ClassVar[type] = PairedRuns

    def bound(self, evidence: PairedRuns, *, delta: float, confidence: float) -> SimpleNamespace:
        counts = evidence.counts(self.threshold)
        guesses = counts.in_trials + counts.out_trials
        return SimpleNamespace(epsilon=one_run_epsilon(guesses, guesses, counts.tp + counts.tn, delta, 1 - confidence))


def test_a_choice_by_pilot_needs_no_payment_and_the_best_of_four_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """All four are (ε, 0)-DP and use up all that it allows: a bound above ε is a false one.

    Of 400, where α allows 20 on average: 19 after a pilot, 58 for the best of four, 46 for the best pilot as an audit.
    """
    epsilon, alpha, repetitions = 1.0, 0.05, 400
    mechanism, method = least_favourable(epsilon, 0.0), Accuracy(-1 / (1 + math.e))
    asked = plan(trials=60, confidence=1 - alpha, adversary=Synthetic(0), method=method)
    asked = replace(asked, delta=0.0, claim=PointClaim(epsilon, 0.0))

    def evidence(one: Plan, *_, **__) -> PairedRuns:
        """As pure a function of the plan as trials are."""
        return PairedRuns(*mechanism.draw(np.random.default_rng([one.seed, one.adversary.number]), one.trials))

    def exceeds(found: PairedRuns) -> bool:
        return method.bound(found, delta=0.0, confidence=1 - alpha).epsilon > epsilon + 1e-9

    monkeypatch.setattr(pilot, "run", lambda one, *_, **__: SimpleNamespace(evidence=evidence(one)))
    # Names of 1600 plans and limits on threads of 1600 games that nobody plays were most of the time.
    monkeypatch.setattr(Plan, "canonical_json", lambda one: f"[{one.seed}, {one.adversary.number}]")
    monkeypatch.setattr("epsilometer.auditing.plan.one_thread", nullcontext)
    false = {"chosen by a pilot": 0, "best of four audits": 0, "the pilot as audit": 0}
    chosen = set()
    for seed in range(repetitions):
        one = replace(asked, seed=seed)
        candidates = [Synthetic(number) for number in range(4)]
        choice = choose_adversary(one, candidates, pilot=60)
        chosen.add(choice.plan.adversary.number)
        false["chosen by a pilot"] += exceeds(evidence(choice.plan))
        false["best of four audits"] += any(exceeds(evidence(replace(one, adversary=other))) for other in candidates)
        false["the pilot as audit"] += exceeds(choice.chosen.pilot)
    surprising = {
        name: bool(stats.binomtest(count, repetitions, alpha, alternative="greater").pvalue < 1e-3)
        for name, count in false.items()
    }
    assert surprising == {"chosen by a pilot": False, "best of four audits": True, "the pilot as audit": True}, false
    assert false["chosen by a pilot"] > 0
    assert chosen == {0, 1, 2, 3}
