"""Opacus trainings, audited while they run: one line before `make_private`.

    engine = PrivacyEngine()
    audit = epsilometer.opacus.watch(engine)

`epsilometer watch -- python train.py` does the same for a script of which no line is changed.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from epsilometer.errors import InvalidInput
from epsilometer.watching import watch as watching
from epsilometer.watching.settings import EXTRA

if TYPE_CHECKING:
    from epsilometer.watching.frameworks.opacus.record_norms import RecordNorms

__all__ = ["Watch", "release", "watch"]


class Watch(watching.Watch):
    """What is known of the trainings of one engine, at any time: one for each call of `make_private`."""

    def account_records(
        self, optimizer: Any, module: Any, x: Any, y: Any, criterion: Any, *, every: int = 1
    ) -> RecordNorms:
        """Individual accounting (Yu et al. 2023) of chosen records, from now on: what `make_private` returned, the
        records as the module takes them, and the loss. Its `epsilons(delta)` says at any time what each record has paid
        in this training; these values are private themselves. Looking every few steps only is cheaper, and a guess."""
        from epsilometer.watching.frameworks.opacus.attach import privatizer_of
        from epsilometer.watching.frameworks.opacus.record_norms import RecordNorms

        norms = RecordNorms(module, x, y, criterion, every)
        privatizer = privatizer_of(optimizer, self.hooks)
        if privatizer is None:
            expected = "an optimizer that make_private of the watched engine has returned"
            raise InvalidInput("optimizer", type(optimizer).__name__, expected, "watch the engine first")
        privatizer.records = norms
        return norms


def release(value: Any) -> Any:
    """Declare a number, array or tensor that the script has made from its data with noise, and accounts for: a noisy
    count, mean or principal component. It is given back as it is; only in the runs of `epsilometer watch --neighbours`
    it is that of the reference, so that what depends on it accuses nobody."""
    from epsilometer.watching.replay.release import same_in_every_run

    return same_in_every_run(value)


def watch(
    engine: Any,
    *,
    canaries: int = 200,
    place: str = EXTRA,
    seed: int | None = None,
    confidence: float = 0.95,
    delta: float | None = None,
    ignore: Collection[str] = (),
    assume: Collection[str] = (),
    quiet: bool = False,
) -> Watch:
    """Audit what this `PrivacyEngine` makes private from now on. At the end of the process lines on stderr say the
    verdict, unless `quiet`; `.verdict` and `.result()` say it at any time. `delta` is that of the ε which is shown
    (without it the script's `target_delta`, else 1e-5); checks to `ignore` may fail, and are shown as ignored;
    statements to `assume` need no test, since whoever watches vouches for them."""
    if not callable(getattr(engine, "make_private", None)):
        raise InvalidInput("engine", engine, "an opacus.PrivacyEngine", "watch it before make_private is called")
    from epsilometer.watching.frameworks.opacus.attach import watch_engine

    watched = Watch(
        canaries=canaries,
        place=place,
        seed=seed,
        confidence=confidence,
        delta=delta,
        ignore=ignore,
        assume=assume,
        quiet=quiet,
    )
    watch_engine(engine, watched.hooks)
    return watched
