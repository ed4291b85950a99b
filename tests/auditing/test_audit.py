import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsilometer import DpSgdTraining, PairedRuns, PointClaim, Recipe, claim_curve, run, summary
from epsilometer.adversaries import Adversary, Backdoor, Canaries, ClipBkd, Gradient
from epsilometer.auditing import Outcome, Plan, Spec, Verdict, decide, judge, parse_spec, spec_from_dict
from epsilometer.bounds import (
    BestOnSame,
    ClopperPearson,
    EProcess,
    ExactRank,
    Fixed,
    OneRunPoint,
    UnionBound,
    refute_curve,
)
from epsilometer.claims import GaussianClaim, Relation
from epsilometer.data import Dataset, digits
from epsilometer.errors import InvalidInput
from epsilometer.evidence import IN, OUT
from epsilometer.report import to_json
from epsilometer.runs import Inline, MemoryStore, Snapshot, play

QUICK = {"training": {"steps": 10, "sample_rate": 0.3}, "audit": {"trials": 150}}


def quick(**sections) -> Plan:
    return spec_from_dict({**QUICK, **sections}).plan()


@pytest.fixture(scope="module")
def correct():
    return run(quick())


def test_a_correct_training_is_not_accused(correct) -> None:
    assert correct.verdict.outcome is not Outcome.VIOLATED
    assert correct.lower_bound.epsilon < correct.upper_bound.epsilon
    assert correct.noise_limit.noise_multiplier > correct.plan.subject.recipe.noise_multiplier


def test_half_of_the_noise_is_a_violation() -> None:
    result = run(quick(faults={"noise_scale": 0.4}))
    assert result.verdict.outcome is Outcome.VIOLATED
    assert "FAULT INJECTED" in summary(result)
    assert result.noise_limit.noise_multiplier < result.plan.subject.recipe.noise_multiplier


def test_the_same_plan_gives_the_same_result(correct) -> None:
    again = run(quick())
    np.testing.assert_array_equal(again.evidence.in_scores, correct.evidence.in_scores)
    np.testing.assert_array_equal(again.evidence.out_scores, correct.evidence.out_scores)
    assert again.verdict == correct.verdict
    assert again.plan.fingerprint() == correct.plan.fingerprint()


def test_a_trial_is_a_pure_function_of_plan_world_and_index(correct) -> None:
    plan = correct.plan
    trials = [(IN, 7), (OUT, 3), (IN, 0), (IN, 7), (OUT, 149)]
    expected = [(correct.evidence.in_scores if world == IN else correct.evidence.out_scores)[i] for world, i in trials]
    prepared = plan.prepare()
    assert [scores.item() for scores in plan.play(prepared, trials)] == expected
    assert [plan.play(prepared, [trial])[0].item() for trial in trials] == expected
    assert [plan.play(plan.prepare(), [trial])[0].item() for trial in trials] == expected


def test_worlds_and_trials_share_no_randomness(correct) -> None:
    both = np.r_[correct.evidence.out_scores, correct.evidence.in_scores]
    assert len(np.unique(both)) == len(both)
    assert abs(np.corrcoef(correct.evidence.out_scores, correct.evidence.in_scores)[0, 1]) < 0.35
    other = run(quick(audit={"trials": 150, "seed": 1}))
    assert not np.intersect1d(other.evidence.out_scores, correct.evidence.out_scores).size


def test_correct_trainings_are_hardly_ever_accused() -> None:
    """40 audits of a correct training at 80 % confidence: 8 accusations would be the limit's mean."""
    accused = 0
    for seed in range(40):
        plan = quick(audit={"trials": 40, "seed": seed, "confidence": 0.8}, training={"steps": 2, "sample_rate": 0.3})
        tally = play(plan, MemoryStore(), Inline())
        evidence = plan.evidence(tally.results, tally.complete)
        method = replace(plan.planned_method, seed=0)  # what it simulates is then simulated once for all
        accused += method.test(evidence, plan.claim, confidence=plan.confidence).refuted
    assert accused <= 14  # P[Bin(40, .2) > 14] < .01


def test_replace_and_groups_go_all_the_way() -> None:
    result = run(quick(claim={"relation": "replace"}, adversary={"name": "clipbkd", "copies": 2}))
    assert result.lower_bound.group_size == 2
    assert result.lower_bound.relation is result.upper_bound.relation is Relation.REPLACE


def runs(mu: float, n: int) -> PairedRuns:
    rng = np.random.default_rng(5)
    return PairedRuns(rng.normal(size=n), rng.normal(mu, size=n))


