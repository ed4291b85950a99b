"""What `watch` does not see (docs/watch.md, "What is not seen"): each is shown unseen, so that the list stays true.

Hooks that get into no process are in test_watch.py, forked copies in test_comfort.py and frameworks/test_opacus.py.
"""

from pathlib import Path

import pytest
from test_comfort import verdicts
from test_watch import PRIVATE

pytestmark = pytest.mark.filterwarnings("ignore")
LOOP = "model, optimizer, loader = private()\nfor x, y in (batch for _ in range(6) for batch in loader):\n"
LOSS = "    losses = torch.nn.functional.cross_entropy(model(x), y, reduction='none')\n"
STEP = "    optimizer.zero_grad()\n    {loss}.backward()\n    optimizer.step()\n"
UNSEEN = {
    "hard examples": LOOP + LOSS + STEP.format(loss="losses.mul(losses >= losses.median()).mean()"),
    "class weights": LOOP + LOSS + STEP.format(loss="losses.mul(len(y) / torch.bincount(y, minlength=2)[y]).mean()"),
    "normalised before": (
        "draw = torch.randn\ndef scaled(*shape):\n    x = draw(*shape)\n    return (x - x.mean(0)) / x.std(0)\n"
        "torch.randn = scaled\ntrain(private(), 25)\n"
    ),
    "copies in an array": (
        "draw = torch.randn\ndef thrice(size, width):\n    once = draw(size, width)[: size // 3 + 1]\n"
        "    return once.repeat(3, 1)[:size]\ntorch.randn = thrice\ntrain(private(), 25)\n"
    ),
    "noise from a table": (
        "import opacus.optimizers.optimizer as inner\ntable = torch.randn(1 << 16)\n"
        "inner._generate_noise = lambda std, reference, **_: "
        "std * table[torch.randint(len(table), reference.shape)]\ntrain(private(), 25)\n"
    ),
}  # fmt: skip
BY_PARTS = LOOP + (
    "    optimizer.zero_grad()\n    torch.nn.functional.cross_entropy(model(x), y).backward()\n"
    "    optimizer.clip_and_accumulate()\n    optimizer.add_noise()\n    optimizer.scale_grad()\n"
    "    optimizer.step_hook(optimizer)\n    optimizer.original_optimizer.step()\n"
)


CHEAP = "class weights"


@pytest.mark.parametrize(
    "name", [CHEAP, *(pytest.param(one, marks=pytest.mark.full) for one in UNSEEN if one != CHEAP)]
)
def test_without_replay_it_is_consistent(name: str, tmp_path: Path) -> None:
    text = "import torch\ntorch.manual_seed(0)\n" + PRIVATE + UNSEEN[name]
    _, found, said = verdicts(tmp_path, text)
    assert {verdict for verdict, _ in found} == {"consistent"}, said
    assert "nothing else: held, without replay" in said


def test_steps_by_their_parts_are_not_seen_and_that_is_said(tmp_path: Path) -> None:
    _, found, said = verdicts(tmp_path, PRIVATE + BY_PARTS)
    assert [verdict for verdict, _ in found] == ["inconclusive"]
    assert "no step was seen, though 24 were accounted for" in said
