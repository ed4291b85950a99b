"""Where Opacus is taken hold of: `make_private`, and the methods of the optimizers that it returns.

Methods are wrapped in their class, and act for optimizers under watch only: copies of an optimizer, and optimizers of
others, behave as ever.
"""

from __future__ import annotations

import functools
import os
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from epsilometer.errors import InvalidInput
from epsilometer.watching.collect.inspection import Inspection
from epsilometer.watching.ending import at_end
from epsilometer.watching.opacus.randomness import give_other_seeds
from epsilometer.watching.opacus.record_norms import RecordNorms
from epsilometer.watching.opacus.support import is_ghost
from epsilometer.watching.opacus.training import Training
from epsilometer.watching.recording import Imported, NotAudited, Sink, Writer
from epsilometer.watching.settings import Settings

_TRAININGS: weakref.WeakKeyDictionary[Any, Training] = weakref.WeakKeyDictionary()
_STRANGERS: list[Callable[[Any], None]] = []  # who is told of steps of optimizers that nobody watches
_MARK = "_epsilometer"
_TARGETS = ("target_epsilon", "target_delta")


class Hooks:
    """Every training that some engines make private, and where its records go."""

    def __init__(self, sink: Sink, settings: Settings) -> None:
        self._sink, self._settings = sink, settings
        self._trainings: list[Training] = []
        self._targets: dict[str, Any] = {}  # what `make_private_with_epsilon` was asked for, while it is under way
        self._process = os.getpid()
        self._finished = self._strange = False

    def watch(self, owner: Any) -> None:
        """Watch what `make_private` of this class, or of this one engine, returns."""
        original = owner.make_private
        of_class = isinstance(owner, type)

        @functools.wraps(original)
        def make_private(*arguments: Any, **given: Any) -> Any:
            made = original(*arguments, **given)
            try:
                self._made_private(arguments[0] if of_class else owner, made, {**given, **self._targets})
            except Exception as error:
                reason = f"the hook of make_private failed ({type(error).__name__}: {str(error)[:300]})"
                with suppress(Exception):  # a full disk, say
                    self._sink.take(NotAudited(0, reason))
            return made

        owner.make_private = make_private
        self._note_targets(owner)

    def _note_targets(self, owner: Any) -> None:
        """`make_private` is not told which ε and δ its noise was found for."""
        original = getattr(owner, "make_private_with_epsilon", None)
        if original is None:
            return

        @functools.wraps(original)
        def make_private_with_epsilon(*arguments: Any, **given: Any) -> Any:
            self._targets = {name: given[name] for name in _TARGETS if name in given}
            try:
                return original(*arguments, **given)
            finally:
                self._targets = {}

        owner.make_private_with_epsilon = make_private_with_epsilon

    def account_records(self, optimizer: Any, norms: RecordNorms) -> None:
        """Note what some records' gradients are before every step of a training under watch."""
        training = next((own for one, own in _TRAININGS.items() if one is optimizer and own in self._trainings), None)
        if training is None:
            expected = "an optimizer that make_private of the watched engine has returned"
            raise InvalidInput("optimizer", type(optimizer).__name__, expected, "watch the engine first")
        training.records = norms

    def _begin_anew(self) -> None:
        """In a forked copy: trainings of the process before are no business of this one."""
        self._process, self._sink, self._trainings, self._finished = os.getpid(), self._sink.here(), [], False
        at_end(self.finish)

    def tell(self) -> None:
        """What is known by now of every training of this process that goes on."""
        if not self._finished and os.getpid() == self._process:
            for training in self._trainings:
                training.tell()

    def stranger(self, optimizer: Any) -> None:
        """Said once: a private optimizer takes steps that no engine under watch has made."""
        if not self._strange and type(optimizer).__module__.startswith("opacus"):
            self._strange = True
            with suppress(Exception):
                made = f"a {type(optimizer).__name__} that make_private did not return"
                self._sink.take(NotAudited(0, f"{made} takes steps, which are not watched"))

    def finish(self) -> None:
        """The process ends: say how many steps were accounted for that nobody has seen."""
        if self._finished or os.getpid() != self._process:  # a forked copy has nothing to say
            return
        self._finished = True
        for training in self._trainings:
            same = [one for one in self._trainings if one.accountant is training.accountant]
            unseen = max(one.accounted() for one in same) - sum(one.seen for one in same)
            training.finish(max(0, unseen))

    def _made_private(self, engine: Any, made: tuple[Any, ...], given: dict[str, Any]) -> None:
        module, optimizer, loader = made[0], made[1], made[-1]
        if os.getpid() != self._process:
            self._begin_anew()
        if optimizer in _TRAININGS:
            self._sink.take(NotAudited(0, "this training is being watched already"))
            return
        number = len(self._trainings) + 1
        training = Training(number, engine, module, optimizer, self._settings, self._sink, Inspection())
        self._trainings.append(training)
        training.begin(engine, loader, optimizer, given)
        _wrap(type(optimizer), "pre_step", Training.pre_step)
        _wrap(type(optimizer), "add_noise", Training.add_noise)
        _wrap(type(optimizer), "accumulate" if is_ghost(optimizer) else "clip_and_accumulate", Training.clip)
        _TRAININGS[optimizer] = training


def install(engine_module: Any, path: str) -> None:
    """Watch every engine of this process; records go to the file at `path`, settings lie beside it."""
    from opacus.version import __version__

    sink = Writer(path)
    settings = Settings.read(Path(path).parent)
    hooks = Hooks(sink, settings)
    if settings.other_seeds:
        give_other_seeds()
    hooks.watch(engine_module.PrivacyEngine)
    with suppress(ImportError, AttributeError):  # another version
        from opacus.optimizers import DPOptimizer

        _wrap(DPOptimizer, "pre_step", Training.pre_step)
        _STRANGERS.append(hooks.stranger)
    at_end(hooks.finish)
    sink.take(Imported("opacus", str(__version__)))


def _wrap(owner: type, name: str, around: Callable[..., Any]) -> None:
    """Let the training of an optimizer under watch go around this method, whoever defined it."""
    original = getattr(owner, name)
    if hasattr(original, _MARK):
        return

    @functools.wraps(original)
    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        training = _TRAININGS.get(self)
        if training is None:
            if name == "pre_step" and _STRANGERS:
                _STRANGERS[-1](self)
            return original(self, *arguments, **named)
        return around(training, self, functools.partial(original, self, *arguments, **named))

    setattr(method, _MARK, True)
    setattr(owner, name, method)