@pytest.mark.parametrize(
    ("mu", "n", "outcome"),
    [
        (1.0, 500, Outcome.CONSISTENT),  # a strong attack, enough trials, a true claim
        (1.0, 30, Outcome.INCONCLUSIVE),  # too few trials
        (0.05, 500, Outcome.INCONCLUSIVE),  # too weak an attack
        (2.0, 500, Outcome.VIOLATED),
    ],
)
def test_the_verdict_needs_power_to_say_consistent(mu: float, n: int, outcome: Outcome) -> None:
    evidence = runs(mu, n)
    found = decide(evidence, refute_curve(evidence, GaussianClaim(1.0)), ExactRank())
    assert found.outcome is outcome


@pytest.mark.parametrize("n", [30, 500])
def test_the_verdict_speaks_of_the_attack_and_not_of_noise(n: int) -> None:
    """Half of the noise need not double an attack's strength, and a training of the user's own may have none."""
    evidence = runs(1.0, n)
    for claim in (GaussianClaim(1.0), PointClaim(4.0, 1e-5)):
        reason = decide(evidence, ExactRank().test(evidence, claim, confidence=0.95), ExactRank()).reason
        assert "twice as strong" in reason
        assert "noise" not in reason


@pytest.mark.parametrize("strategy", [Fixed(0.8), UnionBound(thresholds=(0.2, 0.8, 1.4))], ids=["fixed", "union"])
def test_the_verdict_does_not_depend_on_the_scale_of_scores(strategy) -> None:
    evidence, claim = runs(0.9, 500), GaussianClaim(1.0)

    def verdict(runs: PairedRuns, strategy) -> Verdict:
        method = ClopperPearson(strategy)
        return decide(runs, refute_curve(runs, claim, method=method), method)

    base = verdict(evidence, strategy)
    scaled = PairedRuns(100 * evidence.out_scores + 1000, 100 * evidence.in_scores + 1000)
    at = strategy.threshold if isinstance(strategy, Fixed) else None
    moved = Fixed(100 * at + 1000) if at else UnionBound(thresholds=tuple(100 * t + 1000 for t in strategy.thresholds))
    assert verdict(scaled, moved) == base
    assert base.outcome is Outcome.CONSISTENT
    # A threshold far from all scores cannot see anything, however it lies on another scale.
    assert verdict(scaled, Fixed(1.0)).outcome is Outcome.INCONCLUSIVE


def test_an_estimate_never_accuses() -> None:
    evidence, claim = runs(3.0, 500), GaussianClaim(0.5)
    test = refute_curve(evidence, claim, method=ClopperPearson(BestOnSame()))
    assert test.refuted
    found = decide(evidence, test, ClopperPearson(BestOnSame()))
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "estimate" in found.reason


def test_an_empty_promise_is_inconclusive() -> None:
    noiseless = {"steps": 5, "sample_rate": 0.3, "noise_multiplier": 0.0}
    result = run(quick(training=noiseless, adversary={"name": "clipbkd"}, audit={"trials": 40}))
    assert math.isinf(result.upper_bound.epsilon)
    assert result.verdict.outcome is Outcome.INCONCLUSIVE


def test_a_point_claim_that_theory_does_not_support_is_tested_all_the_same() -> None:
    plan = quick(claim={"epsilon": 0.2}, training={"steps": 10, "sample_rate": 0.3, "noise_multiplier": 0.5})
    assert isinstance(plan.claim, PointClaim)
    assert plan.upper_bound.epsilon > 10
    assert run(plan).verdict.outcome is Outcome.VIOLATED


def test_the_document_has_what_the_schema_promises(correct) -> None:
    document = json.loads(json.dumps(to_json(correct)))
    assert document["schema"] == 1
    promised = ["verdict", "claim", "upper_bound", "lower_bound", "trials", "seconds", "seed", "versions"]
    assert set(promised) <= document.keys()
    assert {"epsilon", "delta", "confidence", "method", "kind", "threshold", "counts"} <= document["lower_bound"].keys()
    assert document["trials"] == {"out": 150, "in": 150}


def test_the_summary_says_it_all(correct) -> None:
    text = summary(correct)
    for word in (
        "training",
        "claim",
        "theory",
        "adversary",
        "certified  ",
        "Quote ε ≥",
        "certified",
        "95 % confidence",
    ):
        assert word in text
    assert text.startswith(correct.verdict.outcome.value)


