"""A model that somebody trained elsewhere: asked for predictions by a function of the user's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from epsilometer.data import Dataset
from epsilometer.errors import EpsilometerError, InvalidInput, unknown_name
from epsilometer.evidence import Coins, as_coins
from epsilometer.membership.signals import NEVER
from epsilometer.subjects import Entry, TrainingFailed, code_of
from epsilometer.subjects.entry import by_name, function_of, name_of
from epsilometer.subjects.released import explained
from epsilometer.training import Array

OUTPUTS = {"probabilities": "rows that sum to 1", "logits": "any numbers; softmax makes chances of them"}
_ROUNDING = 1e-3  # by which a row of single or half precision may miss 1


@dataclass(frozen=True, eq=False)
class GivenModel:
    """`predict(x)` gives a row of outputs for each record; `member` says who was in. Nobody flipped a coin for it."""

    predict: Entry | Callable[[Any], Any]
    member: Coins
    outputs: str = "probabilities"

    def __post_init__(self) -> None:
        if self.outputs not in OUTPUTS:
            raise unknown_name("outputs", self.outputs, OUTPUTS)
        object.__setattr__(self, "predict", by_name("predict", self.predict, "mymodule:predict"))
        object.__setattr__(self, "member", as_coins("member", self.member, len(self.member)))
        for side, name in ((self.member, "members"), (~self.member, "others")):
            if not side.any():
                raise InvalidInput(name, 0, "at least one record", "an attack is judged by both")

    @property
    def name(self) -> str:
        return name_of(self.predict)

    def function(self) -> Callable[[Any], Any]:
        return function_of(self.predict, "target.predict")

    def identity(self) -> dict[str, Any]:
        import hashlib

        return {
            "predict": self.name,
            "outputs": self.outputs,
            "code": code_of(self.function()),
            "member_sha256": hashlib.sha256(np.packbits(self.member).tobytes()).hexdigest(),
        }

    def asked(self, data: Dataset) -> _Asked:
        return _Asked(self, data)


@dataclass(frozen=True, eq=False)
class _Asked:
    """The given model as other models are asked."""

    model: GivenModel
    data: Dataset

    def logits(self, x: Array) -> Array:
        """Logits, or logarithms of chances."""
        records = np.asarray(x, np.float32).reshape(len(x), *(self.data.shape or x.shape[1:]))
        try:
            given = self.model.function()(records)
            outputs = np.asarray(given.detach().cpu() if hasattr(given, "detach") else given, np.float64)
        except EpsilometerError:
            raise
        except (Exception, SystemExit) as error:
            raise TrainingFailed(explained(error, self.model.name)) from None
        what = f"predictions of {self.model.name}"
        if outputs.ndim == 2 and outputs.shape[1] == 1:
            outputs = outputs[:, 0]
        if outputs.ndim == 1 and self.data.classes == 2 and self.model.outputs == "probabilities":
            outputs = np.stack([1.0 - outputs, outputs], axis=1)
        if outputs.shape != (len(x), self.data.classes):
            expected = f"an array of shape {(len(x), self.data.classes)}: a row a record, a column a class"
            raise InvalidInput(what, f"shape {outputs.shape}", expected)
        if not np.isfinite(outputs).all():
            raise InvalidInput(what, "NaN or infinity", "finite numbers")
        if self.model.outputs == "logits":
            return outputs
        sums = outputs.sum(axis=1)
        worst = int(np.argmax(np.abs(sums - 1.0)))
        if outputs.min() < -_ROUNDING or abs(sums[worst] - 1.0) > _ROUNDING:
            came = f"a row from {outputs[worst].min():.4g} to {outputs[worst].max():.4g} with the sum {sums[worst]:.4g}"
            remedy = 'apply softmax, or say outputs = "logits"'
            raise InvalidInput(what, came, "probabilities: rows without negative numbers that sum to 1", remedy)
        return np.maximum(np.log(np.maximum(outputs, np.finfo(float).tiny)), NEVER)
