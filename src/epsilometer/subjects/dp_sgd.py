"""The own DP-SGD as a subject: it grants everything, from predictions to gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from epsilometer import validate
from epsilometer.accounting import StepsPromise
from epsilometer.claims import Claim, CurveClaim, Relation
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.subjects.access import Access
from epsilometer.subjects.engine_steps import EngineSteps
from epsilometer.subjects.seat import Seat, Trained
from epsilometer.subjects.subject import Insertion, Observer, Offered, Subject
from epsilometer.subjects.user_code import code_of
from epsilometer.training import (
    ModuleNetwork,
    Network,
    Recipe,
    add_factories,
    engine_of,
    factories_of,
    is_module,
    network_for,
    train_many,
)

OTHER_SAMPLING = "proved for Poisson sampling; this training's is {}"


@dataclass(frozen=True)
class Faults:
    """Faults injected on purpose into the audited training, to see whether the audit notices.

    `noise_scale` multiplies the noise that is really added, while claim and adversary still believe in the
    recipe's noise multiplier.
    """

    noise_scale: float = 1.0

    def __post_init__(self) -> None:
        validate.real("noise_scale", self.noise_scale, above=0, closed="[", remedy="1 injects no fault")

    def in_words(self) -> list[str]:
        scale = self.noise_scale
        return [f"the noise really added is {scale:g} × what is claimed"] if scale != 1 else []


@dataclass(frozen=True)
class DpSgdTraining(Subject):
    """DP-SGD by a recipe on data; `faults` are made on purpose, and nobody who plays is told.

    `clip_norm_from_data` says that somebody looked at the data to choose the clip norm, which nobody has accounted for.
    It changes no score: the clip norm is the recipe's in both worlds. `share` is the part of the data that a training
    has on average: a half, where a coin decides about every record. The recipe's public number of records is of that.
    """

    recipe: Recipe
    data: Dataset
    faults: Faults = field(default_factory=Faults)
    clip_norm_from_data: bool = False
    share: float = 1.0

    def __post_init__(self) -> None:
        if self.recipe.records != (members := round(self.share * len(self.data))):
            part = "" if self.share == 1 else f"{members} of "
            raise InvalidInput(
                "records", self.recipe.records, f"{part}the {len(self.data)} records of {self.data.name}"
            )
        object.__setattr__(self, "loss", self.recipe.loss)

    @property
    def grants(self) -> Access:
        return Access()

    @property
    def promise(self) -> StepsPromise:
        doubt = "" if self.recipe.is_accounted else OTHER_SAMPLING.format(self.recipe.sampling)
        return StepsPromise(self.recipe.mechanism, caveat=doubt)

    def load(self) -> None:
        if factories_of(self.recipe):
            import torch  # noqa: F401

    def injected(self) -> list[str]:
        return self.faults.in_words()

    @property
    def network(self) -> Network | ModuleNetwork:
        return network_for(self.recipe, self.data)

    def offers(self, capability: type[Offered]) -> Offered | None:
        found = capability.of(self)
        return capability.of(EngineSteps(self.recipe, self.data)) if found is None else found

    def describe(self) -> str:
        data = f"{self.data.name} ({len(self.data)} records)"
        return f"{self.recipe.model} on {data}, {self.promise.describe()}{self._told_of_clipping()}"

    def _told_of_clipping(self) -> str:
        if not self.clip_norm_from_data:
            return ""
        return f"; C = {self.recipe.clip_norm:.4g}, the median gradient norm of these data, for which nobody accounts"

    def identity(self) -> dict[str, Any]:
        return {
            "data": {"name": self.data.name, "records": len(self.data), "sha256": self.data.fingerprint()}
            | self.data.origin(),
            "recipe": self.recipe.to_dict() | self._module(),
            "engine": engine_of(self.recipe),
            "faults": asdict(self.faults),
        }

    def _module(self) -> dict[str, Any]:
        """What a torch module is and does, and the code of one of the user's own: outputs do not tell its gradients."""
        if not is_module(self.recipe.model):
            return {}
        network: Any = self.network
        own = {"module_code": code_of(network.factory)} if self.code() else {}
        return {"module_sha256": network.fingerprint(), **own}

    def code(self) -> list[Any]:
        factories = factories_of(self.recipe).values()
        return [part for part in factories if getattr(part, "__module__", "").split(".")[0] != "epsilometer"]

    def run(
        self,
        insertions: Sequence[Insertion],
        seeds: Sequence[np.random.SeedSequence],
        observers: Sequence[Observer],
    ) -> None:
        seats = [Seat(self.network, *both) for both in zip(insertions, observers, strict=True)]
        train_many(
            self.recipe, [one.whole for one in insertions], seeds, seats, noise_scale=self.faults.noise_scale
        )  # fmt: skip

    def rehearse(
        self, data: Dataset, seeds: Sequence[np.random.SeedSequence], *, noiseless: bool = False
    ) -> list[Trained]:
        scale = 0.0 if noiseless else 1.0
        models = train_many(self.recipe, [data] * len(seeds), seeds, noise_scale=scale)
        return [Trained(self.network, parameters, np.zeros(0)) for parameters in models]

    def require_relation(self, relation: Relation) -> None:
        if not self.recipe.is_accounted and relation is Relation.ZERO_OUT:
            raise InvalidInput(
                "sampling", self.recipe.sampling, "poisson or full with zero-out: a record that is left out would "
                "change other batches too", "claim add-remove or replace",
            )  # fmt: skip

    def require_claim(self, claim: Claim) -> None:
        if not self.recipe.is_accounted and isinstance(claim, CurveClaim):
            raise InvalidInput(
                "sampling", self.recipe.sampling, "poisson or full for a curve, which accountants prove for these only",
                "claim a point instead",
            )  # fmt: skip

    # Another process must be told the torch module that the recipe names.
    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "factories": factories_of(self.recipe)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        add_factories(state.pop("factories"))
        self.__dict__.update(state)
