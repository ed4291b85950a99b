"""Every parameter has the noise that is accounted: weights and biases, in every step."""

from __future__ import annotations

from dataclasses import replace

from scipy import special

from epsilometer.watching.checks.check import CHANCE, Finding, failed, not_applicable, passed
from epsilometer.watching.facts import Facts, WeighedNoise

_SLACK = 1.02  # of μ²: noise is weighed with an error
_ROUNDING = 1.001  # of C²
_REMEDY = "let DPOptimizer.add_noise treat every parameter with σ·C; nothing may change p.grad after it"


def noise_scale(facts: Facts) -> Finding:
    noise = facts.noise
    assert noise is not None
    if not noise.parameters:
        return not_applicable(no_noise(facts))
    if noise.coarse:
        return not_applicable(f"gradients are {noise.coarse}: rounding is of the size of noise")
    silent = [w for w in noise.parameters if w.missing]
    if silent:
        first = max(silent, key=lambda w: w.missing)
        found = f"{first.name} has no noise in {first.missing} of {first.steps} steps ({_others(silent)})"
        return failed(found, "noise in every parameter and step", _REMEDY, meant=noise_elsewhere(facts))
    adaptive = facts.accounted is not None and facts.accounted.adaptive
    if noise.least_drawn < 1 - 1e-6 and not adaptive:
        found = f"noise was drawn with × {noise.least_drawn:.3g} of the noise multiplier that was accounted"
        return failed(found, "noise for what is accounted", "leave optimizer.noise_multiplier alone in a step")
    tests = 2 * len(noise.parameters)
    weak = [w for w in noise.parameters if _too_little(w, tests)]
    if weak:
        first = min(weak, key=noise_ratio)
        least = min(noise_ratio(first), (first.least / first.size) ** 0.5)
        found = f"{first.name} has noise × {noise_ratio(first):.3g} over {first.steps} steps, × {least:.3g} in one"
        return failed(f"{found} ({_others(weak)})", "× 1: deviation σ·C", _REMEDY, meant=may_be_meant(facts))
    ratios = [noise_ratio(w) for w in noise.parameters]
    return passed(
        f"noise × {min(ratios):.3g} to × {max(ratios):.3g} of σ·C in {len(ratios)} parameters{_more(noise.parameters)}"
    )


def may_be_meant(facts: Facts) -> bool:
    """May less noise than is stated be right: because some came in elsewhere, or records add less?"""
    return noise_elsewhere(facts) or _clipped_accordingly(facts)


def no_noise(facts: Facts) -> str:
    """Why there is none to look at."""
    return "noise multiplier 0" if facts.steps is not None and facts.steps.taken else "no private step was taken"


def noise_elsewhere(facts: Facts) -> bool:
    """May noise have come in before or after the place where it is weighed?"""
    changed = facts.kept is not None and bool(facts.kept.changed)
    return changed or (facts.clipping is not None and facts.clipping.idle > 0)


def _clipped_accordingly(facts: Facts) -> bool:
    """Is less noise where records add less, so that all together are hidden as well as is stated? μ² = Σ(Cᵢ/σᵢ)²."""
    noise, clipping = facts.noise, facts.clipping
    if noise is None or clipping is None or not clipping.limit > 0:
        return False
    times = (clipping.limit / max(clipping.added, 1e-9)) ** 2
    less = [replace(one, squares=times * one.squares, least=times * one.least) for one in noise.parameters]
    if times > _ROUNDING and not any(_too_little(one, 2 * len(less)) for one in less):
        return True  # less of both, everywhere
    if len(clipping.alone) != len(noise.parameters) or not all(one.squares for one in noise.parameters):
        return False
    shares = zip(clipping.alone, noise.parameters, strict=True)
    return sum((added / clipping.limit / noise_ratio(weighed)) ** 2 for added, weighed in shares) <= _SLACK


def _too_little(weighed: WeighedNoise, tests: int) -> bool:
    """Less than chance allows, over all steps or in one of them."""
    if special.chdtr(weighed.size * weighed.steps, weighed.squares) < CHANCE / tests:
        return True
    return bool(special.chdtr(weighed.size, weighed.least) < CHANCE / tests / weighed.steps)


def _more(parameters: list[WeighedNoise]) -> str:
    """Too much noise is no harm to privacy, but worth a word."""
    most = max(special.chdtri(w.size * w.steps, CHANCE / len(parameters)) / w.squares < 1 for w in parameters)
    return "; more than is accounted" if most else ""


def noise_ratio(weighed: WeighedNoise) -> float:
    return float((weighed.squares / (weighed.size * weighed.steps)) ** 0.5)


def _others(parameters: list[WeighedNoise]) -> str:
    return "1 parameter" if len(parameters) == 1 else f"{len(parameters)} parameters"
