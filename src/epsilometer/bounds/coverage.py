"""How often bounds exceed a truth that is known exactly, and how near they come to it.

Least-favourable pairs are the hard cases: their ROC is everything that (ε, δ) allows, so a bound that is too bold by
ever so little is caught. Gaussian scores would prove nothing: at small δ, their ε is out of any attack's reach.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.bounds.catalogue import bound_named
from epsilometer.bounds.methods import METHODS
from epsilometer.bounds.named_method import Settings
from epsilometer.bounds.result import Kind
from epsilometer.claims import PointClaim
from epsilometer.errors import InvalidInput, unknown_name
from epsilometer.evidence import OneRun, PairedRuns
from epsilometer.figures import AlarmRate, FalseAlarms

Sampler = Callable[[np.random.Generator, int], tuple[Floats, Floats]]


@dataclass(frozen=True)
class Mechanism:
    """A pair of worlds of known ε at δ: draws (out, in) scores, of which higher ones mean member."""

    name: str
    epsilon: float
    delta: float
    draw: Sampler
    group_size: int = 1


def least_favourable(epsilon: float, delta: float, group_size: int = 1, levels: int | None = None) -> Mechanism:
    """Out-scores uniform, in-scores with a ROC that is exactly what (ε, δ) allows; optionally rounded to few levels."""
    claim = PointClaim(epsilon, delta)

    def draw(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
        out = rng.random(n)
        member = 1.0 - claim.max_tpr(1.0 - rng.random(n), group_size)  # the inverse of a symmetric ROC
        if levels is not None:
            return np.floor(-out * levels), np.floor(-member * levels)
        return -out, -member

    name = f"least favourable ε={epsilon:g} δ={delta:g}"
    name += f" k={group_size}" if group_size > 1 else ""
    return Mechanism(name + (f", {levels} levels" if levels else ""), epsilon, delta, draw, group_size)


def laplace(epsilon: float, delta: float = 0.0) -> Mechanism:
    """Sensitivity 1, scale 1/ε: δ(ε') = 1 − e^{(ε'−ε)/2}."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
        return rng.laplace(0, 1 / epsilon, n), rng.laplace(1, 1 / epsilon, n)

    return Mechanism(f"Laplace ε={epsilon:g} δ={delta:g}", max(0.0, epsilon + 2 * math.log1p(-delta)), delta, draw)


