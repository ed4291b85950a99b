"""A subject may promise whatever dp-accounting composes, and is judged against its curve."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import dp_accounting as dp
import numpy as np
import pytest

from epsilometer.accounting import DpSgd, PartsPromise, StepsPromise
from epsilometer.accounting.renyi import log_mixture
from epsilometer.adversaries import Adversary, Game, two_worlds
from epsilometer.auditing import Plan, run
from epsilometer.claims import PointClaim, Relation
from epsilometer.errors import InvalidInput
from epsilometer.report import summary, to_json
from epsilometer.subjects import Access, Insertion, Observer, Sees, Subject, ThreatModel

RATE, SIGMA, LAPLACE = 0.5, 0.8, 1.0


@dataclass(frozen=True)
class People:
    count: int
    name: str = "people"

    def __len__(self) -> int:
        return self.count

    def fingerprint(self) -> str:
        return str(self.count)


@dataclass(frozen=True, eq=False)
class Survey(Subject):
    """How many of a sample there are, with normal noise; and how many there are at all, with Laplace noise."""

    data: People
    noise_scale: float = 1.0

    @property
    def grants(self) -> Access:
        return Access(Sees.RELEASE, ["records"])

    @property
    def promise(self) -> PartsPromise:
        sampled = dp.PoissonSampledDpEvent(RATE, dp.GaussianDpEvent(SIGMA))
        return PartsPromise.of(dp.ComposedDpEvent([sampled, dp.LaplaceDpEvent(LAPLACE)]))

    def describe(self) -> str:
        return "a survey"

    def identity(self) -> dict[str, Any]:
        data = {"name": self.data.name, "records": len(self.data), "sha256": self.data.fingerprint()}
        return {"data": data, "subject": {"noise_scale": self.noise_scale}}

    def run(self, insertions: Sequence[Insertion], seeds: Sequence[Any], observers: Sequence[Observer]) -> None:
        for insertion, seed, observer in zip(insertions, seeds, observers, strict=True):
            rng, people = np.random.default_rng(seed), len(insertion.data)
            sampled = float(rng.random() < RATE) * (people - len(self.data))  # the others' sample is known
            noise = self.noise_scale * np.array([SIGMA * rng.normal(), LAPLACE * rng.laplace()])
            observer.finish(np.array([sampled, people]) + noise)

    def rehearse(self, data: Any, seeds: Sequence[Any], *, noiseless: bool = False) -> list[Any]:
        return []


@dataclass(frozen=True)
class OneMore(Adversary):
    """The exact likelihood ratio of both releases."""

    name: ClassVar[str] = "one-more"
    summary: ClassVar[str] = "somebody is there or not"
    threat: ClassVar[ThreatModel] = ThreatModel(Sees.RELEASE, ())

    def craft(self, subject: Subject, relation: Relation, prepared: Any) -> Game:
        people = len(subject.data)
        return Game(relation, two_worlds(subject.data, People(people + 1)), lambda: Ratio(people))


class Ratio(Observer):
    def __init__(self, people: int) -> None:
        self._people = people

    def finish(self, model: Any) -> None:
        at = model[:1]
        normal = log_mixture(at, 1.0, RATE, SIGMA) - log_mixture(at, 0.0, RATE, SIGMA)
        far, near = abs(model[1] - self._people), abs(model[1] - self._people - 1)
        self._score = float(normal[0] + (far - near) / LAPLACE)

    def score(self) -> float:
        return self._score


@pytest.mark.parametrize(("noise_scale", "outcome"), [(1.0, "consistent"), (0.5, "violated")])
def test_a_composition_is_audited_and_judged_by_its_curve(noise_scale: float, outcome: str) -> None:
    subject = Survey(People(10), noise_scale)
    result = run(Plan(subject, subject.promise.curve(), 1e-5, OneMore(), trials=3000))
    assert result.verdict.outcome.value == outcome
    assert result.upper_bound is not None
    assert result.upper_bound.epsilon == pytest.approx(subject.promise.curve().epsilon_at(1e-5), rel=0.02)
    assert 1.0 < result.lower_bound.epsilon < result.upper_bound.epsilon  # one threshold says less than the curve
    assert (result.noise_limit, result.family_bound) == (None, None)  # no one number says its noise
    assert "LaplaceDpEvent" in str(to_json(result)["upper_bound"])
    assert "theory" in summary(result)


def test_an_accountant_that_cannot_say_is_refused_before_anything_is_trained() -> None:
    subject = Survey(People(10), float("nan"))
    with pytest.raises(InvalidInput, match="for moments: Gaussian noise"):
        Plan(subject, subject.promise.curve(), 1e-5, OneMore(), accountant="moments")


def test_what_is_no_promise_is_refused() -> None:
    class Vague(Survey):
        promise = PointClaim(1.0, 1e-5)  # type: ignore[assignment]

    with pytest.raises(InvalidInput, match="expected a promise of epsilometer"):
        Plan(Vague(People(3)), PointClaim(1.0, 1e-5), 1e-5, OneMore())


def test_subjects_that_say_a_mechanism_still_promise_it() -> None:
    with pytest.warns(DeprecationWarning, match=r"Old.mechanism is now promise"):

        class Old(Survey):
            @property
            def mechanism(self) -> DpSgd:
                return DpSgd(1.0, 2.0, 1)

            @property
            def caveat(self) -> str:
                return "perhaps"

    assert Old(People(3)).promise == StepsPromise(DpSgd(1.0, 2.0, 1), caveat="perhaps")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert Survey(People(3)).mechanism is None
        assert Survey(People(3)).caveat == ""
    assert [str(one.message).split(",")[0] for one in told] == [
        "Survey.mechanism is now promise.steps", "Survey.caveat is now promise.caveat",
    ]  # fmt: skip
