"""What of a training affects privacy: nothing else belongs here."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from epsilometer import validate
from epsilometer.accounting import DpSgd
from epsilometer.arrays import Floats
from epsilometer.errors import InvalidInput, unknown_name

MODELS = {
    "logistic": "multinomial logistic regression",
    "mlp": "fully connected network; hidden layers of any number and width, one of 32 by default",
}
SAMPLINGS = {
    "poisson": "every record by its own coin, in every step; what accountants assume",
    "full": "all records in every step",
    "shuffle": "epochs of a random order; no accountant here proves it",
    "fixed-size": "a random batch of one size, without replacement; no accountant here proves it",
}
LOSSES = {
    "cross-entropy": "softmax over the classes",
    "logistic": "a logistic loss for each class against the rest",
    "squared": "half the squared distance of the outputs to the label's unit vector",
}
CLIPPINGS = {
    "flat": "each record's gradient to norm C at most",
    "per-layer": "each layer's part of it to C/√layers at most",
    "automatic": "each record's gradient scaled by C/(norm + 0.01): about C, whatever its size",
}
OPTIMIZERS = {"sgd": "plain steps", "momentum": "heavy-ball momentum", "adam": "Adam (β = 0.9, 0.999)"}
SCHEDULES = {"constant": "the same rate", "linear": "falling on a line", "cosine": "falling on a cosine"}
ACTIVATIONS = {"relu": "rectified linear units", "tanh": "hyperbolic tangent"}
INITIALISATIONS = {
    "fixed": "Glorot normal, drawn once: every trial starts from the same, known weights",
    "random": "Glorot normal, drawn anew for every trial",
}
PRECISIONS = {"float32": "single precision", "float64": "double precision"}
_LATER = ("final_learning_rate", "decay_steps")  # fields that plans of earlier versions do not have


@dataclass(frozen=True)
class Recipe:
    """DP-SGD as Abadi et al. (2016) describe it, with its usual variations.

    A step adds N(0, (noise_multiplier·clip_norm)²) to the sum of the sample's clipped gradients and divides
    by sample_rate·records. `records` is the *public* size of the data and the same in both worlds: dividing
    by a world's own size would tell the worlds apart. What the optimizer does with the result, weight decay
    included, costs no privacy. A falling rate reaches `final_learning_rate` after `decay_steps` (all steps, if nothing
    is said) and stays there.
    """

    records: int
    sample_rate: float = 0.1
    steps: int = 100
    noise_multiplier: float = 1.0
    clip_norm: float = 1.0
    learning_rate: float = 2.0
    model: str = "logistic"
    hidden: tuple[int, ...] = (32,)
    activation: str = "relu"
    initialisation: str = "fixed"
    init_scale: float = 1.0
    init_seed: int = 0
    precision: str = "float32"
    sampling: str = "poisson"
    loss: str = "cross-entropy"
    clipping: str = "flat"
    optimizer: str = "sgd"
    momentum: float = 0.9
    weight_decay: float = 0.0
    schedule: str = "constant"
    final_learning_rate: float = 0.0
    decay_steps: int | None = None

    def __post_init__(self) -> None:
        validate.whole("records", self.records, least=1, most=10**12)
        self.mechanism  # noqa: B018  checks sample rate, noise multiplier and steps
        validate.real("clip_norm", self.clip_norm, above=1e-12, below=1e12, closed="[]")
        validate.real("learning_rate", self.learning_rate, above=0, below=1e30)
        validate.real("final_learning_rate", self.final_learning_rate, above=0, below=1e30, closed="[")
        if self.decay_steps is not None:
            validate.whole("decay_steps", self.decay_steps, least=1, most=10**8)
        validate.real("init_scale", self.init_scale, above=0, below=1e6, closed="[]")
        validate.seed("init_seed", self.init_seed)
        validate.real("momentum", self.momentum, above=0, below=1, closed="[")
        validate.real("weight_decay", self.weight_decay, above=0, closed="[")
        if not isinstance(self.hidden, tuple | list) or not self.hidden:
            raise InvalidInput(
                "hidden", self.hidden, "a tuple of widths, at least one", 'use model = "logistic" for none'
            )
        widths = tuple(validate.whole("hidden", width, least=1, most=10**6) for width in self.hidden)
        object.__setattr__(self, "hidden", widths)
        for name, known in (
            ("model", MODELS),
            ("activation", ACTIVATIONS),
            ("initialisation", INITIALISATIONS),
            ("precision", PRECISIONS),
            ("sampling", SAMPLINGS),
            ("loss", LOSSES),
            ("clipping", CLIPPINGS),
            ("optimizer", OPTIMIZERS),
            ("schedule", SCHEDULES),
        ):
            if not isinstance(getattr(self, name), str) or getattr(self, name) not in known:
                raise unknown_name(name, getattr(self, name), known)
        for name in _LATER:
            if self.schedule == "constant" and getattr(self, name) != getattr(Recipe, name):
                raise InvalidInput(
                    name, getattr(self, name), "nothing while the rate is constant", 'schedule = "linear"'
                )
        if (self.sampling == "full") != (self.sample_rate == 1) and self.sampling != "poisson":
            raise InvalidInput(
                "sample_rate", self.sample_rate, 'exactly 1 with sampling = "full", and below 1 otherwise'
            )

    @property
    def expected_batch(self) -> float:
        return self.sample_rate * self.records

    @property
    def batch_size(self) -> int:
        """Records in a batch, where the sampling has batches of one size."""
        return max(1, round(self.expected_batch))

    @property
    def batches(self) -> int:
        """Batches of an epoch, by the public number of records: a world's own would tell it from the other."""
        return -(-self.records // self.batch_size)

    @property
    def is_accounted(self) -> bool:
        """Whether the accountants' assumption, Poisson sampling, is what the training does."""
        return self.sampling in ("poisson", "full")

    def learning_rates(self) -> Floats:
        """The rate of every step."""
        progress = np.minimum(np.arange(self.steps) / (self.decay_steps or self.steps), 1.0)
        falling = {"linear": 1.0 - progress, "cosine": 0.5 * (1.0 + np.cos(np.pi * progress))}
        last = self.final_learning_rate
        return last + (self.learning_rate - last) * falling.get(self.schedule, np.ones(self.steps))

    @property
    def mechanism(self) -> DpSgd:
        """The training as accountants see it."""
        return DpSgd(self.sample_rate, self.noise_multiplier, self.steps)

    def to_dict(self) -> dict[str, Any]:
        """Without fields that are newer than stored plans, unless they are used: a plan must stay the same."""
        unused = {name for name in _LATER if getattr(self, name) == getattr(Recipe, name)}
        return {name: value for name, value in asdict(self).items() if name not in unused}
