"""Where JAX scripts are taken hold of that nobody changes: optax's DP aggregate, and the plans of jax-privacy.

Modules are half imported when this is called, so what needs them is imported when it is used.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epsilometer.watching.ending import at_end
from epsilometer.watching.recording import Imported, NotAudited, Sink, Writer
from epsilometer.watching.settings import Settings

if TYPE_CHECKING:
    from epsilometer.watching.jax.training import Training

OPTAX, PLANS = "optax.contrib._privacy", "jax_privacy.experimental.execution_plan"
_APART = 1000  # numbers of trainings beside those of Opacus in the same process
_HOOKS: dict[str, Hooks] = {}


class Hooks:
    """Every transformation of this process that makes gradients private, and where its records go."""

    def __init__(self, sink: Sink, settings: Settings) -> None:
        self._sink, self._settings = sink, settings
        self._trainings: list[Training] = []
        self._numbers = itertools.count(1)

    def watch_optax(self, module: Any) -> None:
        original = module.differentially_private_aggregate

        @functools.wraps(original)
        def differentially_private_aggregate(*arguments: Any, **named: Any) -> Any:
            made = original(*arguments, **named)
            return self._or_as_it_was(made, lambda: self._watched(made, None, None, None))

        module.differentially_private_aggregate = differentially_private_aggregate

    def watch_plans(self, module: Any) -> None:
        """What a plan's event says is accounted for."""
        cached = next(vars(one)["plan"] for one in module.BandMFExecutionPlanConfig.__mro__ if "plan" in vars(one))
        original = cached.func

        @functools.wraps(original)
        def plan(config: Any) -> Any:
            made = original(config)
            return self._or_as_it_was(made, lambda: self._watched_plan(made))

        cached.func = plan

    def finish(self) -> None:
        """The process ends; steps under way are waited for."""
        import jax

        jax.effects_barrier()  # type: ignore[no-untyped-call]
        for training in self._trainings:
            training.finish()

    def _watched_plan(self, plan: Any) -> Any:
        from epsilometer.watching.jax.stated import bound_of, with_noise

        stated, bound, clip = bound_of(plan)
        return with_noise(plan, self._watched(plan.noise_addition_transform, stated, bound, clip))

    def _watched(
        self, given: Any, noise_multiplier: float | None, clip_norm: float | None, clip: Callable[..., Any] | None
    ) -> Any:
        from epsilometer.watching.jax.stated import stated_by
        from epsilometer.watching.jax.training import Training
        from epsilometer.watching.jax.transformation import Watched

        stated = stated_by(given, noise_multiplier, clip_norm)
        training = Training(stated, self._settings, self._sink, clip is not None, self._number)
        self._trainings.append(training)
        return Watched(given, training, clip).wrapped()

    def _number(self) -> int:
        return next(self._numbers) + (_APART if "opacus" in sys.modules else 0)

    def _or_as_it_was(self, made: Any, watch: Callable[[], Any]) -> Any:
        try:
            return watch()
        except Exception as error:
            with suppress(Exception):
                self._sink.take(NotAudited(0, f"the hook of JAX failed ({type(error).__name__}: {str(error)[:300]})"))
            return made


def install(module: Any, path: str) -> None:
    """Watch what this module makes private; records go to the file at `path`, settings lie beside it."""
    settings = Settings.read(Path(path).parent)
    if not settings.canaries:  # checks of Opacus are asked for
        return
    sink = Writer(path)
    if path not in _HOOKS:
        _HOOKS[path] = Hooks(sink, settings)
        at_end(_HOOKS[path].finish)
    if module.__name__ == OPTAX:
        _HOOKS[path].watch_optax(module)
    else:
        _HOOKS[path].watch_plans(module)
    library = module.__name__.partition(".")[0]
    sink.take(Imported(library, str(getattr(sys.modules[library], "__version__", ""))))
