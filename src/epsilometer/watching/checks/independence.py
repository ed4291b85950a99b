"""Noise that repeats itself can be taken off: it must be fresh in every layer and every step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from epsilometer.claims import Floats
from epsilometer.watching.checks.check import CHANCE, Finding, failed, not_applicable, passed
from epsilometer.watching.checks.correlation import chance_of, chance_of_sum, cosines
from epsilometer.watching.checks.noise import NoiseTally, Weighed
from epsilometer.watching.checks.seen import SeenTraining

_SAME = 0.99  # correlation
_REMEDY = "draw all noise from one generator that nobody seeds again between layers or steps"


@dataclass(frozen=True)
class _Pair:
    """The two pieces of noise that are least like independent ones, of `tests` pairs; are they the same?"""

    chance: float
    tests: int
    what: str
    same: bool = True


def independence(seen: SeenTraining) -> Finding:
    tally = seen.noise
    if not tally.loud:
        return not_applicable("noise multiplier 0" if tally.steps else "no private step was taken")
    pairs = [
        *_between_steps(tally),
        *_layer_between_steps(tally),
        *_between_layers(tally),
        *_every_step(tally),
        *_lagged(tally),
    ]
    tests = sum(pair.tests for pair in pairs)
    if not tests:
        return not_applicable("one step of one parameter: nothing to compare")
    worst = min(pairs, key=lambda pair: pair.chance)
    if worst.chance * tests < CHANCE:
        own = not type(seen.optimizer).__module__.startswith("opacus")
        meant = own and not worst.same  # as correlated noise would be, by a class that is made for it
        return failed(f"noise that repeats other noise: {worst.what}", "independent noise", _REMEDY, meant=meant)
    return passed(f"{tests} pairs of layers and steps look independent")


def _between_layers(tally: NoiseTally) -> list[_Pair]:
    products = tally.products
    if products is None or len(products) < 2:
        return []
    lengths = np.sqrt(np.diag(products))
    norms = np.outer(lengths, lengths)
    cosine = np.divide(products, norms, out=np.zeros_like(products), where=norms > 0)
    sizes = np.array([len(prefix) for prefix in tally.prefixes[0]])
    first, second = np.triu_indices(len(products), 1)
    # What only the longer one has makes cosines smaller: the test stays valid.
    sizes *= np.array([w.steps for w in tally.parameters[: len(sizes)]])
    shared = np.minimum(sizes[first], sizes[second])
    chances = chance_of(cosine[first, second], shared)
    i = int(np.argmin(chances))
    names = [w.name for w in tally.parameters]
    what = f"{names[first[i]]} and {names[second[i]]} (correlation {cosine[first[i], second[i]]:.3f})"
    return [_Pair(float(chances[i]), len(first), what, abs(cosine[first[i], second[i]]) > _SAME)]


def _between_steps(tally: NoiseTally) -> list[_Pair]:
    if len(tally.joint) < 2:
        return []
    joint = np.array(tally.joint)
    # What has no noise, always or in a step, has no direction: it would make the others' cosines look unlikely.
    joint = joint[:, (joint != 0).any(axis=0)]
    joint = joint[(joint != 0).all(axis=1)]
    return [] if len(joint) < 2 else [_closest(_even(joint), "all parameters")]


def _layer_between_steps(tally: NoiseTally) -> list[_Pair]:
    if len(tally.prefixes) < 2:
        return []
    layers = zip(*tally.prefixes, strict=True)
    return [_closest(np.array(layer), w.name) for layer, w in zip(layers, tally.parameters, strict=False)]


def _every_step(tally: NoiseTally) -> list[_Pair]:
    """Noise that is the same in all steps adds up; this sees it in a parameter of one coordinate too."""
    if tally.sums is None or tally.loud < 2:
        return []
    found = []
    for row, prefix, weighed in zip(tally.sums, tally.prefixes[0], tally.parameters, strict=False):
        if weighed.steps < 2:
            continue
        chance = float(stats.chi2.sf((row**2).sum() / weighed.steps / _scale(weighed), len(prefix)))
        found.append(_Pair(chance, 1, f"{weighed.name} in all steps"))
    return found


def _lagged(tally: NoiseTally) -> list[_Pair]:
    """Noise that depends a little on the steps before, in one parameter or in all: seen over many steps."""
    found = []
    names = [w.name for w in tally.parameters]
    for lagged in tally.lagged:
        if lagged.products is None or lagged.squares is None:
            continue
        sizes = np.array([len(prefix) for prefix in tally.prefixes[0]])
        scales = np.array([_scale(w) for w in tally.parameters[: len(sizes)]])
        products, squares = lagged.products / scales, lagged.squares / scales
        chances = chance_of_sum(
            np.append(products, products.sum()), np.append(squares, squares.sum()), np.append(sizes, sizes.sum()) * 1.0
        )
        i = int(np.argmin(chances))
        name = "all parameters" if i == len(sizes) else names[i]
        what = f"{name} and {lagged.lag} step{'s' if lagged.lag > 1 else ''} before, over all steps"
        found.append(_Pair(float(chances[i]), len(chances), what, same=False))
    return found


def _scale(weighed: Weighed) -> float:
    """More noise than is accounted is no repetition."""
    return max(weighed.squares / (weighed.size * weighed.steps), 1.0)


def _even(vectors: Floats) -> Floats:
    """Coordinates brought to one scale: a layer that has too little noise is another check's business."""
    scale = np.sqrt((vectors**2).mean(axis=0))
    even: Floats = np.divide(vectors, scale, out=np.zeros_like(vectors), where=scale > 0)
    return even


def _closest(vectors: Floats, name: str) -> _Pair:
    cosine = cosines(vectors)
    first, second = np.triu_indices(len(vectors), 1)
    i = int(np.argmax(np.abs(cosine[first, second])))
    value = float(cosine[first[i], second[i]])
    what = f"{name} in steps {first[i] + 1} and {second[i] + 1} (correlation {value:.3f})"
    return _Pair(float(chance_of(np.array(value), vectors.shape[1])), len(first), what, abs(value) > _SAME)
