"""Where the parties of a trial sit in a training of the own engine, and the model that it ends in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.subjects.subject import Insertion, Observer
from epsilometer.training import Array, Labels, ModuleNetwork, Network, Watcher


@dataclass(frozen=True, eq=False)
class Trained:
    """A model of the own engine."""

    network: Network | ModuleNetwork
    parameters: Array
    projections: Floats

    def logits(self, x: Array) -> Array:
        return self.network.logits(self.parameters, x.astype(self.parameters.dtype))

    @property
    def numbers(self) -> Floats:
        return self.parameters.astype(np.float64)

    def input_gradients(self, x: Array, y: Labels) -> Array:
        return self.network.input_gradients(self.parameters.astype(np.float64), x, y)


class Seat(Watcher):
    """The place in a training of the own engine where an insertion and an observer sit, who do not talk."""

    def __init__(self, network: Network | ModuleNetwork, insertion: Insertion, observer: Observer) -> None:
        self._network, self._insertion, self._observer = network, insertion, observer
        self.inserted, self.poisoner = insertion.gradient, insertion.poisoner
        self.start, self.rows = insertion.start, insertion.rows
        self.probe = observer.probe
        acts = insertion.additions is not None or insertion.poisoner is not None
        self.stepwise = observer.stepwise or acts

    def before(self, step: int, parameters: Array) -> None:
        self._observer.before(step, parameters)

    def contribute(self, step: int, gradient_sum: Array) -> None:
        if self._insertion.additions is not None:
            places, values = self._insertion.additions(step)
            np.add.at(gradient_sum, places, values.astype(gradient_sum.dtype))

    def observe(self, step: int, noisy_sum: Array, parameters: Array) -> bool:
        return self._observer.observe(step, noisy_sum, parameters)

    def finish(self, parameters: Array, projections: Floats) -> None:
        self._observer.finish(Trained(self._network, parameters, projections))
