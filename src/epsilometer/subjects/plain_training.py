"""Training without noise, and the usual defences against membership inference: nothing here is differentially private.

Adversarial regularisation (Nasr, Shokri & Houmansadr 2018) plays a game: an inference model h learns to tell the
network's outputs on members from those on held-out records, and the network minimises its loss plus λ times h's gain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from epsilometer import validate
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.subjects.access import Access
from epsilometer.subjects.seat import Trained
from epsilometer.subjects.subject import Insertion, Observer, Subject
from epsilometer.training import Array, Network, TrainingDiverged

if TYPE_CHECKING:
    import torch

_INFERENCE = (64, 32)  # hidden units of the inference model
_INFERENCE_STEPS, _COMPARED = 2, 200  # its steps for one of the network, with so many members and as many others
_INFERENCE_RATE = 1e-4  # slower than the network: a quick one has cliffs, from which the network falls to being wrong
_VERSION = 1  # raised whenever the same settings would give other models


@dataclass(frozen=True)
class PlainRecipe:
    """Adam on mini-batches of the usual loss, and what is done against membership inference.

    `patience` ends a training after so many epochs in which the loss on held-out records did not fall, and takes the
    best model (early stopping). `adversarial` is λ; its held-out records are those that h compares members with.
    """

    hidden: tuple[int, ...] = (256,)
    activation: str = "tanh"
    epochs: int = 40
    batch: int = 100
    learning_rate: float = 1e-3
    l2: float = 0.0
    label_smoothing: float = 0.0
    adversarial: float = 0.0
    patience: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "hidden", tuple(validate.whole("hidden", one, least=1, most=10**5) for one in self.hidden)
        )
        validate.whole("epochs", self.epochs, least=1, most=10**5)
        validate.whole("batch", self.batch, least=1, most=10**6)
        validate.real("learning_rate", self.learning_rate, above=0, below=10)
        validate.real("l2", self.l2, above=0, below=10, closed="[")
        validate.real("label_smoothing", self.label_smoothing, above=0, below=1, closed="[")
        validate.real("adversarial", self.adversarial, above=0, below=1000, closed="[", remedy="λ, such as 3")
        if self.patience is not None:
            validate.whole("patience", self.patience, least=1)
        if self.activation not in ("relu", "tanh"):
            raise InvalidInput("activation", self.activation, "relu or tanh")

    @property
    def needs_held_out(self) -> bool:
        return self.adversarial > 0 or self.patience is not None

    def in_words(self) -> str:
        """The defences that it has."""
        named = {
            f"label smoothing {self.label_smoothing:g}": self.label_smoothing,
            f"l2 {self.l2:g}": self.l2,
            f"adversarial regularisation λ = {self.adversarial:g}": self.adversarial,
            f"early stopping after {self.patience} epochs": self.patience,
        }
        return ", ".join(words for words, used in named.items() if used) or "no defence"


@dataclass(frozen=True, eq=False)
class PlainTraining(Subject):
    """A fully connected network, trained by torch on one thread; `held_out` has records that are in no training."""

    recipe: PlainRecipe
    data: Dataset
    held_out: Dataset | None = None

    def __post_init__(self) -> None:
        if self.recipe.needs_held_out and (self.held_out is None or len(self.held_out) < 2):
            expected = f"records that are in no model, for {self.recipe.in_words()}"
            raise InvalidInput("held_out", 0 if self.held_out is None else len(self.held_out), expected)

    @property
    def network(self) -> Network:
        return Network((self.data.x.shape[1], *self.recipe.hidden, self.data.classes), self.recipe.activation)

    @property
    def grants(self) -> Access:
        return Access()

    def load(self) -> None:
        import torch  # noqa: F401

    def describe(self) -> str:
        widths = "-".join(str(width) for width in self.network.widths)
        return f"network {widths} on {self.data.name} ({len(self.data)} records), Adam, {self.recipe.in_words()}"

    def identity(self) -> dict[str, Any]:
        held_out = None
        if self.held_out is not None and self.recipe.needs_held_out:
            held_out = {"records": len(self.held_out), "sha256": self.held_out.fingerprint()}
        return {
            "data": {"name": self.data.name, "records": len(self.data), "sha256": self.data.fingerprint()},
            "recipe": {"kind": "plain", "version": _VERSION, **asdict(self.recipe)},
            "held_out": held_out,
            "engine": "torch",
        }

    def run(
        self,
        insertions: Sequence[Insertion],
        seeds: Sequence[np.random.SeedSequence],
        observers: Sequence[Observer],
    ) -> None:
        for insertion, seed, observer in zip(insertions, seeds, observers, strict=True):
            observer.finish(self._trained(insertion.data, seed))

    def rehearse(
        self, data: Dataset, seeds: Sequence[np.random.SeedSequence], *, noiseless: bool = False
    ) -> list[Trained]:
        return [self._trained(data, seed) for seed in seeds]

    def _trained(self, data: Dataset, seed: np.random.SeedSequence) -> Trained:
        parameters = _train(self.recipe, self.network, data, self.held_out, np.random.default_rng(seed))
        if not np.isfinite(parameters).all():
            raise TrainingDiverged(f"learning_rate = {self.recipe.learning_rate:g}: the training diverged; lower it")
        return Trained(self.network, parameters, np.zeros(0))


def _train(
    recipe: PlainRecipe, network: Network, data: Dataset, held_out: Dataset | None, rng: np.random.Generator
) -> Array:
    """The parameters, as `Network` has them: one flat vector."""
    import torch
    from torch.nn.functional import cross_entropy, softmax

    flat = torch.tensor(network.initial(rng, 1.0).astype(np.float32), requires_grad=True)
    optimizer = torch.optim.Adam([flat], recipe.learning_rate, weight_decay=recipe.l2)
    x, y = torch.tensor(data.x), torch.tensor(data.y)
    outside = None if held_out is None else (torch.tensor(held_out.x), torch.tensor(held_out.y))
    game = _Inference(data.classes, rng) if recipe.adversarial else None
    best, best_loss, since = flat.detach().numpy().copy(), np.inf, 0
    for _ in range(recipe.epochs):
        for rows in _batches(rng, len(data), recipe.batch):
            logits = _logits(network, flat, x[rows])
            loss = cross_entropy(logits, y[rows], label_smoothing=recipe.label_smoothing)
            if game is not None and outside is not None:
                for _ in range(_INFERENCE_STEPS):
                    inside, others = (rng.integers(len(one[0]), size=_COMPARED) for one in ((x, y), outside))
                    with torch.no_grad():
                        said = _logits(network, flat, torch.cat([x[inside], outside[0][others]]))
                    game.learn(softmax(said, 1), torch.cat([y[inside], outside[1][others]]))
                loss = loss + recipe.adversarial * game.gain(softmax(logits, 1), y[rows])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        if recipe.patience is not None and outside is not None:
            with torch.no_grad():
                now = float(cross_entropy(_logits(network, flat, outside[0]), outside[1]))
            best, best_loss, since = (
                (flat.detach().numpy().copy(), now, 0) if now < best_loss else (best, best_loss, since + 1)
            )
            if since >= recipe.patience:
                break
    found: Array = flat.detach().numpy() if recipe.patience is None else best
    return found


def _logits(network: Network, flat: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    import torch

    at = 0
    for i, (inputs, outputs) in enumerate(zip(network.widths[:-1], network.widths[1:], strict=True)):
        weights = flat[at : at + inputs * outputs].reshape(outputs, inputs)
        at += inputs * outputs
        x = torch.addmm(flat[at : at + outputs], x, weights.T)
        at += outputs
        if i < len(network.widths) - 2:
            x = torch.tanh(x) if network.activation == "tanh" else torch.relu(x)
    return x


def _batches(rng: np.random.Generator, records: int, size: int) -> Iterator[Any]:
    order = rng.permutation(records)
    for begin in range(0, records, size):
        yield order[begin : begin + size]


class _Inference:
    """h of the paper, smaller: from the label's chance and the three largest to the chance of being a member."""

    def __init__(self, classes: int, rng: np.random.Generator) -> None:
        import torch

        self._classes = classes
        self._network = Network((1 + min(3, classes), *_INFERENCE, 1), "relu")
        self._flat = torch.tensor(self._network.initial(rng, 1.0).astype(np.float32), requires_grad=True)
        self._optimizer = torch.optim.Adam([self._flat], _INFERENCE_RATE)

    def _said(self, chances: torch.Tensor, y: torch.Tensor, flat: torch.Tensor) -> torch.Tensor:
        import torch

        first = chances.topk(min(3, self._classes), dim=1).values
        told = torch.cat([chances.gather(1, y[:, None]), first], dim=1)
        return _logits(self._network, flat, told)[:, 0]

    def learn(self, chances: torch.Tensor, y: torch.Tensor) -> None:
        """A step up its gain, ½ E ln h(members) + ½ E ln(1 − h(others)); members come first, and as many others."""
        from torch.nn.functional import softplus

        inside, outside = self._said(chances, y, self._flat).chunk(2)
        loss = 0.5 * softplus(-inside).mean() + 0.5 * softplus(outside).mean()
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()

    def gain(self, chances: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """What the network gives away of members: E h − ½, as the authors' code has it.

        The paper's text has E ln h, which has no lower limit: a network that is wrong on purpose would win.
        """
        return self._said(chances, y, self._flat.detach()).sigmoid().mean() - 0.5
