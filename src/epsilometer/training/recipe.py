"""What of a training affects privacy: nothing else belongs here."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from epsilometer import checks
from epsilometer.accounting import DpSgd
from epsilometer.errors import InvalidInput, unknown_name

MODELS = {
    "logistic": "multinomial logistic regression",
    "mlp": "fully connected network; hidden layers of any number and width, one of 32 by default",
}
ACTIVATIONS = {"relu": "rectified linear units", "tanh": "hyperbolic tangent"}
INITIALISATIONS = {
    "fixed": "Glorot normal, drawn once: every trial starts from the same, known weights",
    "random": "Glorot normal, drawn anew for every trial",
}
PRECISIONS = {"float32": "single precision", "float64": "double precision"}


@dataclass(frozen=True)
class Recipe:
    """DP-SGD with Poisson samples, as Abadi et al. (2016) describe it.

    A step adds N(0, (noise_multiplier·clip_norm)²) to the sum of the sample's clipped gradients and divides
    by sample_rate·records. `records` is the *public* size of the data and the same in both worlds: dividing
    by a world's own size would tell the worlds apart.
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

    def __post_init__(self) -> None:
        checks.whole("records", self.records, least=1)
        self.mechanism  # noqa: B018  checks sample rate, noise multiplier and steps
        checks.real("clip_norm", self.clip_norm, above=0)
        checks.real("learning_rate", self.learning_rate, above=0)
        checks.real("init_scale", self.init_scale, above=0, closed="[")
        checks.whole("init_seed", self.init_seed, least=0)
        if not self.hidden:
            raise InvalidInput("hidden", self.hidden, "at least one width", 'use model = "logistic" for none')
        for width in self.hidden:
            checks.whole("hidden", width, least=1)
        for name, known in (
            ("model", MODELS),
            ("activation", ACTIVATIONS),
            ("initialisation", INITIALISATIONS),
            ("precision", PRECISIONS),
        ):
            if getattr(self, name) not in known:
                raise unknown_name(name, getattr(self, name), known)

    @property
    def expected_batch(self) -> float:
        return self.sample_rate * self.records

    @property
    def mechanism(self) -> DpSgd:
        """The training as accountants see it."""
        return DpSgd(self.sample_rate, self.noise_multiplier, self.steps)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
