"""Individual accounting of a watched Opacus training: the right norms, and the training stays what it is."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from trainings import SIGMA, train

from epsilometer.accounting import DpSgd, account
from epsilometer.errors import InvalidInput
from epsilometer.opacus import Watch
from epsilometer.watching.frameworks.opacus.record_norms import RecordNorms

pytestmark = pytest.mark.filterwarnings("ignore")
ROWS = slice(0, 256, 16)
KINDS: dict[str, dict[str, Any]] = {"hooks": {}, "ghost": {"grad_sample_mode": "ghost"}, "virtual": {"physical": 16}}


class Noting:
    """Asks for individual accounting, and compares with Opacus' own per-sample gradients at the end."""

    def __init__(self, every: int = 1) -> None:
        self.every = every

    def __call__(self, watch: Watch, optimizer: Any, module: Any, data: Any) -> None:
        self.module = module
        self.x, self.y = data.tensors[0][ROWS], data.tensors[1][ROWS]
        self.norms = watch.account_records(optimizer, module, self.x, self.y, nn.CrossEntropyLoss(), every=self.every)


@pytest.mark.parametrize("kind", KINDS)
def test_the_training_is_the_same_bit_for_bit(kind: str) -> None:
    noting = Noting()
    without, seen = train(**KINDS[kind]), train({}, made_private=noting, **KINDS[kind])
    assert torch.equal(without.weights, seen.weights)
    assert without.history == seen.history
    assert without.drawn_next == seen.drawn_next
    assert seen.watch is not None
    assert seen.watch.trainings[0].process.steps == 6
    assert not seen.watch.trainings[0].process.refuted
    assert noting.norms.shares.shape == (6, 16)
    found, worst = noting.norms.epsilons(1e-5), account(DpSgd(0.25, SIGMA, 6), 1e-5).epsilon
    assert noting.norms.worst_case(1e-5).epsilon == pytest.approx(worst)
    assert (found <= worst).all()


def test_norms_are_those_of_opacus_itself() -> None:
    noting = Noting()
    train({}, made_private=noting, steps=1, max_grad_norm=3.0)
    shares = noting.norms.look()
    module = noting.module
    for parameter in module.parameters():
        parameter.grad_sample = None
    nn.CrossEntropyLoss()(module(noting.x), noting.y).backward()
    own = torch.stack([p.grad_sample.flatten(1).square().sum(1) for p in module.parameters()]).sum(0).sqrt()
    assert shares == pytest.approx(own.detach().numpy(), rel=1e-4)


def test_less_noise_in_one_step_is_not_averaged_away() -> None:
    """Steps of unlike noise are put on one scale: a record that costs nothing in the weak step pays little."""
    norms = RecordNorms(nn.Linear(2, 2), torch.zeros(2, 2), torch.zeros(2, dtype=torch.long), nn.CrossEntropyLoss())
    norms.keep(np.array([1.0, 1.0]), 1.0, 4.0, 0.5)
    norms.keep(np.array([2.0, 0.0]), 1.0, 1.0, 0.5)
    first, second = norms.epsilons(1e-5)
    assert second < account(DpSgd(0.5, 4.0, 1), 1e-5, accountant="rdp").epsilon * 1.05
    assert first > account(DpSgd(0.5, 1.0, 1), 1e-5).epsilon


def test_what_cannot_be_accounted_is_said_and_the_training_goes_on() -> None:
    class Failing(Noting):
        def __call__(self, watch: Watch, optimizer: Any, module: Any, data: Any) -> None:
            super().__call__(watch, optimizer, module, data)
            self.norms._criterion = lambda *_: 1 / 0

    noting = Failing()
    seen = train({}, made_private=noting)
    assert seen.watch is not None
    assert seen.watch.trainings[0].process.steps == 6
    with pytest.raises(InvalidInput, match="gradients failed"):
        noting.norms.epsilons(1e-5)
    with pytest.raises(InvalidInput, match="dropout"):
        RecordNorms(nn.Dropout(0.5), [[1.0]], [0], nn.CrossEntropyLoss())
    with pytest.raises(InvalidInput, match="no step so far"):
        RecordNorms(nn.Linear(1, 2), [[1.0]], [0], nn.CrossEntropyLoss()).epsilons(1e-5)
    with pytest.raises(InvalidInput, match="make_private"):
        seen.watch.account_records(object(), nn.Linear(1, 2), [[1.0]], [0], nn.CrossEntropyLoss())


def test_fewer_looks_use_the_last_norms_again() -> None:
    noting = Noting(every=3)
    train({}, made_private=noting, max_grad_norm=50.0)
    shares = noting.norms.shares
    assert (shares[0] == shares[2]).all()
    assert (shares[3] == shares[5]).all()
    assert (shares[0] != shares[3]).any()
