"""What a training of the user's own returns, as those see it who attack it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput, one_line
from epsilometer.training import Array

SCORED = "scored"  # the "loss" of models that only a function of the user's can judge: minus its score
_NEVER = -745.0  # the logarithm of a chance that is nil


@dataclass(frozen=True, eq=False)
class Released:
    """What one training returned, and the data's form, so that it can be asked for predictions."""

    model: Any
    data: Dataset
    score: Callable[[Any, Any], float] | None = None

    def logits(self, x: Array) -> Array:
        """A row of outputs, one a class: logits, logarithms of chances, or what the user's own `score` says."""
        records = np.asarray(x, np.float32).reshape(len(x), *(self.data.shape or x.shape[1:]))
        outputs = self._outputs(records)
        classes = self.data.classes
        if outputs.ndim == 2 and outputs.shape[1] == 1:
            outputs = outputs[:, 0]
        if outputs.ndim == 1 and classes == 2:  # of two classes one number is enough
            outputs = np.stack([np.zeros_like(outputs), outputs], axis=1)
        if outputs.shape != (len(x), classes):
            expected = f"outputs of shape {(len(x), classes)}, a column a class"
            raise InvalidInput(
                "predictions of the model", f"shape {outputs.shape}", expected, "or give a score function"
            )
        return outputs

    def _outputs(self, records: Array) -> Array:
        torch = sys.modules.get("torch")
        if self.score is not None:
            outputs: Any = [self._scores(self.score, record) for record in records]
        elif torch is not None and isinstance(self.model, torch.nn.Module):
            outputs = _torch_outputs(torch, self.model, records)
        elif any(hasattr(self.model, name) for name in ("predict_proba", "decision_function", "predict")):
            outputs = self._estimated(records.reshape(len(records), -1))
        elif callable(self.model):
            outputs = self.model(records)
        else:
            raise InvalidInput(
                "what train returned", type(self.model).__name__,
                "a torch module, an estimator of scikit-learn's kind, or a function from records to rows of outputs",
                "or say how to score it: score = 'mymodule:score', a function of (model, (x, y))",
            )  # fmt: skip
        return np.asarray(outputs, np.float64)

    def _scores(self, score: Callable[[Any, Any], float], record: Array) -> list[float]:
        return [float(score(self.model, (record, label))) for label in range(self.data.classes)]

    def _estimated(self, x: Array) -> Array:
        """By an estimator: logarithms of chances, or margins, or bare labels."""
        if hasattr(self.model, "predict_proba"):
            with np.errstate(divide="ignore"):
                return self._by_class(np.maximum(np.log(np.asarray(self.model.predict_proba(x))), _NEVER))
        if hasattr(self.model, "decision_function"):
            return self._by_class(np.asarray(self.model.decision_function(x)))
        given = np.asarray(self.model.predict(x))
        return np.asarray(given[:, None] == np.arange(self.data.classes), np.float64)

    def _by_class(self, outputs: Any) -> Array:
        """In the order of the data's classes, of which the training may have seen fewer."""
        seen = getattr(self.model, "classes_", None)
        found = np.asarray(outputs, np.float64)
        if seen is None or found.ndim != 2 or found.shape[1] != len(seen) or len(seen) == self.data.classes:
            return found
        whole = np.full((len(found), self.data.classes), _NEVER)
        whole[:, np.asarray(seen, np.int64)] = found
        return whole

    @property
    def numbers(self) -> Floats:
        """All that was released, as one vector: weights of a model, arrays, or the letters of a text."""
        parts = list(_numbers(self.model))
        if not parts:
            raise InvalidInput(
                "what train returned", type(self.model).__name__,
                "something with numbers in it: a model, arrays, or a text", "return its weights as an array",
            )  # fmt: skip
        return np.concatenate(parts)


def _torch_outputs(torch: Any, model: Any, records: Array) -> Array:
    first = next(iter(model.parameters()), None)
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            x = torch.tensor(records)
            if first is not None:
                x = x.to(device=first.device, dtype=first.dtype if first.dtype.is_floating_point else x.dtype)
            found = model(x)
    finally:
        model.train(was_training)
    outputs: Array = found.detach().cpu().double().numpy()
    return outputs


def _numbers(value: Any) -> Iterator[Floats]:
    """The numbers of whatever it is, in a fixed order."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.nn.Module):
        value = [parameter.detach() for parameter in value.parameters()]
    if torch is not None and isinstance(value, torch.Tensor):
        value = value.detach().cpu().double().numpy()
    if isinstance(value, str | bytes):
        letters = np.frombuffer(value.encode() if isinstance(value, str) else value, np.uint8)
        yield np.concatenate([[float(len(letters))], np.bincount(letters, minlength=256).astype(np.float64)])
    elif isinstance(value, bool | int | float | np.number | np.ndarray):
        array = np.asarray(value)
        if array.dtype.kind in "biuf":
            yield array.astype(np.float64).ravel()
    elif isinstance(value, dict):
        for key in sorted(value, key=str):
            yield from _numbers(value[key])
    elif isinstance(value, Sequence):
        for item in value:
            yield from _numbers(item)
    elif hasattr(value, "__dict__"):  # what an estimator has learned ends in _
        learned = {name: item for name, item in vars(value).items() if name.endswith("_") and not name.startswith("_")}
        yield from _numbers(learned)


def explained(error: BaseException, name: str) -> str:
    """What a function of the user's raised, in one line with its place."""
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "epsilometer" not in f.filename.replace("\\", "/").split("/")] or frames
    where = f", {own[-1].filename.replace(chr(92), '/').rsplit('/', 1)[-1]} line {own[-1].lineno}" if own else ""
    return f"{name} raised {type(error).__name__}: {one_line(str(error))}{where}"
