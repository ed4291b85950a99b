"""Which pieces of a training's noise are least like independent ones; how unlikely that is, others work out."""

from __future__ import annotations

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.watching.collect.noise import NoiseTally, Weighed
from epsilometer.watching.facts import Comparison

_SAME = 0.99  # correlation


def comparisons(tally: NoiseTally) -> list[Comparison]:
    if not tally.loud:
        return []
    tally.settle()
    return [
        *_between_steps(tally),
        *_layer_between_steps(tally),
        *_between_layers(tally),
        *_every_step(tally),
        *_within(tally),
        *_lagged(tally),
    ]


def _between_layers(tally: NoiseTally) -> list[Comparison]:
    products = tally.products
    if products is None or len(products) < 2:
        return []
    lengths = np.sqrt(np.diag(products))
    norms = np.outer(lengths, lengths)
    cosine = np.divide(products, norms, out=np.zeros_like(products), where=norms > 0)
    sizes = np.array([len(prefix) for prefix in tally.prefixes[0]])
    sizes *= np.array([w.steps for w in tally.parameters[: len(sizes)]])
    first, second = np.triu_indices(len(products), 1)
    # What only the longer one has makes cosines smaller: the test stays valid.
    shared = np.minimum(sizes[first], sizes[second])
    found = cosine[first, second]
    i = int(np.argmax(-shared * np.log1p(-np.clip(found**2, 0, 1 - 1e-15))))  # about twice the logarithm of its chance
    names = [w.name for w in tally.parameters]
    what = f"{names[first[i]]} and {names[second[i]]} (correlation {found[i]:.3f})"
    return [Comparison("cosine", [float(found[i]), int(shared[i])], len(first), what, bool(abs(found[i]) > _SAME))]


def _between_steps(tally: NoiseTally) -> list[Comparison]:
    if len(tally.joint) < 2:
        return []
    joint = np.array(tally.joint)
    # What has no noise, always or in a step, has no direction: it would make the others' cosines look unlikely.
    joint = joint[:, (joint != 0).any(axis=0)]
    joint = joint[(joint != 0).all(axis=1)]
    return [] if len(joint) < 2 else [_closest(_even(joint), "all parameters")]


def _layer_between_steps(tally: NoiseTally) -> list[Comparison]:
    if len(tally.prefixes) < 2:
        return []
    layers = zip(*tally.prefixes, strict=True)
    return [_closest(np.array(layer), w.name) for layer, w in zip(layers, tally.parameters, strict=False)]


def _every_step(tally: NoiseTally) -> list[Comparison]:
    """Noise that is the same in all steps adds up; this sees it in a parameter of one coordinate too."""
    if tally.sums is None or tally.loud < 2:
        return []
    found = []
    for row, prefix, weighed in zip(tally.sums, tally.prefixes[0], tally.parameters, strict=False):
        if weighed.steps >= 2:
            square = float((row**2).sum() / weighed.steps / _scale(weighed))
            found.append(Comparison("square", [square, len(prefix)], 1, f"{weighed.name} in all steps", True))
    return found


def _within(tally: NoiseTally) -> list[Comparison]:
    """Values that take each other's noise off: a mean that was made zero, say, is seen without any. That all of them
    have too little is another check's business."""
    return [
        Comparison("little", [one.added / typical, one.steps], 1, f"all values of {one.name}, added up", True)
        for one in tally.parameters
        if one.size > 1 and (typical := min(one.squares / (one.size * max(one.steps, 1)), 1.0)) > 0
    ]


def _lagged(tally: NoiseTally) -> list[Comparison]:
    """Noise that depends a little on the steps before, in one parameter or in all: seen over many steps."""
    found = []
    names = [w.name for w in tally.parameters]
    for lagged in tally.lagged:
        if lagged.products is None or lagged.squares is None:
            continue
        sizes = np.array([len(prefix) for prefix in tally.prefixes[0]])
        scales = np.array([_scale(w) for w in tally.parameters[: len(sizes)]])
        products, squares = lagged.products / scales, lagged.squares / scales
        totals, variances = np.append(products, products.sum()), np.append(squares, squares.sum())
        typical = np.append(sizes, sizes.sum()) * 1.0
        i = int(np.argmax(totals**2 / (variances + typical)))
        name = "all parameters" if i == len(sizes) else names[i]
        what = f"{name} and {lagged.lag} step{'s' if lagged.lag > 1 else ''} before, over all steps"
        values = [float(one[i]) for one in (totals, variances, typical)]
        found.append(Comparison("sum", values, len(totals), what, False))
    return found


def _scale(weighed: Weighed) -> float:
    """More noise than is accounted is no repetition."""
    return max(weighed.squares / (weighed.size * weighed.steps), 1.0)


def _even(vectors: Floats) -> Floats:
    """Coordinates brought to one scale: a layer that has too little noise is another check's business."""
    scale = np.sqrt((vectors**2).mean(axis=0))
    even: Floats = np.divide(vectors, scale, out=np.zeros_like(vectors), where=scale > 0)
    return even


def _closest(vectors: Floats, name: str) -> Comparison:
    cosine = cosines(vectors)
    first, second = np.triu_indices(len(vectors), 1)
    i = int(np.argmax(np.abs(cosine[first, second])))
    value = float(cosine[first[i], second[i]])
    what = f"{name} in steps {first[i] + 1} and {second[i] + 1} (correlation {value:.3f})"
    return Comparison("cosine", [value, vectors.shape[1]], len(first), what, abs(value) > _SAME)


def cosines(vectors: Floats) -> Floats:
    """Of every pair of rows; 0 with a row that is nothing."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    found: Floats = unit @ unit.T
    return found