def mixture(epsilon: float, rate: float) -> Mechanism:
    """The Laplace mechanism on a record that is used with probability `rate`: ε' = ln(1 + rate·(e^ε − 1))."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
        used = rng.random(n) < rate
        return rng.laplace(0, 1 / epsilon, n), rng.laplace(0, 1 / epsilon, n) + used

    true = math.log1p(rate * math.expm1(epsilon))
    return Mechanism(f"Laplace ε={epsilon:g} on a share of {rate:g}", true, 0.0, draw)


def randomized_response(epsilon: float) -> Mechanism:
    """Two scores only: nothing but ties."""
    truth = 1 / (1 + math.exp(-epsilon))

    def draw(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
        return (rng.random(n) > truth).astype(float), (rng.random(n) < truth).astype(float)

    return Mechanism(f"randomized response ε={epsilon:g}", epsilon, 0.0, draw)


def constant() -> Mechanism:
    """One score only."""
    return Mechanism("constant scores", 0.0, 0.0, lambda _, n: (np.ones(n), np.ones(n)))


_FAMILY = "holds for Gaussian mechanisms, and none is measured here"
NOT_MEASURED = {
    "clopper-pearson": "takes counts, and here are scores",
    "gaussian": _FAMILY,
    "one-run-gaussian": _FAMILY,
}

SHOWN = (
    least_favourable(0.0, 0.0),
    least_favourable(1.0, 1e-5),
    least_favourable(4.0, 0.01),
    least_favourable(2.0, 0.01, levels=20),
    laplace(2.0),
    mixture(3.0, 0.1),
    randomized_response(1.0),
)


@dataclass(frozen=True)
class Cell:
    """One bound on one mechanism: how often it exceeded the truth, and its mean as a share of the truth."""

    bound: str
    kind: Kind
    mechanism: str
    epsilon: float
    delta: float
    trials: int
    repetitions: int
    exceeded: int
    mean_bound: float
    alpha: float

    @property
    def rate(self) -> float:
        return self.exceeded / self.repetitions

    @property
    def interval(self) -> tuple[float, float]:
        """Clopper–Pearson, 95 %."""
        k, n = self.exceeded, self.repetitions
        low = float(special.betaincinv(k, n - k + 1, 0.025)) if k else 0.0
        return low, float(special.betainccinv(k + 1, n - k, 0.025)) if k < n else 1.0

    @property
    def tightness(self) -> float | None:
        """Mean bound as a share of the truth; none where the truth is 0."""
        return self.mean_bound / self.epsilon if self.epsilon > 0 else None

    def to_dict(self) -> dict[str, Any]:
        low, high = self.interval
        return {
            "bound": self.bound, "kind": self.kind.value, "mechanism": self.mechanism, "epsilon": self.epsilon,
            "delta": self.delta, "trials": self.trials, "repetitions": self.repetitions, "exceeded": self.exceeded,
            "rate": self.rate, "rate_low": low, "rate_high": high, "mean_bound": self.mean_bound,
            "tightness": self.tightness, "alpha": self.alpha,
        }  # fmt: skip


def false_alarms(cells: Sequence[Cell]) -> FalseAlarms:
    """The numbers of a picture of all."""
    rates = (
        AlarmRate(one.bound, one.mechanism, one.kind is Kind.CERTIFIED, one.exceeded, one.repetitions, *one.interval)
        for one in cells
    )
    return FalseAlarms("How often a bound exceeds the truth", cells[0].alpha, tuple(rates))


def measure_coverage(
    *,
    repetitions: int = 200,
    trials: int = 300,
    alpha: float = 0.05,
    bounds: Sequence[str] | None = None,
    mechanisms: Sequence[Mechanism] = SHOWN,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> list[Cell]:
    """Every bound on every mechanism. Bounds of one run get the same scores, as canaries with fair coins."""
    validate.whole("repetitions", repetitions, least=1, most=10**7)
    validate.whole("trials", trials, least=2, most=10**7)
    validate.whole("seed", seed, least=0)
    possible = [name for name, one in METHODS.own.items() if name not in NOT_MEASURED and not one.needs_mechanism]
    chosen = possible if bounds is None else list(dict.fromkeys(bounds))
    for name in chosen:
        if name in NOT_MEASURED:
            raise InvalidInput("bound", name, f"one of {', '.join(possible)}", f"{name} {NOT_MEASURED[name]}")
        if name not in possible:
            raise unknown_name("bound", name, possible)
    pairs = [(name, mechanism) for name in chosen for mechanism in mechanisms if _applies(name, mechanism)]
    found = []
    for done, (name, mechanism) in enumerate(pairs):
        found.append(_cell(name, mechanism, repetitions, trials, alpha, seed))
        if progress is not None:
            progress(done + 1, len(pairs))
    return found


def _applies(name: str, mechanism: Mechanism) -> bool:
    """Ratio bounds know no δ."""
    return mechanism.delta == 0 or name not in ("katz-log", "bailey")


def _cell(name: str, mechanism: Mechanism, repetitions: int, trials: int, alpha: float, seed: int) -> Cell:
    # Every bound sees the same scores of a mechanism.
    rng = np.random.default_rng([seed, trials, zlib.crc32(mechanism.name.encode())])
    exceeded, total, kind = 0, 0.0, Kind.ESTIMATE
    for _ in range(repetitions):
        out, member = mechanism.draw(rng, trials)
        coins = rng.random(trials) < 0.5
        evidence: PairedRuns | OneRun = PairedRuns(out, member, group_size=mechanism.group_size)
        if OneRun in METHODS[name].evidence_type:
            evidence = OneRun(np.where(coins, member, out), coins, group_size=mechanism.group_size)
        # A threshold that was chosen without the scores: the middle of what this mechanism gives.
        threshold = float(np.median(mechanism.draw(np.random.default_rng(1), 999)[0])) if name == "fixed" else None
        settings = Settings(delta=mechanism.delta, confidence=1.0 - alpha, threshold=threshold)
        result = bound_named(name, evidence, settings)
        exceeded += result.epsilon > mechanism.epsilon + 1e-9
        total += result.epsilon
        kind = result.kind
    return Cell(
        name, kind, mechanism.name, mechanism.epsilon, mechanism.delta, trials, repetitions, exceeded,
        total / repetitions, alpha,
    )  # fmt: skip
