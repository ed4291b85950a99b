"""Lower bound on ε from the error rates of a threshold test (Jagielski et al. 2020, Nasr et al. 2021)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeVar, cast

import numpy as np

from epsilometer import validate
from epsilometer.arrays import Floats
from epsilometer.bounds.method import MEANING, require_method_input
from epsilometer.bounds.rates import epsilon_from_rates, gaussian_strength
from epsilometer.bounds.result import ClaimTest, ErrorPair, Kind, LowerBound
from epsilometer.bounds.simulated_audits import share_refuted
from epsilometer.bounds.thresholds import Objective, ThresholdStrategy, UnionBound, certified_pair
from epsilometer.bounds.ties import Draws
from epsilometer.claims import Claim
from epsilometer.errors import InvalidInput
from epsilometer.evidence import Counts, PairedRuns, require_evidence
from epsilometer.neighbours import require_same_neighbours

Found = TypeVar("Found", LowerBound, ClaimTest)


def clopper_pearson(
    evidence: PairedRuns | Counts,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    thresholds: ThresholdStrategy | None = None,
    direction: str = "higher",
) -> LowerBound:
    """The certified ε of the best error pair: limits on FPR and FNR, then the region of (ε, δ)-DP.

    `thresholds` says how the test was or is to be chosen from scores (default `UnionBound()`); counts come
    from a test chosen beforehand. `direction` says which scores mean "member": "either" tries both and pays
    for it. The set and its complement cost nothing extra: both use the same two limits.

    >>> print(clopper_pearson(Counts(tp=1000, fp=0, fn=0, tn=1000), delta=1e-5))
    ε ≥ 5.600 at δ = 1e-05 (add-remove), certified, 0.95 confidence, clopper-pearson (counts)
    """
    validate.delta(delta)
    require_independent_trials("clopper_pearson", evidence)
    size = evidence.group_size

    def epsilons(fpr_high: Floats, fnr_high: Floats) -> Floats:
        return epsilon_from_rates(fpr_high, fnr_high, delta, size)

    def bound(strategy: ThresholdStrategy | None, sure: float) -> LowerBound:
        pairs, kind, method = error_pairs(evidence, sure, strategy, direction, epsilons)
        values = epsilons(*limits(pairs))
        best = int(np.argmax(values))
        return LowerBound(
            epsilon=float(values[best]),
            delta=delta,
            confidence=confidence,
            relation=evidence.relation,
            unit=evidence.unit,
            method=method,
            kind=kind,
            proof=pairs[best],
            group_size=size,
        )

    draws, found = _by_draws(evidence, thresholds, confidence, bound)
    return draws.decided(found, [one.epsilon for one in found])


def limits(pairs: list[ErrorPair]) -> tuple[Floats, Floats]:
    """The limits of several pairs, as arrays: on FPR and on FNR."""
    return np.array([p.fpr_high for p in pairs]), np.array([p.fnr_high for p in pairs])


def require_independent_trials(method: str, evidence: object) -> None:
    """Refuse evidence of another kind."""
    why = "canaries of one run and natural records are not independent; use a bound made for them"
    require_evidence(method, evidence, (PairedRuns, Counts), "independent trials (PairedRuns or Counts)", why)


def require_nothing_chosen(argument: str, value: object, direction: str) -> None:
    """Counts come from one test: there is nothing left to choose."""
    if value is not None or direction != "higher":
        argument, value = ("direction", direction) if value is None else (argument, value)
        raise InvalidInput(argument, value, "nothing of the kind with counts", "counts already come from a chosen test")


def refute_counts(counts: Counts, claim: Claim, confidence: float = 0.95) -> ClaimTest:
    """Whether the limits of one test, chosen beforehand, lie where the claim allows none."""
    pairs, kind, method = error_pairs(counts, confidence, None, "higher", gaussian_strength)
    return refute_by_pairs(pairs, claim, counts.group_size, confidence, method, kind)


def refute_by_pairs(
    pairs: list[ErrorPair], claim: Claim, group_size: int, confidence: float, method: str, kind: Kind
) -> ClaimTest:
    """The claim is refuted if any of the pairs, whose limits hold at once, lies beyond it."""
    fpr_high, fnr_high = limits(pairs)
    allowed = claim.max_tpr(fpr_high, group_size)
    # The pair that goes furthest beyond the claim, or comes nearest to it, on a scale that is fair to the tails.
    with np.errstate(invalid="ignore"):
        ahead = gaussian_strength(fpr_high, fnr_high) - gaussian_strength(fpr_high, 1.0 - allowed)
    best = int(np.argmax(np.where(np.isnan(ahead), -np.inf, ahead)))
    return ClaimTest(
        refuted=bool(np.any(1.0 - fnr_high > allowed)),
        claim=claim,
        confidence=confidence,
        method=method,
        kind=kind,
        proof=pairs[best],
        claimed_tpr=float(allowed[best]),
    )


@dataclass(frozen=True)
class ClopperPearson:
    """Clopper–Pearson limits on both rates of thresholds that a strategy chooses; a method for scores."""

    thresholds: ThresholdStrategy = field(default_factory=UnionBound)
    name: ClassVar[str] = "clopper-pearson"
    evidence_type: ClassVar[type] = PairedRuns

    @property
    def kind(self) -> Kind:
        return self.thresholds.kind

    def bound(
        self, evidence: PairedRuns, *, delta: float = 0.0, confidence: float = 0.95, direction: str = "higher"
    ) -> LowerBound:
        return clopper_pearson(
            evidence, delta=delta, confidence=confidence, thresholds=self.thresholds, direction=direction
        )

    def test(
        self, evidence: PairedRuns, claim: Claim, *, confidence: float = 0.95, direction: str = "higher"
    ) -> ClaimTest:
        require_same_neighbours("the claim", claim.neighbours, "the evidence", evidence.neighbours)

        def test(strategy: ThresholdStrategy | None, sure: float) -> ClaimTest:
            pairs, kind, method = error_pairs(evidence, sure, strategy, direction, gaussian_strength)
            return refute_by_pairs(pairs, claim, evidence.group_size, confidence, method, kind)

        draws, found = _by_draws(evidence, self.thresholds, confidence, test)
        return draws.decided(found, [one.refuted for one in found])

    def power(
        self,
        claim: Claim,
        truth: Claim,
        *,
        out_trials: int,
        in_trials: int,
        confidence: float = 0.95,
        group_size: int = 1,
    ) -> float:
        return share_refuted(self, claim, truth, out_trials, in_trials, confidence, group_size)

    def as_seen_by(self, evidence: PairedRuns) -> ClopperPearson:
        return ClopperPearson(self.thresholds.on_rate_scale(evidence))


def error_pairs(
    evidence: PairedRuns | Counts,
    confidence: float,
    thresholds: ThresholdStrategy | None,
    direction: str,
    objective: Objective,
) -> tuple[list[ErrorPair], Kind, str]:
    """Error pairs whose limits hold at once with `confidence`, their kind, and the method's name."""
    alpha = 1.0 - validate.confidence(confidence)
    if not evidence.has_scores:
        require_nothing_chosen("thresholds", thresholds, direction)
        return [certified_pair(None, cast(Counts, evidence), alpha)], Kind.CERTIFIED, "clopper-pearson (counts)"
    strategy = UnionBound() if thresholds is None else thresholds
    if isinstance(strategy, type) or not hasattr(strategy, "error_pairs"):
        raise InvalidInput("thresholds", strategy, "a strategy such as Split() or UnionBound()")
    pairs: list[ErrorPair] = []
    for part in require_method_input("clopper_pearson", cast(PairedRuns, evidence), confidence, direction):
        used = strategy if part.higher else strategy.mirrored()
        found = used.error_pairs(part.evidence, part.alpha, objective)
        pairs += found if part.higher else [_turned(pair) for pair in found]
    return pairs, strategy.kind, f"clopper-pearson ({strategy.name}{MEANING[direction]})"


def _by_draws(
    evidence: PairedRuns | Counts,
    thresholds: ThresholdStrategy | None,
    confidence: float,
    judge: Callable[[ThresholdStrategy | None, float], Found],
) -> tuple[Draws, list[Found]]:
    """What each draw of a strategy that draws finds, at its share of α; others do not draw."""
    several = None if isinstance(thresholds, type) else getattr(thresholds, "several", None)
    if several is None or not evidence.has_scores:  # counts, or what is refused where it is used
        return Draws(), [judge(thresholds, confidence)]
    draws, strategies = several(evidence)
    # Whatever a strategy draws pays its price; the usual price of 1 must not round the confidence.
    sure = confidence if draws.price == 1.0 else 1.0 - draws.price * (1.0 - validate.confidence(confidence))
    return draws, [judge(one, sure) for one in strategies]


def _turned(pair: ErrorPair) -> ErrorPair:
    """A pair of scores whose sign was turned, in the words of the scores as they were given."""
    return replace(pair, threshold=None if pair.threshold is None else -pair.threshold, higher=False)
