"""Scores of attacks against slow, obvious versions of the papers' formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from epsilometer.errors import InvalidInput
from epsilometer.membership import ATTACKS, BLACK_BOX, Lira, OfflineLira, Rmia, Seen, Signals, attack_named, black_box

RECORDS, POPULATION, MODELS, CLASSES = 40, 30, 8, 5


def seen(seed: int = 0) -> tuple[Seen, np.ndarray, np.ndarray]:
    """What an attacker sees, and the chances of all classes: models (the target first) × records."""
    rng = np.random.default_rng(seed)
    y, z = rng.integers(CLASSES, size=RECORDS), rng.integers(CLASSES, size=POPULATION)
    half = rng.random((MODELS // 2, RECORDS)) < 0.5
    member = np.stack([half, ~half], axis=1).reshape(MODELS, RECORDS)
    logits = 2.0 * rng.standard_normal((MODELS + 1, RECORDS + POPULATION, CLASSES))
    labels = np.concatenate([y, z])
    values = Signals(BLACK_BOX, np.array([black_box(one, labels) for one in logits]))
    chances = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    records, population = slice(0, RECORDS), slice(RECORDS, None)
    rest = values.models(slice(1, None))
    shown = Seen(y, CLASSES, values.models(0).records(records), values.models(0).records(population), z,
                 rest.records(records), rest.records(population), member)  # fmt: skip
    return shown, chances, labels


def test_signals_are_what_they_are_called() -> None:
    shown, chances, labels = seen()
    for i in range(RECORDS):
        p, y = chances[0, i], labels[i]
        others = [q for j, q in enumerate(p) if j != y]
        assert shown.target["log_chance"][i] == pytest.approx(math.log(p[y]))
        assert shown.target["log_odds"][i] == pytest.approx(math.log(p[y]) - math.log(sum(others)))
        assert shown.target["entropy"][i] == pytest.approx(-sum(q * math.log(q) for q in p))
        modified = -(1 - p[y]) * math.log(p[y]) - sum(q * math.log(1 - q) for q in others)
        assert shown.target["modified_entropy"][i] == pytest.approx(modified)
        assert np.exp(shown.target.of(["first", "second", "third"])[i]) == pytest.approx(np.sort(p)[::-1][:3])
        assert shown.target["correct"][i] == (p.argmax() == y)


def test_sure_predictions_are_finite_and_still_differ() -> None:
    """Chances that round to 1 have losses that are not 0."""
    found = black_box(np.array([[60.0, 0.0], [80.0, 0.0], [0.0, 2000.0]]), np.array([0, 0, 0]))
    assert np.isfinite(found).all()
    losses = -found[:, BLACK_BOX.index("log_chance")]
    assert losses[0] == pytest.approx(math.exp(-60))
    assert 0 < losses[1] < losses[0]


@pytest.mark.parametrize("variance", ["fixed", "record"])
def test_lira(variance: str) -> None:
    shown, chances, labels = seen()
    odds = [[math.log(p[y] / (1 - p[y])) for p, y in zip(model[:RECORDS], labels, strict=False)] for model in chances]
    sides = {side: [[odds[1 + m][i] for m in range(MODELS) if shown.member[m, i] == side] for i in range(RECORDS)]
             for side in (True, False)}  # fmt: skip
    pooled = {
        side: math.sqrt(sum(np.sum((np.array(v) - np.mean(v)) ** 2) for v in given) / sum(len(v) - 1 for v in given))
        for side, given in sides.items()
    }
    online, offline = Lira(variance).scores(shown), OfflineLira(variance).scores(shown)
    for i in range(RECORDS):
        laws = {}
        for side in (True, False):
            spread = pooled[side] if variance == "fixed" else np.std(sides[side][i], ddof=1)
            laws[side] = stats.norm(np.mean(sides[side][i]), spread)
        assert online[i] == pytest.approx(laws[True].logpdf(odds[0][i]) - laws[False].logpdf(odds[0][i]), abs=1e-9)
        assert stats.norm.cdf(offline[i]) == pytest.approx(laws[False].cdf(odds[0][i]), abs=1e-9)


@pytest.mark.parametrize(("gamma", "a", "online"), [(1.0, 0.3, False), (2.0, 0.6, False), (1.0, 0.3, True)])
def test_rmia(gamma: float, a: float, online: bool) -> None:
    shown, chances, labels = seen(1)
    own = chances[:, np.arange(RECORDS + POPULATION), labels]

    def ratio(i: int) -> float:
        inside = [own[1 + m, i] for m in range(MODELS) if i < RECORDS and shown.member[m, i]]
        outside = [own[1 + m, i] for m in range(MODELS) if i >= RECORDS or not shown.member[m, i]]
        usual = (1 + a) / 2 * np.mean(outside) + (1 - a) / 2
        if online:
            usual = (np.mean(inside) + np.mean(outside)) / 2 if inside else np.mean(outside)
        return own[0, i] / usual

    scores = Rmia(gamma, a, online).scores(shown)
    for i in range(RECORDS):
        beaten = [ratio(i) / ratio(RECORDS + z) > gamma for z in range(POPULATION)]
        assert scores[i] == pytest.approx(np.mean(beaten), abs=1e-12)
    swapped = Rmia(gamma, a, not online).scores(shown)
    assert not np.array_equal(scores, swapped)


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"lira.variance = 'one': expected one of fixed, record"):
        attack_named("lira", {"variance": "one"})
    with pytest.raises(InvalidInput, match=r"rmia.beta = 1: expected a setting of rmia \(gamma, a, online\)"):
        attack_named("rmia", {"beta": 1})
    with pytest.raises(InvalidInput, match=r"attacks = 'lyra': expected one of .*; did you mean 'lira'"):
        attack_named("lyra")
    assert all(attack_named(name).summary for name in ATTACKS)
