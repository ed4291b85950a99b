"""Any Python function that trains, `train(data, seed) -> model`: it grants records and models, and is not trusted."""

from __future__ import annotations

import inspect
import multiprocessing
import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

import numpy as np

from epsilometer import validate
from epsilometer.accounting import DpSgd, NoPromise, Promise, StepsPromise
from epsilometer.data import Dataset
from epsilometer.errors import EpsilometerError, InvalidInput, unknown_name
from epsilometer.isolation import LATE, Isolation
from epsilometer.neighbours import RECORD, Neighbours, as_unit
from epsilometer.subjects.access import Access, Controls, Sees
from epsilometer.subjects.entry import Entry, by_name, can_start_processes, function_of, has_name, name_of
from epsilometer.subjects.released import SCORED, Released, explained
from epsilometer.subjects.subject import Insertion, Observer, Subject
from epsilometer.subjects.user_code import code_of
from epsilometer.training import Array, Labels

ISOLATIONS = {
    "none": "trainings share the processes that play them",
    "process": "every training has a process of its own: slower, and nothing is kept from one to the next",
    "here": "trainings are played in the calling process: no start to wait for, and one that crashes ends it",
}


class TrainingFailed(EpsilometerError):
    """A training of the user's own did not end in a model. No trial is ever dropped, so the audit cannot go on."""


class Records(NamedTuple):
    """What `train` is given: features, one row a record in the data's own shape, and labels 0, 1, …"""

    x: Array
    y: Labels


@dataclass(frozen=True, eq=False)
class CallableTraining(Subject):
    """A function of the user's, by name or as it is, and how to play it.

    `train(data, seed)` gets `Records` (x, y) and a whole number below 2³², and returns a model: a torch module, an
    estimator of scikit-learn's kind, a function from records to outputs, or anything that `score(model, (x, y))` can
    judge (higher: more like a member). `arguments` are passed on by name. `stated` is what the training says of itself,
    if it is DP-SGD: an accountant then says what it promises. `unit` is what one row of the data is: a record, or all
    that a user has. Python's, numpy's and torch's global generators are
    seeded before each training, for functions that do not look at their seed.
    """

    train: Entry | Callable[..., Any]
    data: Dataset
    score: Entry | Callable[..., Any] | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    isolation: str = "none"
    time_limit: float | None = None  # seconds for one training
    deterministic: bool = True  # given its seed; if not, no trial can be played again to see whether state is kept
    stated: DpSgd | None = None
    unit: str = RECORD

    def __post_init__(self) -> None:
        as_unit(self.unit)
        if self.isolation not in ISOLATIONS:
            raise unknown_name("isolation", self.isolation, ISOLATIONS)
        if self.time_limit is not None:
            validate.real("time_limit", self.time_limit, above=0)
        for name in ("train", "score"):
            if (given := getattr(self, name)) is not None:
                object.__setattr__(self, name, by_name(name, given))
        object.__setattr__(self, "loss", "cross-entropy" if self.score is None else SCORED)
        if self.isolation == "process" and not self.safeguards.travels:
            expected = "a function that another process can find by name"
            raise InvalidInput("isolation", "process", expected, "define it at the top of a module")

    @property
    def safeguards(self) -> Isolation:
        named = all(has_name(part) for part in (self.train, self.score))
        travels = named and can_start_processes() and self.isolation != "here"
        alone = self.isolation == "process"
        return Isolation(True, travels, alone, self.time_limit, self.deterministic)

    @property
    def grants(self) -> Access:
        return Access(Sees.FINAL_MODEL, [Controls.RECORDS, Controls.DATA])

    @property
    def promise(self) -> Promise:
        return NoPromise() if self.stated is None else StepsPromise(self.stated)

    def describe(self) -> str:
        said = "" if self.stated is None else f", which says: {self.stated.describe()}"
        return f"{self._name} on {self.data.name} ({Neighbours(self.unit).counted(len(self.data))}){said}"

    @property
    def _name(self) -> str:
        return name_of(self.train, "train")

    def load(self) -> None:
        self.code()

    def code(self) -> list[Any]:
        return [function_of(part) for part in (self.train, self.score) if part is not None]

    def identity(self) -> dict[str, Any]:
        names = {"train": self._name}
        if self.score is not None:
            names["score"] = name_of(self.score)
        return {
            "subject": {
                "kind": "callable",
                **names,
                "arguments": dict(self.arguments),
                "isolation": self.isolation,
                "deterministic": self.deterministic,
                "stated": self.stated and self.stated.describe(),
                "code": {name: code_of(part) for name, part in zip(names, self.code(), strict=True)},
            },
            "data": {"name": self.data.name, "records": len(self.data), "sha256": self.data.fingerprint()},
        }

    def run(
        self,
        insertions: Sequence[Insertion],
        seeds: Sequence[np.random.SeedSequence],
        observers: Sequence[Observer],
    ) -> None:
        for insertion, seed, observer in zip(insertions, seeds, observers, strict=True):
            model = self._trained(insertion.data, seed)
            try:
                observer.finish(model)
            except EpsilometerError:
                raise
            except Exception as error:
                raise TrainingFailed(explained(error, "looking at the model")) from None

    def rehearse(
        self, data: Dataset, seeds: Sequence[np.random.SeedSequence], *, noiseless: bool = False
    ) -> list[Released]:
        return [self._trained(data, seed) for seed in seeds]

    def ignores_its_seed(self, seed: np.random.SeedSequence) -> bool:
        """Whether two trainings with different seeds end in exactly the same numbers, or predictions."""
        first, second = self.rehearse(self.data, seed.spawn(2))
        with suppress(InvalidInput):  # it has none
            return bool(np.array_equal(first.numbers, second.numbers))
        with suppress(InvalidInput):
            one, other = first.logits(self.data.x), second.logits(self.data.x)
            bare = len(np.unique(one)) <= 2 * self.data.classes  # labels: models may well agree on all of them
            return bool(np.array_equal(one, other)) and not bare
        return False

    def _trained(self, data: Dataset, seed: np.random.SeedSequence) -> Released:
        train, number = function_of(self.train), int(seed.generate_state(1)[0])
        shape = data.shape or data.x.shape[1:]
        records = Records(data.x.reshape(len(data), *shape).copy(), data.y.copy())  # theirs to change
        seed_everything(number)
        try:
            given = (records, number) if _takes_seed(train) else (records,)
            _require_callable_with(train, given, self.arguments, self._name)
            with _quietly(), _at_most(self.time_limit, self._name):
                model = train(*given, **self.arguments)
        except EpsilometerError:
            raise
        except (Exception, SystemExit) as error:
            raise TrainingFailed(explained(error, self._name)) from None
        if model is None:
            raise TrainingFailed(f"{self._name} returned nothing: a model is expected")
        score = None if self.score is None else function_of(self.score)
        return Released(model, self.data, score)


