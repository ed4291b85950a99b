"""A training of the user's own, `train = "mymodule:train"`, in place of [model] and [training]."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pydantic

from epsilometer.accounting import DpSgd, curve
from epsilometer.auditing.kinds.kind import Loading, SubjectKind
from epsilometer.auditing.spec_sections import SubjectSection
from epsilometer.claims import Claim, PointClaim
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.subjects import CallableTraining, Entry

if TYPE_CHECKING:
    from epsilometer.auditing.spec import Spec


class CallableSection(SubjectSection):
    """See `CallableTraining`. If it is DP-SGD, `sample_rate`, `noise_multiplier` and `steps` say what it claims to do,
    and a curve is claimed."""

    train: str
    score: str | None = None
    arguments: dict[str, Any] = pydantic.Field(default_factory=dict)
    isolation: str = "none"
    time_limit: float | None = None
    deterministic: bool = True
    sample_rate: float | None = None
    noise_multiplier: float | None = None
    steps: int | None = None

    def stated(self) -> DpSgd | None:
        """What the training says of itself."""
        given = (self.sample_rate, self.noise_multiplier, self.steps)
        if all(one is None for one in given):
            return None
        for name, one in zip(("sample_rate", "noise_multiplier", "steps"), given, strict=True):
            if one is None:
                expected = "all of sample rate, noise multiplier and steps, or none"
                raise InvalidInput(f"subject.{name}", None, expected, "a curve follows from the three together")
        return DpSgd(*given)  # type: ignore[arg-type]

    def training(self, data: Dataset) -> CallableTraining:
        """The training on these data, if it can be imported."""
        subject = CallableTraining(
            train=Entry.of(self.train, "subject.train"),
            data=data,
            score=None if self.score is None else Entry.of(self.score, "subject.score"),
            arguments=self.arguments,
            isolation=self.isolation,
            time_limit=self.time_limit,
            deterministic=self.deterministic,
            stated=self.stated(),
        )
        subject.code()  # before anything else is done, whether they can be imported
        return subject


def _built(spec: Spec, load: Loading) -> tuple[CallableTraining, Claim]:
    subject = replace(spec.part(CallableSection).training(load()), unit=spec.claim.neighbours.unit)
    return subject, _claim(spec, subject)


def _claim(spec: Spec, subject: CallableTraining) -> Claim:
    """The curve of what the training says of itself; or the point that the spec has."""
    said, epsilon = spec.claim.neighbours, spec.claim.epsilon
    if spec.claim.form == "curve" and subject.stated is None:
        remedy = "add sample_rate, noise_multiplier and steps to [subject]"
        raise InvalidInput("claim.form", "curve", "a training that says how much noise it adds to what", remedy)
    if subject.stated is not None and spec.claim.form != "point":
        if epsilon is not None:
            expected = "nothing where [subject] says the noise: the curve follows from it"
            raise InvalidInput("claim.epsilon", epsilon, expected, 'leave it out, or add form = "point"')
        return curve(subject.stated, said)
    if epsilon is None:
        expected = "the ε that the training claims, or its sample rate, noise multiplier and steps"
        raise InvalidInput("claim.epsilon", None, expected, "a curve needs far fewer trials than a point")
    return PointClaim(epsilon, spec.claim.delta, said.relation, said.unit)


CALLABLE = SubjectKind(
    "callable",
    "a training of your own: train = 'mymodule:train'",
    CallableSection,
    _built,
    adversary="clipbkd",
    key="train",
    least_privileged=True,
    needs_data=True,
)
