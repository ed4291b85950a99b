"""Private ridge regression: the subject whose leak is known, and who can attack it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from epsilometer import validate
from epsilometer.adversaries import LearnedScore, RidgeClipBkd
from epsilometer.auditing.kinds.kind import Loading, SubjectKind
from epsilometer.auditing.spec_sections import DataSection, SubjectSection
from epsilometer.claims import Claim, PointClaim
from epsilometer.data import RegressionData, read_pairs
from epsilometer.errors import InvalidInput
from epsilometer.mechanisms import PrivateRidge
from epsilometer.neighbours import Neighbours, require_same_neighbours
from epsilometer.subjects import Faults, RidgeTraining

if TYPE_CHECKING:
    from epsilometer.auditing.spec import Spec

# Where no file is named: along one axis, so that the poison lies along another, and is nearly as strong as any can be.
EXAMPLE = RegressionData("two records", [[1.0, 0.0], [1.0, 0.0]], [1.0, 1.0])
EPSILON = 4.0  # where nothing is said, as for the own DP-SGD


class RidgeSection(SubjectSection):
    """See `PrivateRidge`. Where no limit on `records` is given, it is that of the larger of the two worlds."""

    regularisation: float = 100.0
    records: int | None = None
    calibration: str = "analytic"


def _built(spec: Spec, _: Loading) -> tuple[RidgeTraining, Claim]:
    """Noise as the claimed (ε, δ) needs it."""
    asked, claim, data = spec.part(RidgeSection), spec.claim, _data(spec.data)
    if asked.records is not None and validate.whole("records", asked.records, least=1) <= len(data):
        remedy = "world 1 has one record more than the data"
        raise InvalidInput("records", asked.records, f"more than the {len(data)} records of {data.name}", remedy)
    limit = len(data) + 1 if asked.records is None else asked.records
    epsilon = EPSILON if claim.epsilon is None else claim.epsilon
    ridge = PrivateRidge(asked.regularisation, epsilon, claim.delta, limit, asked.calibration)
    return RidgeTraining(ridge, data, Faults(spec.faults.noise_scale)), _claim(ridge, claim.form, spec.claim.neighbours)


def _claim(ridge: PrivateRidge, form: str | None, said: Neighbours) -> Claim:
    """All that the noise promises, where the sensitivity is right; or the point alone."""
    if said.relation is not ridge.relation:
        raise InvalidInput("relation", said.relation.value, f"{ridge.relation}, for which its sensitivity is known")
    require_same_neighbours("the claim", said, "private ridge regression", ridge.relation)
    return PointClaim(ridge.epsilon, ridge.delta, ridge.relation) if form == "point" else ridge.claim


def _data(section: DataSection) -> RegressionData:
    for key, value in section.model_dump(exclude={"path"}).items():
        if value != getattr(DataSection(), key):
            expected = "nothing: private-ridge needs records with a number each"
            raise InvalidInput(f"data.{key}", value, expected, "name a file (path), or nothing for an example")
    if section.path is None:
        return EXAMPLE
    path = Path(section.path)
    try:
        return RegressionData(path.stem, *read_pairs(path))
    except InvalidInput as error:
        raise error.renamed("data.path") if error.argument == "data" else error from None


PRIVATE_RIDGE = SubjectKind(
    "private-ridge",
    "private ridge regression, whose leak is known",
    RidgeSection,
    _built,
    adversary=RidgeClipBkd.name,
    own_adversaries={kind.name: kind for kind in (RidgeClipBkd, LearnedScore)},
    unused=("model", "training"),
)
