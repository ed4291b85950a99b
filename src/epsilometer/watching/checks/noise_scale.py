"""Every parameter has the noise that is accounted: weights and biases, in every step."""

from __future__ import annotations

from scipy import stats

from epsilometer.watching.checks.check import CHANCE, Finding, failed, not_applicable, passed
from epsilometer.watching.checks.clipping import added_alone
from epsilometer.watching.checks.noise import Weighed
from epsilometer.watching.checks.seen import SeenTraining

_SLACK = 1.02  # of μ²: noise is weighed with an error
_REMEDY = "let DPOptimizer.add_noise treat every parameter with σ·C; nothing may change p.grad after it"


def noise_scale(seen: SeenTraining) -> Finding:
    tally = seen.noise
    if not tally.loud:
        return not_applicable("noise multiplier 0" if tally.steps else "no private step was taken")
    if tally.coarse:
        return not_applicable(f"gradients are {tally.coarse}: rounding is of the size of noise")
    silent = [w for w in tally.parameters if w.missing]
    if silent:
        first = max(silent, key=lambda w: w.missing)
        found = f"{first.name} has no noise in {first.missing} of {first.steps} steps ({_others(silent)})"
        return failed(found, "noise in every parameter and step", _REMEDY)
    least_drawn = min(seen.drawn, default=1.0)
    if least_drawn < 1 - 1e-6 and not seen.adaptive:
        found = f"noise was drawn with × {least_drawn:.3g} of the noise multiplier that was accounted"
        return failed(found, "noise for what is accounted", "leave optimizer.noise_multiplier alone in a step")
    tests = 2 * len(tally.parameters)
    weak = [w for w in tally.parameters if _too_little(w, tests)]
    if weak:
        first = min(weak, key=_ratio)
        least = min(_ratio(first), (first.least / first.size) ** 0.5)
        found = f"{first.name} has noise × {_ratio(first):.3g} over {first.steps} steps, × {least:.3g} in one"
        meant = _clipped_accordingly(seen)
        return failed(f"{found} ({_others(weak)})", "× 1: deviation σ·C", _REMEDY, meant=meant)
    ratios = [_ratio(w) for w in tally.parameters]
    return passed(
        f"noise × {min(ratios):.3g} to × {max(ratios):.3g} of σ·C in {len(ratios)} parameters{_more(tally.parameters)}"
    )


def _clipped_accordingly(seen: SeenTraining) -> bool:
    """Is less noise where records add less, so that all together are hidden as well as is stated? μ² = Σ(Cᵢ/σᵢ)²."""
    if seen.ghost or len(seen.noise.parameters) != len(seen.optimizer.params):
        return False
    limit = float(seen.optimizer.max_grad_norm)
    shares = zip(added_alone(seen), seen.noise.parameters, strict=True)
    return sum((added / limit / _ratio(weighed)) ** 2 for added, weighed in shares) <= _SLACK


def _too_little(weighed: Weighed, tests: int) -> bool:
    """Less than chance allows, over all steps or in one of them."""
    if stats.chi2.cdf(weighed.squares, weighed.size * weighed.steps) < CHANCE / tests:
        return True
    return bool(stats.chi2.cdf(weighed.least, weighed.size) < CHANCE / tests / weighed.steps)


def _more(parameters: list[Weighed]) -> str:
    """Too much noise is no harm to privacy, but worth a word."""
    most = max(stats.chi2.isf(CHANCE / len(parameters), w.size * w.steps) / w.squares < 1 for w in parameters)
    return "; more than is accounted" if most else ""


def _ratio(weighed: Weighed) -> float:
    return float((weighed.squares / (weighed.size * weighed.steps)) ** 0.5)


def _others(parameters: list[Weighed]) -> str:
    return "1 parameter" if len(parameters) == 1 else f"{len(parameters)} parameters"
