"""The general path: equal to plain autograd, to the fully connected path and to Opacus; no mixing of records."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from epsilometer import Recipe
from epsilometer.data import Dataset, digits
from epsilometer.errors import InvalidInput
from epsilometer.training import ModuleNetwork, Network, Watcher, frozen_features, network_for, register, train
from epsilometer.training.modules import small_cnn

# Torch says that attention could be faster under vmap; Opacus' hooks that inputs need no gradients.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning", "ignore::DeprecationWarning")


def mlp(features: int, classes: int) -> nn.Module:
    return nn.Sequential(nn.Linear(features, 6), nn.Tanh(), nn.Linear(6, classes))


def transformer(features: int, classes: int) -> nn.Module:
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return nn.Sequential(
        nn.Unflatten(1, (features // 8, 8)), layer, nn.LayerNorm(8), nn.Flatten(), nn.Linear(features, classes)
    )


LOSSES = {
    "cross-entropy": lambda logits, y: functional.cross_entropy(logits, y, reduction="sum"),
    "logistic": lambda logits, y: functional.binary_cross_entropy_with_logits(
        logits, functional.one_hot(y, logits.shape[1]).to(logits.dtype), reduction="sum"
    ),
    "squared": lambda logits, y: 0.5 * ((logits - functional.one_hot(y, logits.shape[1])) ** 2).sum(),
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("factory", "features"), [(mlp, 5), (small_cnn, 36), (transformer, 16)], ids=["mlp", "cnn", "attention"]
)
def test_clipped_sums_equal_one_backward_pass_a_record(factory, features: int, loss: str) -> None:
    rng = np.random.default_rng(0)
    network = ModuleNetwork(factory, features, 3, loss)
    flat = network.initial(rng, 1.0)
    x, y = rng.normal(size=(70, features)), rng.integers(0, 3, 70)  # more than one chunk
    found = network.clipped_gradient_sum(flat, x, y, 0.8)
    module = factory(features, 3).double()
    nn.utils.vector_to_parameters(torch.from_numpy(flat), module.parameters())
    total = np.zeros_like(flat)
    for record, label in zip(torch.from_numpy(x), torch.from_numpy(y), strict=True):
        module.zero_grad()
        LOSSES[loss](module(record[None]), label[None]).backward()
        gradient = torch.cat([p.grad.ravel() for p in module.parameters()]).numpy()
        total += gradient * min(1.0, 0.8 / np.linalg.norm(gradient))
    np.testing.assert_allclose(found, total, atol=1e-9)


def varied(features: int, classes: int) -> nn.Module:
    return nn.Sequential(
        nn.Unflatten(1, (1, 6, 6)),
        nn.Conv2d(1, 2, 3, padding="same", bias=False),
        nn.Conv2d(2, 4, (2, 3), padding=(1, 1), stride=1),
        nn.AdaptiveAvgPool2d(6),
        nn.GroupNorm(2, 4),
        nn.Tanh(),
        nn.Conv2d(4, 3, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2)),
        nn.ReLU(),
        nn.Flatten(),
        nn.LayerNorm(36),
        nn.Linear(36, classes, bias=False),
    )


def in_place(features: int, classes: int) -> nn.Module:
    return nn.Sequential(nn.Linear(features, 5), nn.ReLU(inplace=True), nn.Linear(5, classes))


class Twice(nn.Module):
    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.shared, self.last = nn.Linear(features, features), nn.Linear(features, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.tanh(self.shared(torch.tanh(self.shared(x)))))


class Tied(nn.Module):
    """Uses a layer's weight once more, behind the layer's back."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(features, features), nn.Linear(features, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.tanh(self.first(x)) @ self.first.weight)


def test_weights_used_behind_a_layers_back_are_noticed() -> None:
    network = ModuleNetwork(Tied, 7, 3)
    assert not network._layered
    assert ModuleNetwork(small_cnn, 36, 3)._layered


@pytest.mark.parametrize(
    ("factory", "features", "known"),
    [(mlp, 5, True), (small_cnn, 36, True), (varied, 36, True), (in_place, 36, False), (Twice, 36, False)],
    ids=["mlp", "cnn", "varied", "in place", "shared"],
)
def test_layers_and_vmap_agree(factory, features: int, known: bool) -> None:
    rng = np.random.default_rng(3)
    network = ModuleNetwork(factory, features, 3)
    flat = torch.tensor(network.initial(rng, 1.0))
    x, y = torch.tensor(rng.normal(size=(9, features))), torch.tensor(rng.integers(0, 3, 9))
    quick, general = network._by_layers(flat, x, y), network._by_vmap(flat, x, y)
    assert (quick is not None) == known
    weights = torch.rand(9, dtype=torch.float64)
    for ours, oracle in zip(quick or [], general, strict=known):
        np.testing.assert_allclose(ours.squares, oracle.squares, atol=1e-10)
        np.testing.assert_allclose(ours.weighted_sum(weights).ravel(), oracle.weighted_sum(weights).ravel(), atol=1e-10)
    np.testing.assert_array_equal(network.clipped_gradient_sum(flat.numpy(), x.numpy()[:0], y.numpy()[:0], 1.0), 0)


