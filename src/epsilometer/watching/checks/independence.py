"""Noise that repeats itself can be taken off: it must be fresh in every layer and every step."""

from __future__ import annotations

import numpy as np
from scipy import special

from epsilometer.watching.checks.check import CHANCE, Finding, failed, not_applicable, passed
from epsilometer.watching.checks.correlation import chance_of, chance_of_sum
from epsilometer.watching.checks.noise_scale import no_noise
from epsilometer.watching.facts import Comparison, Facts

_REMEDY = "draw all noise from one generator that nobody seeds again between layers or steps"


def independence(facts: Facts) -> Finding:
    noise = facts.noise
    assert noise is not None
    if not noise.parameters:
        return not_applicable(no_noise(facts))
    tests = sum(one.tests for one in noise.comparisons)
    if not tests:
        return not_applicable("one step of one parameter: nothing to compare")
    worst = min(noise.comparisons, key=_chance)
    if _chance(worst) * tests < CHANCE:
        meant = facts.own_optimizer and not worst.same  # as correlated noise would be, by a class that is made for it
        return failed(f"noise that depends on other noise: {worst.what}", "independent noise", _REMEDY, meant=meant)
    return passed(f"{tests} pairs of layers and steps look independent")


def _chance(compared: Comparison) -> float:
    values = [np.array(value) for value in compared.values]
    if compared.measure == "cosine":
        return float(chance_of(*values))
    if compared.measure == "square":
        return float(special.chdtrc(values[1], values[0]))
    if compared.measure == "little":
        return float(special.chdtr(values[1], values[0]))
    return float(chance_of_sum(*values))
