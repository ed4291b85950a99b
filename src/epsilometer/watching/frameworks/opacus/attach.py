"""Where Opacus is taken hold of: `make_private`, and the methods of the optimizers that it returns.

Methods are wrapped in their class, and act for optimizers under watch only: copies of an optimizer, and optimizers of
others, behave as ever.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from epsilometer.watching.collect.batches import gave_last, note_latest
from epsilometer.watching.collect.randomness import give_other_seeds
from epsilometer.watching.frameworks.opacus.by_hand import NoEngine, module_of, note_makers
from epsilometer.watching.frameworks.opacus.privatizer import OpacusPrivatizer
from epsilometer.watching.frameworks.opacus.spending import whose
from epsilometer.watching.frameworks.opacus.support import ghost_clipping, is_ghost
from epsilometer.watching.settings import Replaying
from epsilometer.watching.training import Trainings

_WATCHED: weakref.WeakKeyDictionary[Any, OpacusPrivatizer] = (
    weakref.WeakKeyDictionary()
)  # by optimizer, or ghost module
_STRANGERS: list[_Strangers] = []  # who is told of steps of optimizers that nobody watches
_MARK = "_epsilometer"
_TARGETS = ("target_epsilon", "target_delta")
# Noise multipliers that a script has found for a target, and by which accountant: others may give more for it.
_ASKED: dict[tuple[float, str], dict[str, float]] = {}


def attach(engine_module: Any, trainings: Trainings) -> None:
    """Watch every engine of this process."""
    if trainings.settings.other_seeds:
        give_other_seeds()
    watch_engine(engine_module.PrivacyEngine, trainings)
    watch_strangers(trainings)


def watch_strangers(trainings: Trainings) -> None:
    """Watch private optimizers that no engine has made, too, from their first step on."""
    note_makers()
    note_latest()
    _STRANGERS.append(_Strangers(trainings, of_all=True))
    with suppress(ImportError, AttributeError):  # another version
        from opacus import optimizers

        for one in vars(optimizers).values():
            if isinstance(one, type) and issubclass(one, optimizers.DPOptimizer) and "pre_step" in vars(one):
                _wrap(one, "pre_step", OpacusPrivatizer.pre_step)


def watch_engine(owner: Any, trainings: Trainings) -> None:
    """Watch what `make_private` of this class, or of this one engine, returns."""
    original = owner.make_private
    of_class = isinstance(owner, type)
    targets: dict[str, Any] = {}  # what `make_private_with_epsilon` was asked for, while it is under way

    @functools.wraps(original)
    def make_private(*arguments: Any, **given: Any) -> Any:
        made = original(*arguments, **given)
        try:
            engine = arguments[0] if of_class else owner
            _made_private(trainings, engine, made, {**given, **(targets or _asked(engine, given))})
        except Exception as error:
            trainings.failed("make_private", error)
        return made

    owner.make_private = make_private
    _STRANGERS.append(_Strangers(trainings, of_all=False))
    _note_targets(owner, targets)
    _note_noise_for_targets()


def privatizer_of(optimizer: Any, trainings: Trainings) -> OpacusPrivatizer | None:
    """Of an optimizer that is watched for these trainings."""
    found = next((own for one, own in _WATCHED.items() if one is optimizer), None)
    return found if any(one.privatizer is found for one in trainings) else None


def _note_targets(owner: Any, targets: dict[str, Any]) -> None:
    """`make_private` is not told which ε and δ its noise was found for."""
    original = getattr(owner, "make_private_with_epsilon", None)
    if original is None:
        return

    @functools.wraps(original)
    def make_private_with_epsilon(*arguments: Any, **given: Any) -> Any:
        targets.update({name: given[name] for name in _TARGETS if name in given})
        try:
            return original(*arguments, **given)
        finally:
            targets.clear()

    owner.make_private_with_epsilon = make_private_with_epsilon


def _asked(engine: Any, given: dict[str, Any]) -> dict[str, float]:
    with suppress(Exception):  # an accountant of the script's own
        return _ASKED.get((float(given["noise_multiplier"]), str(engine.accountant.mechanism())), {})
    return {}


def _note_noise_for_targets() -> None:
    """A script may find its noise by itself."""
    with suppress(ImportError, AttributeError):
        from opacus.accountants import utils

        original = utils.get_noise_multiplier
        if hasattr(original, _MARK):
            return

        @functools.wraps(original)
        def get_noise_multiplier(*arguments: Any, **named: Any) -> Any:
            found = original(*arguments, **named)
            with suppress(Exception):
                accountant = inspect.signature(original).bind(*arguments, **named)
                accountant.apply_defaults()
                key = float(found), str(accountant.arguments["accountant"])
                _ASKED[key] = {name: float(named[name]) for name in _TARGETS}
            return found

        setattr(get_noise_multiplier, _MARK, True)
        utils.get_noise_multiplier = get_noise_multiplier


def _made_private(trainings: Trainings, engine: Any, made: tuple[Any, ...], given: dict[str, Any]) -> None:
    if made[1] in _WATCHED:
        trainings.not_audited("this training is being watched already")
        return
    _watch(trainings, engine, made, given)


def _watch(trainings: Trainings, engine: Any, made: tuple[Any, ...], given: dict[str, Any]) -> None:
    module, optimizer, loader = made[0], made[1], made[-1]
    privatizer = OpacusPrivatizer(engine, module, optimizer, loader, given, trainings.settings)
    privatizer.training = trainings.begin(privatizer)
    if trainings.settings.replaying is not None:
        privatizer.replayed = _replayed(trainings.settings.replaying, privatizer.training.number, made, given)
    _wrap(type(optimizer), "pre_step", OpacusPrivatizer.pre_step)
    for name, around in _followed(optimizer).items():
        _wrap(type(optimizer), name, around)
    _WATCHED[optimizer] = privatizer
    clipping = ghost_clipping(module) if is_ghost(optimizer) else ""
    if clipping:
        _wrap(type(module), clipping, OpacusPrivatizer.multiply)
        _WATCHED[module] = privatizer


def _replayed(replaying: Replaying, number: int, made: tuple[Any, ...], given: dict[str, Any]) -> Any:
    from epsilometer.watching.frameworks.opacus.replayed import replayed

    dataset = getattr(given.get("data_loader", made[-1]), "dataset", None)
    return replayed(replaying, number, made[0], made[1], made[-1], dataset)


class _Strangers:
    """Private optimizers that no engine under watch has made. One with parameters of a training is watched from its
    first step on, as if the engine of that training had made it; others by what is found of them, where every engine
    of the process is watched."""

    def __init__(self, trainings: Trainings, *, of_all: bool) -> None:
        self._trainings, self._of_all = trainings, of_all

    def steps(self, optimizer: Any) -> OpacusPrivatizer | None:
        """It is about to take one: who watches it?"""
        known = whose(optimizer)
        if known is not None:
            own = {"noise_multiplier": optimizer.noise_multiplier, "max_grad_norm": optimizer.max_grad_norm}
            _watch(self._trainings, known.engine, (known.module, optimizer, known.loader), {**known.settings, **own})
        elif self._of_all:
            loader = gave_last()
            made = (module_of(optimizer), optimizer, loader)
            _watch(self._trainings, NoEngine(), made, {"made": "by hand", "poisson_sampling": False})
            if loader is not None:
                _WATCHED[optimizer].began_late(loader)
        return _WATCHED.get(optimizer)

    def failed(self, error: Exception) -> None:
        self._trainings.failed("a private optimizer", error)


@contextmanager
def _replaced_since(optimizer: Any, privatizer: OpacusPrivatizer) -> Iterator[None]:
    """Follow what a script has put in the place of methods: in their class for good, on the object for one step."""
    own = {name: vars(optimizer)[name] for name in _followed(optimizer) if name in vars(optimizer)}
    for name, around in _followed(optimizer).items():
        if name not in own:
            _wrap(type(optimizer), name, around)
    for name, replaced in own.items():
        followed: Any = functools.partial(_through, privatizer, _followed(optimizer)[name], optimizer, replaced)
        followed.__wrapped__ = replaced  # whoever asks what it does asks the script's own
        vars(optimizer)[name] = followed
    try:
        yield
    finally:
        for name, replaced in own.items():
            if isinstance(vars(optimizer).get(name), functools.partial):  # else the script has put another one there
                vars(optimizer)[name] = replaced


def _through(
    privatizer: OpacusPrivatizer, around: Any, optimizer: Any, method: Any, *arguments: Any, **named: Any
) -> Any:
    return around(privatizer, optimizer, functools.partial(method, *arguments, **named))


def _stranger(optimizer: Any) -> OpacusPrivatizer | None:
    for strangers in _STRANGERS[-1:]:
        try:
            return strangers.steps(optimizer)
        except Exception as error:
            strangers.failed(error)
    return None


def _followed(optimizer: Any) -> dict[str, Callable[..., Any]]:
    """Methods of an optimizer, and who goes around them."""
    clips = "accumulate" if is_ghost(optimizer) else "clip_and_accumulate"
    return {"add_noise": OpacusPrivatizer.add_noise, clips: OpacusPrivatizer.clip}


def _wrap(owner: type, name: str, around: Callable[..., Any]) -> None:
    """Let the privatizer of an optimizer under watch go around this method, whoever defined it."""
    original = getattr(owner, name)
    if hasattr(original, _MARK):
        return

    @functools.wraps(original)
    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        privatizer = _WATCHED.get(self)
        if privatizer is None:
            privatizer = _stranger(self) if name == "pre_step" else None
        if privatizer is None:
            return original(self, *arguments, **named)
        call = functools.partial(original, self, *arguments, **named)
        if name != "pre_step":
            return around(privatizer, self, call)
        with _replaced_since(self, privatizer):
            return around(privatizer, self, call)

    setattr(method, _MARK, True)
    setattr(owner, name, method)