def test_the_general_path_agrees_with_the_fully_connected_one() -> None:
    rng = np.random.default_rng(1)
    general, special = ModuleNetwork(mlp, 5, 3), Network((5, 6, 3), "tanh")
    flat, x, y = general.initial(rng, 1.0), rng.normal(size=(20, 5)), rng.integers(0, 3, 20)
    np.testing.assert_allclose(general.logits(flat, x), special.logits(flat, x), atol=1e-12)
    for clipping in ("flat", "automatic"):
        sums = [network.clipped_gradient_sum(flat, x, y, 0.5, clipping) for network in (general, special)]
        np.testing.assert_allclose(*sums, atol=1e-10)


def test_a_step_equals_opacus_given_the_same_batch_and_noise() -> None:
    opacus = pytest.importorskip("opacus", reason="needs the opacus extra")
    rng = np.random.default_rng(2)
    x, y = rng.random((12, 36)).astype(np.float32), rng.integers(0, 3, 12)
    data = Dataset("made", x, y, 3)

    class Sums(Watcher):
        stepwise = True

        def contribute(self, step, gradient_sum) -> None:
            self.clean = gradient_sum.copy()

        def observe(self, step, noisy_sum, parameters) -> bool:
            self.noise = noisy_sum - self.clean
            return False

    recipe = Recipe(
        records=12, sample_rate=1.0, sampling="full", steps=1, model="cnn", noise_multiplier=1.1, clip_norm=0.7
    )
    watcher = Sums()
    ours = train(recipe, data, np.random.SeedSequence(3), watcher)
    network = network_for(recipe, data)
    module = small_cnn(36, 3)
    start = network.initial(np.random.default_rng([recipe.init_seed]), 1.0).astype(np.float32)
    nn.utils.vector_to_parameters(torch.from_numpy(start), module.parameters())
    private = opacus.GradSampleModule(module)
    optimizer = opacus.optimizers.DPOptimizer(
        torch.optim.SGD(private.parameters(), lr=recipe.learning_rate), noise_multiplier=0.0, max_grad_norm=0.7,
        expected_batch_size=12,
    )  # fmt: skip
    functional.cross_entropy(private(torch.from_numpy(x)), torch.from_numpy(y)).backward()
    optimizer.step()
    theirs = nn.utils.parameters_to_vector(module.parameters()).detach().numpy()
    without_noise = ours + recipe.learning_rate / 12 * watcher.noise
    np.testing.assert_allclose(without_noise, theirs, atol=1e-5)


def test_a_registered_model_trains_and_reproduces() -> None:
    register("tanh-6", mlp)
    rng = np.random.default_rng(4)
    x = rng.normal(size=(60, 5))
    data = Dataset("made", x, (x[:, 0] > 0).astype(int), 2)
    recipe = Recipe(records=60, sample_rate=0.5, steps=40, learning_rate=1.0, noise_multiplier=0.3, model="tanh-6")
    first, again = (train(recipe, data, np.random.SeedSequence(1)) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    accuracy = (network_for(recipe, data).logits(first, data.x).argmax(1) == data.y).mean()
    assert accuracy > 0.85
    with pytest.raises(InvalidInput, match="backend = 'compiled'"):
        train(recipe, data, np.random.SeedSequence(1), backend="compiled")
    with pytest.raises(InvalidInput, match="not taken"):
        register("tanh-6", mlp)


def test_a_head_is_trained_on_frozen_features() -> None:
    rng = np.random.default_rng(5)
    data = Dataset("made", rng.random((300, 36)), rng.integers(0, 2, 300), 2)
    extractor = small_cnn(36, 2)[:-1]
    features = frozen_features(data, extractor, "made features")
    assert features.x.shape == (300, 144)
    assert features.y.tolist() == data.y.tolist()
    with torch.no_grad():
        np.testing.assert_allclose(features.x[:7], extractor(torch.tensor(data.x[:7])).numpy(), atol=1e-6)
    assert train(Recipe(records=300, steps=3), features, np.random.SeedSequence(1)).shape == (145 * 2,)


class Centred(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, :2] - x[:, :2].mean(dim=0)


@pytest.mark.parametrize(
    ("factory", "words"),
    [
        (
            lambda f, c: nn.Sequential(nn.Linear(f, 4), nn.BatchNorm1d(4), nn.Linear(4, c)),
            "BatchNorm1d at 1.*GroupNorm",
        ),
        (lambda f, c: nn.Sequential(nn.Dropout(0.5), nn.Linear(f, c)), "dropout at 0"),
        (lambda *_: Centred(), "depend on the other records"),
        (lambda f, c: nn.Linear(f, c + 1), r"output of shape \(6, 3\)"),
    ],
)
def test_what_mixes_records_is_refused_with_the_remedy(factory, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        ModuleNetwork(factory, 5, 2)


def test_two_threads_may_train_modules_at_once() -> None:
    """A module holds parameters and hooks while it is called: each thread has its own.

    Only up to rounding: how many threads of its own torch uses is a setting of each thread too.
    """
    data = digits().subset(per_class=4)
    recipe = Recipe(records=len(data), sample_rate=0.5, steps=4, model="cnn", noise_multiplier=1.0)
    alone = [train(recipe, data, np.random.SeedSequence(i)) for i in range(6)]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lambda i: train(recipe, data, np.random.SeedSequence(i)), range(6)))
    np.testing.assert_allclose(together, alone, atol=1e-5)
