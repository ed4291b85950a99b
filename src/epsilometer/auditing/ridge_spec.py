"""Private ridge regression as a spec names it: the subject whose leak is known, and who can attack it."""

from __future__ import annotations

from pathlib import Path

from epsilometer import validate
from epsilometer.adversaries import Adversary, LearnedScore, RidgeClipBkd
from epsilometer.claims import Claim, PointClaim
from epsilometer.data import RegressionData, read_pairs
from epsilometer.errors import InvalidInput
from epsilometer.mechanisms import PrivateRidge
from epsilometer.neighbours import Neighbours, require_same_neighbours
from epsilometer.subjects import Faults, RidgeTraining

NAME = "private-ridge"
ADVERSARIES: dict[str, type[Adversary]] = {kind.name: kind for kind in (RidgeClipBkd, LearnedScore)}
# Where no file is named: along one axis, so that the poison lies along another, and is nearly as strong as any can be.
EXAMPLE = RegressionData("two records", [[1.0, 0.0], [1.0, 0.0]], [1.0, 1.0])
EPSILON = 4.0  # where nothing is said, as for the own DP-SGD


def ridge_training(
    regularisation: float,
    records: int | None,
    calibration: str,
    *,
    epsilon: float | None,
    delta: float,
    path: str | None,
    noise_scale: float,
) -> RidgeTraining:
    """Noise as (ε, δ) needs it. Where no limit on `records` is given, it is that of the larger of the two worlds."""
    data = EXAMPLE if path is None else _read(Path(path))
    if records is not None and validate.whole("records", records, least=1) <= len(data):
        remedy = "world 1 has one record more than the data"
        raise InvalidInput("records", records, f"more than the {len(data)} records of {data.name}", remedy)
    limit = len(data) + 1 if records is None else records
    ridge = PrivateRidge(regularisation, EPSILON if epsilon is None else epsilon, delta, limit, calibration)
    return RidgeTraining(ridge, data, Faults(noise_scale))


def ridge_claim(training: RidgeTraining, form: str | None, said: Neighbours) -> Claim:
    """All that the noise promises, where the sensitivity is right; or the point alone."""
    ridge = training.ridge
    if said.relation is not ridge.relation:
        raise InvalidInput("relation", said.relation.value, f"{ridge.relation}, for which its sensitivity is known")
    require_same_neighbours("the claim", said, "private ridge regression", ridge.relation)
    return PointClaim(ridge.epsilon, ridge.delta, ridge.relation) if form == "point" else ridge.claim


def _read(path: Path) -> RegressionData:
    try:
        return RegressionData(path.stem, *read_pairs(path))
    except InvalidInput as error:
        raise error.renamed("data.path") if error.argument == "data" else error from None