@contextmanager
def _quietly() -> Iterator[None]:
    """What a training prints or warns of, it would hundreds of times; and stdout is for results."""
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _at_most(seconds: float | None, name: str) -> Iterator[None]:
    """End what takes longer, where Python can: in the main thread, and between its own instructions.

    Whatever sleeps elsewhere ends with its process a little later, if that is not the driver.
    """
    if seconds is None or not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(*_: Any) -> NoReturn:
        raise TrainingFailed(f"{name} took more than {seconds:g} s; `time_limit` of the subject allows for more")

    before = signal.signal(signal.SIGALRM, late)
    watchdog = threading.Timer(1.5 * seconds + 1.0, os._exit, [LATE])
    watchdog.daemon = True
    signal.setitimer(signal.ITIMER_REAL, seconds)
    if multiprocessing.parent_process() is not None:
        watchdog.start()
    try:
        yield
    finally:
        watchdog.cancel()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _require_callable_with(
    train: Callable[..., Any], given: tuple[Any, ...], arguments: Mapping[str, Any], name: str
) -> None:
    try:
        inspect.signature(train).bind(*given, **arguments)
    except TypeError as error:
        raise InvalidInput("train", name, f"a function of (data, seed) ({error})", "x, y = data") from None
    except ValueError:  # written in C
        return


def _takes_seed(train: Callable[..., Any]) -> bool:
    """Whether it has a second place for the seed; those that have not use the global generators."""
    try:
        inspect.signature(train).bind_partial(None, 0)
    except TypeError:
        return False
    except ValueError:  # written in C
        return True
    return True


def seed_everything(seed: int) -> None:
    """The global generators of Python, numpy and torch."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 (it is the user's code that draws from it)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)