def test_a_spec_and_a_recipe_have_the_same_defaults() -> None:
    recipe = Recipe(records=1)
    sections = Spec().model.model_dump() | Spec().training.model_dump()
    sections |= {"model": sections.pop("name"), "hidden": tuple(sections["hidden"])}
    del sections["noise_multiplier"], sections["budget"]  # calibrated; decides how many steps there are
    assert sections == {name: getattr(recipe, name) for name in sections}


def test_judging_is_separate_from_playing(correct) -> None:
    assert judge(correct.plan, correct.evidence).verdict == correct.verdict


def test_every_field_of_a_plan_is_in_its_fingerprint() -> None:
    prints = {
        quick(**change).fingerprint()
        for change in (
            {},
            {"claim": {"epsilon": 3.0}},
            {"claim": {"delta": 1e-6}},
            {"claim": {"form": "point"}, "training": {**QUICK["training"], "noise_multiplier": 1.0}}
            | {"claim": {"epsilon": 4.0}},
            {"training": {"steps": 11, "sample_rate": 0.3}},
            {"adversary": {"coordinates": 10}},
            {"audit": {"trials": 151}},
            {"audit": {"trials": 150, "seed": 9}},
            {"audit": {"trials": 150, "bound": "split"}},
            {"faults": {"noise_scale": 0.9}},
            {"model": {"init_seed": 4}},
        )
    }
    assert len(prints) == 11


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ("[claims]\nepsilon = 1.0", "did you mean 'claim'"),
        ("epsilon = 1.0", r"epsilon \(before all sections\) = 1.0: .*it belongs to \[claim\]"),
        ("[audit]\nepsilon = 1.0", r"audit.epsilon = 1.0: .*it belongs to \[claim\]"),
        ('[training]\nmodel = "mlp"', r"\[model\] is a section of its own"),
        ("[training]\nlerning_rate = 1.0", "training.lerning_rate = 1.0.*did you mean 'learning_rate'"),
        ("[training]\nsteps = 1.5", "training.steps = 1.5: expected a whole number"),
        ('[audit]\ntrials = "many"', "audit.trials = 'many': expected a whole number"),
        ("[audit]\ntrials = -3", "audit.trials = -3"),
        ("[audit]\nconfidence = 1.0", "confidence = 1.0"),
        ("[claim]\ndelta = 1.0", "delta = 1.0"),
        ("[claim]\ndelta = 0.0", "delta = 0"),
        ("[claim]\nepsilon = -1.0", "epsilon = -1"),
        ('[claim]\nrelation = "add"', "relation = 'add'"),
        ('[claim]\nform = "pont"', "did you mean 'point'"),
        ('[claim]\nform = "point"\n[training]\nnoise_multiplier = 1.0', "the ε of a point claim"),
        ('[claim]\nform = "curve"\nepsilon = 1.0\n[training]\nnoise_multiplier = 1.0', "not both"),
        ('[adversary]\nname = "gradiant"', "did you mean 'gradient'"),
        ('[adversary]\nname = "clipbkd"\ncoordinates = 3', "adversary.coordinates = 3"),
        ('[data]\nname = "digitz"', "did you mean 'digits'"),
        ('[model]\nname = "logistics"', "did you mean 'logistic'"),
        ('[audit]\nbound = "best"', "did you mean 'best-on-same'"),
        ('[audit]\nbound = "fixed"', "a number exactly when"),
        ('[audit]\naccountant = "gdp"', "one of basic, moments, pld"),
        ("[faults]\nnoise_scale = -1.0", "noise_scale = -1"),
        ("claim = 3", "claim = 3: expected a section"),
        ("[claim", "expected a TOML file .Expected"),
        ("a.b.c = 1", "did you mean|one of"),
        ('"claim\\nfoo" = 1', "one of"),
        ('[adversary]\nname = "gradient"\ncopies = 2', r"a setting of gradient .coordinates, direction.; remove it"),
        ('[adversary]\ndirection = "north"', "adversary.direction = 'north': expected one of dirac, random, watermark"),
        (
            '[access]\nsees = "final-model"',
            "adversary.name = 'gradient'.*also needs every-model; these would work: api",
        ),
        ('[access]\ncontrols = ["records"]', "also needs gradients; these would work: .*clipbkd"),
        ('[access]\ncontrols = ["weights"]', "access.controls = 'weights': expected one of data, gradients"),
        ('[access]\nsees = "nothing"', "access.sees = 'nothing'"),
        ('[adversary]\nname = "gradient-steps"\n[audit]\nbound = "eprocess"', "audit.bound.*gaussian-steps"),
        ('[adversary]\ncoordinates = "x"', "adversary.coordinates = 'x'"),
        ("[training]\nclip_norm = 1e300", "training.clip_norm = 1e.300"),
        ("[model]\nhidden = [1000000000]", "model.hidden = 1000000000"),
        ("[audit]\ntrials = 1000000000000", "audit.trials = 1000000000000"),
        ('[training]\nsampling = "shuffle"\n[claim]\nform = "curve"', "training.sampling = 'shuffle'.*claim a point"),
    ],
)
def test_bad_specs_are_refused_in_words(toml: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        parse_spec(toml).plan()


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_arbitrary_bytes_never_crash_the_spec_parser(content: bytes) -> None:
    try:
        parse_spec(content)
    except InvalidInput as error:
        assert "\n" not in str(error)


values = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.lists(st.integers(), max_size=2)
)
sections = st.sampled_from(["claim", "data", "model", "training", "adversary", "audit", "faults", "x"])
keys = st.sampled_from(["epsilon", "delta", "name", "steps", "trials", "sample_rate", "noise_scale", "threshold", "y"])


