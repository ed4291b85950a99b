"""What is read off a model for each record, and what records then are: classes and predictions, or losses alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.membership.inside import white_box, white_box_names
from epsilometer.membership.queries import Queries
from epsilometer.membership.signals import BLACK_BOX, MINUS_LOSS, ROBUST, black_box
from epsilometer.registry import Registry
from epsilometer.subjects import Predicts, Subject
from epsilometer.training import Labels, Network


class Readout(Protocol):
    """Numbers by name for each record. The plan keeps coins, references and models; attacks name the numbers they need.

    Data are of the subject's own kind, with a name, a length, a fingerprint and `taken(rows)`.
    """

    name: ClassVar[str]

    @property
    def signals(self) -> tuple[str, ...]:
        """The names of what `read` gives, in order (see `signals.py` for those that attacks know)."""

    def require(self, training: Subject) -> None:
        """Refuse a training whose models cannot be asked for these."""

    def read(self, model: Any, parts: Sequence[Any]) -> Floats:
        """A row for each record of all parts, one after another; the model is as the subject shows it."""

    def labels(self, data: Any) -> tuple[Labels, tuple[str, ...]]:
        """The class of each record, and the names of classes; one class, where records have none."""


@dataclass(frozen=True, eq=False)
class Classifier:
    """A classifier's predictions; of noisy copies too, if there are `queries`; and its layers, if these are known."""

    queries: Queries | None = None
    network: Network | None = None  # whose layers are looked at
    name: ClassVar[str] = "classifier"
    summary: ClassVar[str] = "a classifier's predictions, and its layers if they are known"

    @property
    def signals(self) -> tuple[str, ...]:
        layers = () if self.network is None else white_box_names(len(self.network.widths) - 1)
        return (*BLACK_BOX, *((ROBUST,) if self.queries is not None else ()), *layers)

    def require(self, training: Subject) -> None:
        expected = "one that tells classes apart and gives predictions"
        _require_classes(training, expected)
        if training.loss == "scored":
            raise InvalidInput("training", training.describe(), expected, "readout=Losses() reads its scores")

    def read(self, model: Any, parts: Sequence[Dataset]) -> Floats:
        x, y = _together(parts)
        found = [black_box(model.logits(x), y)]
        if self.queries is not None:
            found.append(self.queries.robust(model, x, y)[:, None])
        if self.network is not None:
            found.append(white_box(self.network, model.parameters, x, y))
        return np.concatenate(found, axis=1)

    def labels(self, data: Dataset) -> tuple[Labels, tuple[str, ...]]:
        return _classes(data)


@dataclass(frozen=True)
class Losses:
    """Minus each record's loss, and nothing else: for models that a score function of the user's judges."""

    name: ClassVar[str] = "losses"
    summary: ClassVar[str] = "minus each record's loss, by a score function"
    signals: ClassVar[tuple[str, ...]] = (MINUS_LOSS,)

    def require(self, training: Subject) -> None:
        _require_classes(training, "one whose records can be scored")

    def read(self, model: Any, parts: Sequence[Dataset]) -> Floats:
        x, y = _together(parts)
        scores: Floats = np.asarray(model.logits(x), np.float64)[np.arange(len(y)), y]
        return scores[:, None]

    def labels(self, data: Dataset) -> tuple[Labels, tuple[str, ...]]:
        return _classes(data)


READOUTS: Registry[type[Readout]] = Registry(
    "readouts",
    {one.name: one for one in (Classifier, Losses)},
    argument="readout",
    expected="a class of readouts that can be made without settings",
    accept=lambda name, found: found if getattr(found, "name", None) == name else None,
)


def _require_classes(training: Subject, expected: str) -> None:
    if training.offers(Predicts) is None:
        raise InvalidInput("training", training.describe(), expected)


def _together(parts: Sequence[Dataset]) -> tuple[Any, Labels]:
    """All records in one go: products of matrices may round otherwise for other numbers of rows."""
    filled = [part for part in parts if len(part)]
    return np.concatenate([part.x for part in filled]), np.concatenate([part.y for part in filled])


def _classes(data: Dataset) -> tuple[Labels, tuple[str, ...]]:
    return data.y, data.class_names or tuple(str(label) for label in range(data.classes))
