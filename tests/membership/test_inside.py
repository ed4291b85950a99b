"""What is read off inside a network: against gradients that are formed, and the same however units are numbered."""

from __future__ import annotations

import numpy as np
import pytest

from epsilometer.errors import InvalidInput
from epsilometer.membership import Seen, Signals, WhiteBoxAttack, WhiteBoxByRecord, attack_named, membership_from_dict
from epsilometer.membership.inside import white_box, white_box_names
from epsilometer.membership.learned import _relative
from epsilometer.membership.runner import run_membership
from epsilometer.metrics import area
from epsilometer.training import Network, record_losses

NETWORK = Network((5, 4, 3), "tanh")
FIRST = 5 * 4 + 4  # parameters of the first layer


def made() -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    flat, x, y = NETWORK.initial(rng, 1.0), rng.standard_normal((9, 5)), np.arange(9) % 3
    flat += 0.1 * rng.standard_normal(len(flat))  # biases, too
    return flat, x, y, dict(zip(white_box_names(2), white_box(NETWORK, flat, x, y).T, strict=True))


def gradients(flat: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """By central differences: a row a record, a column a parameter."""
    found = np.zeros((len(x), len(flat)))
    for k in range(len(flat)):
        step = np.zeros(len(flat))
        step[k] = 1e-6
        up, down = (record_losses(NETWORK.logits(at, x), y) for at in (flat + step, flat - step))
        found[:, k] = (up - down) / 2e-6
    return found


def test_signals_of_gradients_are_those_of_gradients_that_are_formed() -> None:
    flat, x, y, found = made()
    whole = gradients(flat, x, y)
    for layer, part in ((1, slice(0, FIRST)), (2, slice(FIRST, None))):
        own, norms = whole[:, part], np.linalg.norm(whole[:, part], axis=1)
        assert np.exp(found[f"gradient_{layer}"]) == pytest.approx(norms, rel=1e-4)
        for name, direction in (("weights", flat[part]), ("mean", own.mean(axis=0))):
            cosines = own @ direction / norms / np.linalg.norm(direction)
            assert found[f"along_{name}_{layer}"] == pytest.approx(cosines, abs=1e-5), (name, layer)


def test_lengths_are_those_in_the_measure_of_all_records() -> None:
    flat, x, y, found = made()
    (weights, biases), _ = NETWORK.layers(flat)
    wide = np.column_stack([np.tanh(x @ weights.T + biases), np.ones(9)])
    measure = wide.T @ wide / 9
    measure += 1e-3 * np.trace(measure) / 5 * np.eye(5)
    lengths = np.sqrt(np.einsum("ij,jk,ik->i", wide, np.linalg.inv(measure), wide))
    assert np.exp(found["activation_length_1"]) == pytest.approx(lengths)
    hidden = wide[:, :-1]
    own = [np.linalg.norm(hidden[i] - hidden[y == y[i]].mean(axis=0)) for i in range(9)]
    assert np.exp(found["to_own_centre_1"]) == pytest.approx(own, rel=1e-5)
    other = [min(np.linalg.norm(hidden[i] - hidden[y == k].mean(axis=0)) for k in {0, 1, 2} - {y[i]}) for i in range(9)]
    assert np.exp(found["to_next_centre_1"]) == pytest.approx(other, rel=1e-5)
    assert np.exp(found["activation_1"]) == pytest.approx(np.linalg.norm(hidden, axis=1))


def test_hidden_units_may_be_numbered_in_any_order() -> None:
    """References' units have nothing to do with the target's: what depends on their order would teach nothing."""
    flat, x, y, found = made()
    order, moved = np.array([2, 0, 3, 1]), flat.copy()
    (weights, biases), (last, _) = NETWORK.layers(flat)
    (moved_weights, moved_biases), (moved_last, _) = NETWORK.layers(moved)
    moved_weights[:], moved_biases[:], moved_last[:] = weights[order], biases[order], last[:, order]
    assert not np.array_equal(flat, moved)
    assert white_box(NETWORK, moved, x, y) == pytest.approx(np.column_stack(list(found.values())), abs=1e-9)


def test_one_class_and_sure_predictions_give_numbers() -> None:
    flat, x, _, _ = made()
    with_sure = flat.copy()
    NETWORK.layers(with_sure)[1][1][:] = [1e4, 0.0, 0.0]  # a loss and a gradient of exactly 0
    assert np.isfinite(white_box(NETWORK, with_sure, x, np.zeros(9, int))).all()


def noise(references: int, records: int = 1500) -> Seen:
    """Signals that have nothing to do with membership."""
    rng = np.random.default_rng(1)
    coins = rng.random((references // 2, records)) < 0.5
    member = np.stack([coins, ~coins], axis=1).reshape(-1, records)
    names = ("first", "second")
    of = [Signals(names, rng.standard_normal((*shape, 2))) for shape in ((records,), (references, records))]
    nobody = Signals(names, np.zeros((0, 2)))
    y = np.arange(records) % 2
    return Seen(y, 2, of[0], nobody, y[:0], of[1], nobody, member)


def test_who_is_compared_with_references_does_not_give_itself_away() -> None:
    """With four references, a naive mean has the model itself among two, if it is without the record."""
    seen = noise(4)
    known, member = seen.references.values, seen.member
    relative, _ = _relative(known, seen.target.values, member)
    means = np.where(member[..., None], 0.0, known).sum(axis=0) / 2
    shown = [area(np.abs(of[..., 0][~member]), np.abs(of[..., 0][member]), 0.999) for of in (relative, known - means)]
    assert shown[0].low < 0.5 < shown[0].high
    assert shown[1].low > 0.55  # half of itself taken away: those without are nearer to 0
    for attack in (WhiteBoxAttack(), WhiteBoxByRecord()):
        scores = attack.scores(seen)
        truth = np.random.default_rng(2).random(len(scores)) < 0.5
        assert np.array_equal(scores, attack.scores(seen))  # it follows from what is seen
        found = area(scores[~truth], scores[truth], 0.999)
        assert found.low < 0.5 < found.high


def test_a_last_reference_without_a_partner_is_left_out() -> None:
    seen = noise(6)
    known, member = seen.references.values, seen.member
    even, target = _relative(known[:4], seen.target.values, member[:4])
    odd, odd_target = _relative(known[:5], seen.target.values, member[:5])
    assert np.array_equal(even, odd)
    assert np.array_equal(target, odd_target)
    mean = np.array([known[:4][~member[:4, i], i].mean(axis=0) for i in range(len(seen.y))])
    assert target == pytest.approx(seen.target.values - mean)


def test_inside_a_model_there_is_more_than_outside() -> None:
    """Where a network has learned by heart: as much as black-box attacks of the same kind find, and more."""
    settings = {
        "model": {"hidden": [32]},
        "training": {"steps": 400, "learning_rate": 0.05},
        "membership": {
            "records": 500, "references": 16, "attacks": ["shadow", "lira", "white-box", "white-box-by-record"],
        },
    }  # fmt: skip
    study = membership_from_dict(settings).study()
    found = run_membership(study.plan, study.attacks)
    shadow, lira, inside, by_record = (one.auc for one in found.attacks)
    assert inside.high > shadow.low
    assert by_record.high > lira.low
    assert by_record.low > shadow.high  # what every model finds hard is no sign of membership
    assert {"gradient_1", "gradient_2", "activation_1"} <= set(study.plan.signal_names)


def test_attack_models_that_are_not_there_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"shadow.model = 'nets': .*network"):
        attack_named("shadow", {"model": "nets"})
    with pytest.raises(InvalidInput, match="references = 2: expected at least 4 for white-box-by-record"):
        membership_from_dict({"membership": {"references": 2, "attacks": ["white-box-by-record"]}}).study()