@given(st.dictionaries(sections, st.dictionaries(keys, values, max_size=3) | values, max_size=4))
def test_arbitrary_values_never_crash_the_spec(content) -> None:
    try:
        spec_from_dict(content)
    except InvalidInput as error:
        assert "\n" not in str(error)


def test_a_shuffled_training_claims_a_point_and_says_what_theory_lacks() -> None:
    plan = quick(training={**QUICK["training"], "sampling": "shuffle"}, adversary={"name": "clipbkd"})
    assert isinstance(plan.claim, PointClaim)
    assert "proved for Poisson sampling" in str(plan.upper_bound)
    result = run(plan)
    assert result.noise_limit is None
    assert "noise multiplier of" not in summary(result)


def test_the_shown_claim_is_the_claims_own() -> None:
    subject = DpSgdTraining(Recipe(records=1797), digits())
    assert Plan(subject, GaussianClaim(0.1), 1e-5, Gradient()).claimed_epsilon == pytest.approx(0.341, abs=1e-3)
    by_basic = quick(audit={"trials": 150, "accountant": "basic"})
    assert by_basic.claimed_epsilon == pytest.approx(4.0, abs=2e-3)
    with pytest.raises(InvalidInput, match=r"the claim's own δ, 0\.001"):
        Plan(subject, PointClaim(1.0, 1e-3), 1e-5, Gradient())


def test_reprs_fit_on_a_line(correct) -> None:
    for value in (
        correct,
        correct.plan,
        correct.lower_bound,
        correct.test,
        correct.noise_limit,
        correct.plan.subject.data,
    ):
        assert len(repr(value)) < 420
        assert "\n" not in repr(value)


def test_a_plan_needs_matching_records() -> None:
    data, recipe = digits(), Recipe(records=1797)
    subject = DpSgdTraining(recipe, data)
    with pytest.raises(InvalidInput, match="adversary = <class"):
        Plan(subject, GaussianClaim(1.0), 1e-5, Gradient)
    with pytest.raises(InvalidInput, match=r"claim = 4\.0"):
        Plan(subject, 4.0, 1e-5, Gradient())
    with pytest.raises(InvalidInput, match=r"subject = .*a subject such as DpSgdTraining\(recipe, data\)"):
        Plan(recipe, GaussianClaim(1.0), 1e-5, Gradient())
    with pytest.raises(InvalidInput, match="the 1797 records"):
        Plan(DpSgdTraining(Recipe(records=5), data), GaussianClaim(1.0), 1e-5, Gradient())
    assert Plan(subject, GaussianClaim(1.0), 1e-5, ClipBkd()).relation is Relation.ADD_REMOVE


def test_an_eprocess_stops_an_audit_early() -> None:
    """Half of the noise that is claimed: refuted long before all trials are played, and the same after a restart."""
    text = '[audit]\nbound = "eprocess"\ntrials = 400\n[faults]\nnoise_scale = 0.5'
    result = run(parse_spec(text).plan())
    assert result.verdict.outcome is Outcome.VIOLATED
    pairs = len(result.evidence.out_scores)
    assert pairs < 200
    whole = run(parse_spec(text.replace('bound = "eprocess"\n', "").replace("400", str(pairs))).plan())
    np.testing.assert_array_equal(whole.evidence.in_scores, result.evidence.in_scores)


def test_a_target_is_enough() -> None:
    text = '[audit]\nbound = "eprocess"\ntrials = 400\ntarget = 0.2\n[claim]\nepsilon = 8'
    result = run(parse_spec(text).plan())
    assert result.lower_bound.epsilon >= 0.2
    assert len(result.evidence.out_scores) < 400


