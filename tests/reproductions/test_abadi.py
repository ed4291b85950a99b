"""The experiments of Abadi et al. (2016): what a training is given, what it spends, and what is told of it."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent

from epsilometer.accounting import Composition, account
from epsilometer.data import Dataset
from epsilometer.reproductions import Session, abadi_mnist, abadi_parameters, reproduction_named, write_rows
from epsilometer.reproductions.abadi import DELTA, Outcome, Setting, learn
from epsilometer.reproductions.abadi_cifar10 import setting_of as cifar10_setting

ACCOUNTING, MNIST = reproduction_named("abadi-accounting"), reproduction_named("abadi-mnist")
PARAMETERS, CIFAR10 = reproduction_named("abadi-parameters"), reproduction_named("abadi-cifar10")
SMALL = Setting(epsilon=6.0, noise_multiplier=1.5, pca_noise=2.0, components=8, hidden=(24,), lot=60, clip_norm=1.0)


def stand_in(records: int, seed: int) -> Dataset:
    """Three classes around centres of their own, in forty dimensions."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(9).normal(size=(3, 40))
    y = np.arange(records) % 3
    return Dataset("stand-in", (centres[y] + 2.5 * rng.normal(size=(records, 40))).astype(np.float32), y, 3)


DATA = stand_in(1200, 0), stand_in(300, 1)


def outcome(epochs: int = 60, seed: int = 0, **changed: object) -> Outcome:
    return learn(replace(SMALL, **changed), *DATA, epochs=epochs, seed=seed)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------- accounting
def test_the_figure_on_accountants() -> None:
    """Figure 2: 1.26 and 2.55 by moments, 9.34 and 24.22 by strong composition, said in the text for 100 and 400."""
    rows = {row.cell["epochs"]: row for row in ACCOUNTING.rows(ACCOUNTING.cells, Session(20))}
    for epochs, paper, moments, paper_strong, strong in (
        ("100", 1.26, 1.2586, 9.34, 9.353),
        ("400", 2.55, 2.576, 24.22, 24.245),
    ):
        row = rows[epochs]
        assert (row.paper, row.details["paper_strong"]) == (paper, paper_strong)
        assert row.measured == pytest.approx(moments, abs=5e-4)
        assert row.details["strong"] == pytest.approx(strong, abs=1e-3)
    for row in rows.values():
        assert row.details["pld"] < row.details["rdp"] < row.measured < row.details["strong"]
    drawn = ACCOUNTING.draw(list(rows.values()))
    assert drawn.marks == 4 * len(rows) + 4
    assert ACCOUNTING.draw([]).marks == 0


# ------------------------------------------------------------------------------------------------------- trainings
def test_settings_are_the_papers() -> None:
    """Figure 3: 60 components, 1000 units, lots of 600, C = 4, (σ, σ_PCA) = (8, 16), (4, 7), (2, 4); Figure 6."""
    found = [abadi_mnist.setting_of(cell["eps"]) for cell in MNIST.cells]
    assert [(s.epsilon, s.noise_multiplier, s.pca_noise) for s in found] == [(0.5, 8, 16), (2, 4, 7), (8, 2, 4)]
    assert {(s.components, s.hidden, s.lot, s.clip_norm) for s in found} == {(60, (1000,), 600, 4)}
    images = [cifar10_setting(cell, 50_000) for cell in CIFAR10.cells]
    assert [(s.epsilon, s.lot) for s in images[:3]] == [(2, 2000), (4, 4000), (8, 4000)]
    assert {(s.noise_multiplier, s.clip_norm, s.hidden) for s in images} == {(6, 3, (384, 384))}
    assert [s.model for s in images] == ["mlp"] * 3 + ["colour-cnn"] * 3


def test_a_training_learns_and_stops_at_its_budget() -> None:
    """What is told of it is what the accountants say of PCA and steps together."""
    found = outcome()
    assert found.last.test > 0.8  # by chance: a third
    assert [one.epoch for one in found.learned[:4]] == [1, 2, 5, 10]
    assert found.last.epoch == found.recipe.steps / 20 < 60
    step = found.recipe.mechanism.event
    for count, fits in ((found.recipe.steps, True), (found.recipe.steps + 1, False)):
        whole = Composition.of(GaussianDpEvent(2.0)).plus(step, count)
        assert (account(whole, DELTA, accountant="moments").epsilon <= SMALL.epsilon) is fits
    whole = Composition.of(GaussianDpEvent(2.0)).plus(step, found.recipe.steps)
    assert found.last.pld == pytest.approx(account(whole, DELTA).epsilon)
    assert found.last.pld < found.last.moments <= SMALL.epsilon
    for one, next_one in zip(found.learned, found.learned[1:], strict=False):
        assert one.moments < next_one.moments
        assert one.pld < next_one.pld
    plain = outcome(1, components=0)
    assert plain.pca_epsilon == 0 < found.pca_epsilon
    assert plain.last.moments < found.learned[0].moments  # components cost something


def test_the_noise_of_components_matters() -> None:
    """A projection that is all noise loses most of what tells classes apart: 2 of 40 dimensions."""
    good, bad = (outcome(2, components=2, pca_noise=noise, epsilon=50.0) for noise in (2.0, 1e4))
    assert good.last.test > bad.last.test + 0.2


def test_trainings_repeat_themselves_and_seeds_differ() -> None:
    one, again, other = outcome(1), outcome(1), outcome(1, seed=1)
    assert one.learned == again.learned
    assert one.learned != other.learned


def test_the_median_is_a_clip_norm() -> None:
    found = outcome(2, clip_norm=0.0)
    assert found.recipe.clip_norm != 1.0
    assert 0.1 < found.recipe.clip_norm < 20
    assert abadi_parameters.varied("C", "median").clip_norm == 0.0


def test_one_parameter_changes_at_a_time() -> None:
    for cell in PARAMETERS.cells:
        found = vars(abadi_parameters.varied(**cell)).items()
        assert sum(value != vars(abadi_parameters.REFERENCE)[name] for name, value in found) <= 1
    unchanged = [cell for cell in PARAMETERS.cells if abadi_parameters.varied(**cell) == abadi_parameters.REFERENCE]
    assert [cell["value"] for cell in unchanged] == ["4", "4", "600", "1000"]


# ------------------------------------------------------------------------------------------------------- what is told
@pytest.mark.parametrize(
    "name", ["abadi-mnist", "abadi-parameters", pytest.param("abadi-cifar10", marks=pytest.mark.full)]
)
def test_rows_are_kept_and_drawn_again(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of = reproduction_named(name)
    module = {"abadi-mnist": "abadi_mnist", "abadi-parameters": "abadi_parameters", "abadi-cifar10": "abadi_cifar10"}
    where = f"epsilometer.reproductions.{module[name]}"
    monkeypatch.setattr(f"{where}.both_parts", lambda *_: DATA)
    monkeypatch.setattr(f"{where}.learn", lambda _, *data, epochs, seed: learn(SMALL, *data, epochs=epochs, seed=seed))
    (row,) = of.rows(of.cells[:1], Session(2))
    assert 0.3 < row.measured <= 1.0
    assert (row.paper is None) == (name == "abadi-parameters")
    write_rows(tmp_path, of, {}, [row])
    before = (tmp_path / "figure.svg").read_bytes()
    write_rows(tmp_path, of, {}, [])  # from what is stored
    assert (tmp_path / "figure.svg").read_bytes() == before
    (stored,) = json.loads((tmp_path / "result.json").read_text())["rows"]
    assert list(stored["by_epoch"]) == ["1", "2"]
    assert of.draw([]).marks == 0
    assert of.draw([row]).marks > 0
