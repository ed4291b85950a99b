"""How many copies of a poison: the paper's four, and a pilot that decides."""

from __future__ import annotations

from dataclasses import replace

from epsilometer.audit import Choice, Plan, choose_adversary
from epsilometer.reproductions.reproduction import Session

COPIES = (1, 2, 4, 8)


def best_copies(plan: Plan, session: Session) -> Choice:
    """The number of copies of the plan's poison, by a pilot of a tenth of the trials."""
    return choose_adversary(
        plan,
        [replace(plan.adversary, copies=k) for k in COPIES],  # type: ignore[type-var]
        pilot=max(10, session.trials // 10),
        progress=session.progress,
        store=session.store,
        executor=session.executor,
    )