def test_an_audit_takes_trials_in_their_own_order() -> None:
    """A shuffled e-process would not be valid after an early stop, however the plan was made."""
    plan = parse_spec("").plan()
    assert replace(plan, method=EProcess()).planned_method == EProcess(in_order=True)


def test_another_adversary_may_take_the_place_of_a_specs_own() -> None:
    """A spec that names no method leaves it to the plan: a method for worlds does not fit canaries."""
    plan = parse_spec("[training]\nsteps = 5\n[audit]\nseed = 3").plan()
    assert plan.method is None
    assert plan.planned_method == ExactRank(seed=3)
    assert replace(plan, adversary=Canaries(canaries=50)).planned_method == OneRunPoint(seed=3)
    named = parse_spec('[training]\nsteps = 5\n[audit]\nbound = "exact-rank"').plan()
    with pytest.raises(InvalidInput, match="expected a method for canaries"):
        replace(named, adversary=Canaries(canaries=50))


def test_whoever_watches_is_told_that_trials_are_being_judged() -> None:
    seen: list[Snapshot] = []
    run(parse_spec("[training]\nsteps = 5\n[audit]\ntrials = 20").plan(), seen.append)
    *before, last = seen
    assert before
    assert not any(now.judging for now in before)
    assert last.judging
    assert last.done == last.total == 40


def test_zero_out_needs_batches_that_do_not_depend_on_other_records() -> None:
    """A record more or less would make another batch, or push a natural record out of one: no zero-out neighbour."""
    for sampling in ("shuffle", "fixed-size"):
        spec = spec_from_dict(
            {
                "claim": {"epsilon": 1.0, "relation": "zero-out"},
                "training": {"sampling": sampling, "noise_multiplier": 1.0},
                "adversary": {"name": "clipbkd"},
            }
        )
        with pytest.raises(InvalidInput, match=f"training.sampling = '{sampling}': expected poisson or full"):
            spec.plan()


def test_whatever_decides_a_game_is_in_the_plans_fingerprint() -> None:
    x, y = np.random.default_rng(0).random((40, 16), np.float32), np.arange(40) % 2

    class Dark(Backdoor):
        def perturb(self, images, shape):
            return images * 0.5

    first = Dark

    class Dark(Backdoor):
        def perturb(self, images, shape):
            return images * 0.1

    def fingerprint(shape: tuple[int, ...], adversary: Adversary) -> str:
        data = Dataset("mine", x, y, 2, shape=shape)
        recipe = Recipe(records=40)
        return Plan(DpSgdTraining(recipe, data), claim_curve(recipe), 1e-5, adversary, 2).fingerprint()

    small = {"size": 2, "probes": 3}
    found = [fingerprint((4, 4), Backdoor(**small)), fingerprint((2, 8), Backdoor(**small))]
    found += [fingerprint((4, 4), kind(**small)) for kind in (first, Dark)]
    assert len(set(found)) == 4
    assert fingerprint((4, 4), ClipBkd()) == fingerprint((2, 8), ClipBkd())  # has no eyes for pictures


def test_claims_that_no_audit_can_speak_of_are_refused_at_once() -> None:
    """Their curve would claim ∞, and theory something else."""
    with pytest.raises(InvalidInput, match=r"claim\.epsilon = 1000\.0: expected a number in \(0, 500\]; no audit"):
        spec_from_dict({"claim": {"epsilon": 1000.0}}).plan()
    with pytest.raises(InvalidInput, match=r"training\.noise_multiplier = 0\.05: .* ε ≤ 500 \(it promises"):
        spec_from_dict({"training": {"noise_multiplier": 0.05, "steps": 20}}).plan()
    assert spec_from_dict({"training": {"noise_multiplier": 0.0}}).plan().claimed_epsilon == np.inf


def test_before_the_first_trials_are_done_no_time_is_estimated() -> None:
    """The first group includes compiling; whoever looks is told so, and what is finished says nothing of the kind."""
    told: list[Snapshot] = []
    plan = spec_from_dict({"training": {"steps": 3}, "audit": {"trials": 25}}).plan()
    store = MemoryStore()
    run(plan, told.append, store=store, noise_limit=False)
    assert (told[0].starting, told[0].done, told[0].seconds_left) == ("compiling", 0, None)
    assert not any(now.starting for now in told[1:])
    told.clear()
    run(plan, told.append, store=store, noise_limit=False)
    assert not any(now.starting for now in told)
