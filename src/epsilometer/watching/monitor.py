"""Records → what is known of each training, at any time."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from epsilometer.errors import EpsilometerError
from epsilometer.watching.checks import Check, Status
from epsilometer.watching.checks.names import NOISE_SCALE
from epsilometer.watching.composed import composed, with_composition
from epsilometer.watching.epsilon import DELTA
from epsilometer.watching.framework import FRAMEWORKS
from epsilometer.watching.judged import JudgedTraining
from epsilometer.watching.judging import Judging
from epsilometer.watching.recording import (
    Ended,
    Imported,
    MadePrivate,
    NotAudited,
    Parameters,
    Record,
    Shared,
    Started,
    Step,
    StepNoise,
    Told,
)

OfTraining = Shared | Step | Parameters | StepNoise | NotAudited | Told | Ended


class Monitor:
    """Takes the records of all processes of a command, or of one."""

    def __init__(self, judging: Judging | None = None) -> None:
        self.judging = judging or Judging()
        self.processes: dict[str, Started] = {}
        self.libraries: list[Imported] = []
        self.trainings: dict[tuple[str, int], JudgedTraining] = {}
        self.failures: list[str] = []

    def here(self) -> Monitor:
        """A forked copy has a copy of this one."""
        return self

    def take(self, record: Record, source: str = "") -> JudgedTraining | None:
        """Note it; the training that it belongs to, if any."""
        match record:
            case Started():
                self.processes[source] = record
            case Imported():
                _prepare()
                self.libraries.append(record)
            case MadePrivate():
                _prepare()
                pid = self.processes[source].pid if source in self.processes else 0
                watched = JudgedTraining(record, self.judging, _target_delta(record), pid)
                self.trainings[source, record.training] = watched
                return watched
            case NotAudited(training=0):
                self.failures.append(record.reason)
            case _:
                return self._of_training(record, self.trainings.get((source, record.training)))
        return None

    @property
    def violated(self) -> bool:
        """Is one of the trainings?"""
        return any(one.verdict().outcome.value == "violated" for one in self)

    @property
    def replayed(self) -> bool:
        """Are all of them consistent, and known by replay to release nothing else that depends on the data?"""
        return self.supported and all(one.replayed for one in self if not one.idle)

    @property
    def supported(self) -> bool:
        """Are all of them consistent, and nothing left out or failed?"""
        begun = [one for one in self if not one.idle]
        consistent = all(one.verdict().outcome.value == "consistent" for one in begun)
        return bool(begun) and consistent and not self.failures

    def limits(self) -> list[str]:
        """What no version of a library gets right, once for all trainings."""
        found: dict[str, str] = {}
        for training in self:
            for one in training.limits:
                found.setdefault(one.name, one.reason)
        return [f"a limit of every training of this kind: {name}: {reason}" for name, reason in found.items()]

    def ended(self) -> None:
        """No more records will come: what has not told its end has lost it."""
        for one in self:
            one.lost = not one.ended
        self._merge_ranks()
        self.compose()

    def _merge_ranks(self) -> None:
        """Processes that take steps together have one verdict."""
        if any(one.shared for one in self):
            from epsilometer.watching.ranks import merged

            self.trainings = merged(self.trainings)
            for one in self:
                one.checks = [self.accepted(check) for check in one.checks]

    def compose(self) -> None:
        """What trainings on the same records spend adds up, whichever processes they are in."""
        for key, together in composed(self.trainings).items():
            one = self.trainings[key]
            with_composition(one, together)
            one.checks = [self.accepted(check) for check in one.checks]

    def why_nothing(self, code: int, *, canaries: bool = True) -> str:
        """Why a command that ended with this exit code has no training here; without canaries, not all frameworks are
        watched."""
        failed = f" (the command ended with exit code {code})" if code else ""
        if not self.processes:
            return (
                "the hook got into no Python process; the command starts none, or with -I, -E or -S, which keep "
                f"PYTHONPATH or sitecustomize out{failed}"
            )
        found = {one.library for one in self.libraries}
        waited = [one for one in FRAMEWORKS.values() if (canaries or one.checks_alone) and not one.declared]
        if "torch" in found and "opacus" not in found:
            return f"no torch optimizer took a step{failed}"
        if not found:
            libraries = dict.fromkeys(library for one in waited for library in one.libraries)
            by_hand = "; a torch loop by hand is watched with --noise-multiplier"
            return f"{' or '.join(libraries)} was never imported{failed}{'' if failed else by_hand}"
        of = [one for one in waited if found & set(one.libraries)]
        begins, imported = " or ".join(one.begins for one in of), " and ".join(sorted(found))
        if code:
            return f"{imported} was imported, but {begins} never returned{failed}"
        return (
            f"{imported} was imported, but {begins} was not called, and no private optimizer took a step; what is "
            "made private in another way is not watched"
        )

    def remarks(self) -> list[str]:
        """On versions of libraries that nobody has tried, and on frameworks of installed packages that cannot be
        used."""
        known = list(FRAMEWORKS.values())
        said = (one.remark(library.library, library.version) for library in self.libraries for one in known)
        return [*dict.fromkeys(filter(None, said)), *FRAMEWORKS.problems]

    def __iter__(self) -> Iterator[JudgedTraining]:
        return iter(self.trainings.values())

    def _of_training(self, record: OfTraining, watched: JudgedTraining | None) -> JudgedTraining | None:
        if watched is None:  # of a damaged recording
            return None
        match record:
            case Step():
                try:
                    watched.add(record)
                except EpsilometerError as error:  # noise of 1e-300, say
                    watched.not_audited = f"a step makes no sense ({error})"
            case Parameters():
                watched.parameters = record.names
            case StepNoise():
                with suppress(EpsilometerError):  # counts that make no sense count for nothing
                    watched.add_noise(record)
            case Shared():
                watched.shared.append(record)
            case NotAudited():
                watched.not_audited = record.reason
            case Told():  # the latest counts
                from epsilometer.watching.checks.catalogue import judge

                watched.checks = [self.accepted(check) for check in judge(record.facts)]
                watched.facts, watched.told = record.facts, True
            case Ended():
                watched.ended, watched.unseen, watched.history = True, record.unseen, record.history
        return watched

    def accepted(self, check: Check) -> Check:
        """The same, with its status changed if it failed and is ignored."""
        unwelcome = check.status is Status.FAILED or (check.status, check.name) == (Status.NOT_APPLICABLE, NOISE_SCALE)
        return replace(check, status=Status.IGNORED) if unwelcome and check.name in self.judging.ignore else check


def _target_delta(made: MadePrivate) -> float:
    """The δ that the script asked its noise for, where it said one."""
    target = made.settings.get("target_delta")
    return target if isinstance(target, float) and 0 < target < 1 else DELTA


@functools.cache
def _prepare() -> None:
    """What judging needs takes its time: while the command goes on, nobody waits for it."""
    import epsilometer.watching.checks.catalogue
    import epsilometer.watching.result  # noqa: F401
    from epsilometer.watching.epsilon import promised

    promised([[1.0, 0.01, 1]], DELTA)  # loads the accountants
