"""The data set of a training, of which runs in lockstep change records."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from epsilometer.watching.replay.changes import changed_dataset, changed_whole
from epsilometer.watching.replay.marks import marks_of
from epsilometer.watching.replay.roles import HUGE, LABEL, REPLACED

_LASTING = (HUGE, REPLACED, LABEL)  # a record that is left out would change who is in which batch
_CHANGED: list[tuple[int, int, Any]] = []  # where records lie that were changed, and who keeps them there
_MOST = 1 << 20  # records of which marks are kept


class TrainingData:
    """Whatever a loader was made of."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def change(self, draw: np.random.Generator, which: int) -> str:
        """The neighbour of this number has another record, for good: how. It is one, in however many trainings."""
        if self._is_changed():
            return "changed before"
        index, other = (int(i) for i in draw.choice(len(self._dataset), (which, 2), replace=False)[-1])
        return changed_dataset(self._dataset, index, other, _LASTING[(which - 1) % len(_LASTING)])

    def change_all(self, draw: np.random.Generator) -> str:
        """Every record is another one, for good."""
        return "changed before" if self._is_changed() else changed_whole(self._dataset, draw)

    def _is_changed(self) -> bool:
        """Was any of its records, or may one have been, for a training before?"""
        whole = self._dataset
        while isinstance(whole, torch.utils.data.Subset):
            whole = whole.dataset
        tensors = whole.tensors[:1] if isinstance(whole, torch.utils.data.TensorDataset) else ()
        place = (id(whole), id(whole) + 1)
        for one in tensors:
            place = (one.data_ptr(), one.data_ptr() + one.numel() * one.element_size())
        known = any(begin < place[1] and place[0] < end for begin, end, _ in _CHANGED)
        _CHANGED.append((*place, whole))
        return known

    def marks(self) -> str:
        """Of its records' features; empty if they are not known."""
        chosen: Any = slice(None)
        data = self._dataset
        if isinstance(data, torch.utils.data.Subset):
            chosen, data = list(data.indices), data.dataset
        if not isinstance(data, torch.utils.data.TensorDataset) or not 0 < len(data) <= _MOST:
            return ""
        features = data.tensors[0].detach().cpu().reshape(len(data), -1)[chosen].double().numpy()
        return marks_of(features)
