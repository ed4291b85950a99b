"""What is read off models: classifiers' predictions, or losses alone; readouts of packages; attacks that fit them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from epsilometer.data import digits
from epsilometer.errors import InvalidInput
from epsilometer.membership import (
    READOUTS,
    Classifier,
    LossAttack,
    Losses,
    MembershipPlan,
    OfflineLira,
    Rmia,
    membership_from_dict,
    run_membership,
)
from epsilometer.report.membership import membership_summary, membership_to_json
from epsilometer.subjects import Access, CallableTraining, Subject


def train(data, seed):
    """Remembers what it has seen: a member's score is near 1."""
    return np.random.default_rng(seed).normal(0, 0.1, 4), {record.tobytes() for record in data.x}


def score(model, record):
    noise, seen = model
    x, y = record
    return float(np.asarray(x, np.float32).tobytes() in seen) + noise[y % 4]


def _plan(**settings):
    data = digits().subset([0, 1], 20)
    training = CallableTraining(train, data.taken(np.arange(24)), score)
    return MembershipPlan(training, data.taken(np.arange(24, 40)), references=4, **settings)


def test_losses_alone_are_enough_for_attacks_that_read_them():
    result = run_membership(_plan(readout=Losses()), [LossAttack(), OfflineLira()])
    assert result.attack("loss").auc.value == 1.0
    assert result.attack("lira-offline").auc.value == 1.0
    assert (result.train_accuracy, result.test_accuracy) == (None, None)
    assert "accuracy  " not in membership_summary(result)
    assert membership_to_json(result)["accuracy"] == {"members": None, "others": None}


def test_attacks_that_read_more_are_refused_before_anything_is_trained():
    with pytest.raises(InvalidInput, match="attacks = 'rmia': expected attacks that read minus_loss"):
        run_membership(_plan(readout=Losses()), [Rmia()])


def test_scored_trainings_have_no_predictions_to_read():
    with pytest.raises(InvalidInput, match="tells classes apart"):
        _plan()


def test_a_readout_stands_beside_nothing_of_a_classifier():
    with pytest.raises(InvalidInput, match="readout = 'losses': expected nothing beside queries and white_box"):
        _plan(readout=Losses(), white_box=True)


def test_the_readout_is_part_of_a_plan_only_where_it_is_said():
    data = digits().subset([0, 1], 20)
    training = CallableTraining(lambda *_: lambda x: np.zeros((len(x), 2)), data)
    usual = MembershipPlan(training, data.taken(np.arange(0)), references=4)
    assert usual.reads.name == Classifier.name
    assert "readout" not in usual.to_dict()
    assert _plan(readout=Losses()).to_dict()["readout"] == "losses"


def test_a_spec_with_a_score_function_reads_losses_by_itself(tmp_path, monkeypatch):
    (tmp_path / "scored_model.py").write_text(
        "import numpy as np\n"
        "def train(data, seed):\n    return {record.tobytes() for record in data.x}\n"
        "def score(model, record):\n    return float(np.asarray(record[0], np.float32).tobytes() in model)\n"
    )
    monkeypatch.chdir(tmp_path)
    spec = {
        "data": {"per_class": 6},
        "subject": {"train": "scored_model:train", "score": "scored_model:score"},
        "membership": {"references": 4},
    }
    study = membership_from_dict(spec).study()
    assert [attack.name for attack in study.attacks] == ["loss", "lira", "lira-offline"]
    assert study.plan.reads.name == "losses"
    found = run_membership(study.plan, study.attacks)
    assert found.attack("loss").auc.value == 1.0


def test_unknown_readouts_are_refused_with_those_that_there_are():
    with pytest.raises(InvalidInput, match=r"membership.readout = 'tokens': expected one of classifier, losses"):
        membership_from_dict({"membership": {"readout": "tokens"}}).study()


@dataclass(frozen=True)
class Documents:
    """Data without classes or features, as texts are."""

    texts: tuple[str, ...]
    name: str = "documents"

    def __len__(self):
        return len(self.texts)

    def taken(self, rows):
        return Documents(tuple(self.texts[row] for row in rows))

    def fingerprint(self):
        return str(hash(self.texts))


@dataclass(frozen=True)
class Tokens:
    """A language model's mean logarithm of a token's chance."""

    name: ClassVar[str] = "tokens"
    signals: ClassVar[tuple[str, ...]] = ("log_chance",)

    def require(self, training):
        pass

    def read(self, model, parts):
        return np.array([[model[text]] for part in parts for text in part.texts])

    def labels(self, data):
        return np.zeros(len(data), np.int64), ("all",)


class LanguageModel(Subject):
    """Every text that was in is likelier."""

    def __init__(self, everything, data):
        self.everything, self.data = everything, data

    @property
    def grants(self):
        return Access("release", ["records"])

    def describe(self):
        return "a language model"

    def identity(self):
        return {"data": {"name": self.data.name, "records": len(self.data), "sha256": self.data.fingerprint()}}

    def run(self, insertions, seeds, observers):
        for insertion, seed, observer in zip(insertions, seeds, observers, strict=True):
            rng, told = np.random.default_rng(seed), set(insertion.data.texts)
            observer.finish({text: -3.0 + (text in told) + rng.normal(0, 0.1) for text in self.everything})

    def rehearse(self, data, seeds, *, noiseless=False):
        raise NotImplementedError


def test_data_of_another_kind_need_a_readout_of_one_file():
    texts = Documents(tuple(f"text {n}" for n in range(60)))
    model = LanguageModel(texts.texts, texts.taken(range(40)))
    plan = MembershipPlan(model, texts.taken(range(40, 60)), references=4, readout=Tokens())
    result = run_membership(plan, [LossAttack(), Rmia()])
    assert result.attack("loss").auc.value == 1.0
    assert result.attack("rmia").auc.value > 0.95
    assert result.pictures() is None
    with pytest.raises(InvalidInput, match="tells classes apart"):
        MembershipPlan(model, texts.taken(range(40, 60)), references=4)


def test_readouts_are_a_socket():
    assert READOUTS.group == "epsilometer.readouts"
    assert list(READOUTS.own) == ["classifier", "losses"]


def test_coins_are_tossed_for_what_a_row_is():
    data = digits().subset([0, 1], 20)
    training = CallableTraining(train, data, score, unit="user")
    plan = MembershipPlan(training, data.taken(np.arange(0)), references=0, readout=Losses())
    found = run_membership(plan, [LossAttack()])
    assert str(found.bound.neighbours) == "user-level add-remove"
    assert plan.to_dict()["claim"] == {"kind": "none", "relation": "add-remove", "unit": "user"}
    assert "unit" not in MembershipPlan(replace(training, unit="record"), data.taken(np.arange(0)), references=0,
                                        readout=Losses()).to_dict()["claim"]  # fmt: skip
