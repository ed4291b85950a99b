"""Foreign code is not trusted: what could make its scores lie is looked for before they count.

- The seed: if two trainings with different seeds end in the same numbers, trials are not independent.
- State: a trial is played in a fresh process, and again after others; it must give what it gave before.
- The harness: an A/A control, in which both worlds get world 0. If ε = 0 is refuted there, something else than the
  record tells the worlds apart, and an audit would accuse falsely.

All of it is for trials of two worlds. Where canaries are included by coins, nobody but the insertion knows the coins,
and trainings need not be alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.auditing.part import PartOfPlan
from epsilometer.bounds import ExactRank
from epsilometer.claims import PointClaim
from epsilometer.errors import EpsilometerError
from epsilometer.evidence import IN, OUT, Trial
from epsilometer.runs.executors.child import isolated
from epsilometer.runs.replay import apart
from epsilometer.runs.trials import Preparation, Results
from epsilometer.seeds import Stream, seed_of

PAIRS = 10  # of the control
ALPHA = 1e-3  # how often an honest harness may be refused


class NotIndependent(EpsilometerError):
    """Trainings of the user's own are not what an audit needs: independent, and functions of their seed."""


@dataclass(frozen=True, eq=False)
class Control(PartOfPlan):
    """The plan's game with world 0 on both sides, as `Trials`."""

    @property
    def planned_trials(self) -> int:
        return PAIRS

    @property
    def first_look(self) -> int:
        return PAIRS

    def to_dict(self) -> dict[str, Any]:
        return {**self.plan.to_dict(), "trials": PAIRS, "part": "control"}

    def play(self, prepared: Preparation, trials: Sequence[Trial]) -> list[Floats]:
        game, seed = self.plan.game(prepared), self.plan.seed
        inserting, drawing = ([seed_of(seed, Stream.CONTROL, *trial, use) for trial in trials] for use in (0, 1))
        parties = game.parties([OUT for _ in trials], inserting, drawing)
        return self.plan.observe(game, trials, parties, [seed_of(seed, Stream.CONTROL, *trial) for trial in trials])

    def describe(self) -> str:
        return "a control: world 0 on both sides"

    def require_passed(self, prepared: Preparation, results: Results) -> None:
        require_honest(self, prepared, results)


def require_honest(control: Control, prepared: Preparation, results: Results) -> None:
    """Refuse trainings whose scores would say something about the harness instead of the record."""
    subject = control.plan.subject
    trials = [(IN, 0), (OUT, 1), (IN, 2), (IN, 0)]
    again, ignores = isolated(subject.safeguards, "the training", _look, control, prepared, trials)
    if ignores:
        raise NotIndependent(
            f"{subject.describe()}: two trainings with different seeds end in exactly the same numbers; draw noise and "
            "batches from `seed` (a training without randomness is not private)"
        )
    spread = np.concatenate(list(results.values()))
    first, *_, last = again
    cases = (("in a fresh process", first), ("after other trainings", last))
    for when, now in cases if subject.safeguards.repeats else ():
        if subject.safeguards.fresh_process and when != cases[0][0]:
            continue
        if (differs := apart(results[IN, 0], now, spread)) is not None:
            raise NotIndependent(
                f"{subject.describe()}: one training, played again {when}, has another score ({differs}); draw all "
                'randomness from `seed` and keep nothing between calls, or say isolation = "process" '
                "(deterministic = false, if it draws from the operating system on purpose)"
            )
    seen = control.plan.evidence(results, PAIRS).as_pairs()
    test = ExactRank().test(
        seen, PointClaim(0.0, 0.0, seen.relation, seen.unit), confidence=1 - ALPHA, direction="either"
    )
    if test.refuted:
        raise NotIndependent(
            f"{subject.describe()}: in a control, where both worlds get the same data, scores tell them apart "
            f'({test.proof}); does the training keep state between calls? isolation = "process" separates them'
        )


def _look(control: Control, prepared: Preparation, trials: Sequence[Trial]) -> tuple[list[Floats], bool]:
    subject = control.plan.subject
    again = [control.play(prepared, [trial])[0] for trial in trials]
    return again, subject.ignores_its_seed(seed_of(control.plan.seed, Stream.CONTROL))
