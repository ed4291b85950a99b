"""Records → what is known of each training, at any time."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from epsilometer.bounds import StepProcess, share_refuted_in_steps
from epsilometer.bounds.step_process import e_value
from epsilometer.claims import GaussianClaim, StepClaim
from epsilometer.errors import EpsilometerError
from epsilometer.rounding import confidence, simulated
from epsilometer.watching.checks.names import (
    FAILED,
    IGNORED,
    NOISE_SCALE,
    NOT_APPLICABLE,
    TARGET,
    UNMENDED,
)
from epsilometer.watching.epsilon import DELTA, EpsilonOfTraining, epsilon_of_training
from epsilometer.watching.facts import Facts
from epsilometer.watching.framework import FRAMEWORKS
from epsilometer.watching.own_parameters import OwnParameters
from epsilometer.watching.recording import (
    Ended,
    Imported,
    MadePrivate,
    NotAudited,
    Record,
    Started,
    Step,
    Told,
)
from epsilometer.watching.settings import MODEL, PLACES

if TYPE_CHECKING:
    from epsilometer.auditing.verdict import Verdict

_MOST_SIMULATED = 200  # steps: if so many have power, more have it too
_EXACT = 8  # different noise multipliers that are taken as they are; each costs some time
_COARSE = 1.1  # others are rounded down by a tenth at most


@dataclass
class Watched:
    """One training: what it states, the evidence against that, and what else was found."""

    made: MadePrivate
    process: StepProcess
    confidence: float
    delta: float = DELTA
    pid: int = 0
    vacuous: int = 0  # steps that state no noise
    own: OwnParameters = field(init=False)
    not_audited: str = ""
    checks: list[dict[str, str]] = field(default_factory=list)
    facts: Facts = field(default_factory=Facts)
    told: bool = False  # anything for the checks
    ended: bool = False
    unseen: int = 0
    history: list[list[float]] = field(default_factory=list)  # what the accountant has: noise, sample rate, steps
    wealth: list[float] = field(default_factory=list)  # the logarithm of the e-value after every step
    _stated: dict[float, float] = field(default_factory=dict)
    _factor: tuple[int, float] = (0, math.inf)
    _epsilon: EpsilonOfTraining | None = None  # once the training has ended

    def __post_init__(self) -> None:
        self.own = OwnParameters(self.confidence)

    def add(self, step: Step) -> None:
        """One more step; one that states no noise promises nothing, and is counted only."""
        sigma = step.noise_multiplier
        if not (sigma > 0 and math.isfinite(sigma)):
            self.vacuous += 1
            return
        if sigma not in self._stated:
            exact = len(self._stated) < _EXACT
            # Less noise than is stated is a weaker statement: to refute it is to refute what is stated.
            rounded = sigma if exact else _COARSE ** math.floor(math.log(sigma) / math.log(_COARSE))
            self._stated[sigma] = rounded
        self.process.add(step.scores, step.coins, self._stated[sigma])
        self.own.add(step, self._stated[sigma])
        self.wealth.append(self.process.log_e_value)

    @property
    def refuted_at(self) -> int | None:
        """The step from which on the stated noise is refuted; canaries on an extra parameter need more than bets."""
        at = self.process.refuted_at
        if at is None or self.made.place == MODEL or not self.made.own_noise:
            return at
        return None if self.own.refuted_at is None else max(at, self.own.refuted_at)

    def noise_factor(self) -> float:
        """The true noise is at most so many times the stated; canaries that say nothing of the model limit nothing."""
        if self._unlike:
            return math.inf
        if self._factor[0] != self.process.steps:
            self._factor = (self.process.steps, self.process.noise_factor())
        return self._factor[1]

    def verdict(self) -> Verdict:
        """What can be said now; it holds whenever one looks."""
        from epsilometer.auditing.verdict import DOUBTFUL, ENOUGH_POWER, Outcome, Verdict

        process = self.process
        factor = self.noise_factor()
        limit = f"the noise is at most {factor:.3g} × the stated"
        if self.refuted_at is not None:
            reason = (
                f"{StepClaim.statement} is refuted at step {self.refuted_at} (noise multiplier {self._noise()}; "
                f"e-value {e_value(process.log_e_value)} by now, {self.confidence:.12g} confidence)"
            )
            reason += f"; {limit}" if factor < 1.0 else ""
            return Verdict(Outcome.VIOLATED, reason, refuted=StepClaim.statement)
        if self.refuting:
            name, why = self.refuting[0]["name"], self.refuting[0]["reason"]
            others = "" if len(self.refuting) == 1 else f" (also {', '.join(one['name'] for one in self.refuting[1:])})"
            reason = f"the mechanism that it states is refuted by check {name}{others}: {why}"
            return Verdict(Outcome.VIOLATED, reason, refuted=f"{self.refuting[0]['refutes']}, by check {name}")
        why = self._says_nothing()
        if why:
            return Verdict(Outcome.INCONCLUSIVE, why)
        if math.isinf(factor):
            limit = "nothing is known of the noise"
        power = self._power()
        steps = "1 step does" if process.steps == 1 else f"{process.steps} steps do"
        found = f"{steps} not refute the stated noise (noise multiplier {self._noise()}); {limit}"
        half = f"of simulated trainings with half of the noise, {simulated(power)} are refuted"
        doubt = self._doubt(DOUBTFUL)
        if doubt:
            return Verdict(Outcome.INCONCLUSIVE, f"{found}, but {doubt}", power)
        if power >= ENOUGH_POWER:
            names = ", ".join(dict.fromkeys(one["name"] for one in self.checks if one["status"] == IGNORED))
            accepted = f"; failed checks that are ignored: {names}" if names else ""
            return Verdict(Outcome.CONSISTENT, f"{found}; {half}{accepted}", power)
        remedy = "train longer, or use more canaries"
        return Verdict(Outcome.INCONCLUSIVE, f"{found}; {half}; {remedy}", power)

    def _doubt(self, doubtful: float) -> str:
        """Why what was not refuted is no pass all the same; empty if it is one."""
        e = self.process.log_e_value
        if e >= -math.log(doubtful):
            return f"the evidence points that way (e-value {e_value(e)}); train longer"
        if self.faults:
            failed = dict(reversed([(one["name"], one["reason"]) for one in self.faults]))
            why = next(iter(failed.values())) if len(failed) == 1 else "see the checks"
            return f"failed checks say that something else is wrong: {', '.join(failed)} ({why})"
        if not self.checks and self.told:
            return "its framework tells nothing that checks could look at"
        if not self.checks:
            return "its process ended before checks were made (os._exit, or a signal); let it come to its end"
        unseen = self._noise_unseen()
        return f"whether every parameter has this noise was not seen ({unseen}); use --canaries model" if unseen else ""

    def epsilon(self) -> EpsilonOfTraining:
        """ε of the whole training, as far as it is known; an accountant's history comes with the end."""
        if self._epsilon is not None:
            return self._epsilon
        why = self._says_nothing()
        if why:
            return EpsilonOfTraining(why=why.removeprefix("not audited, because "))
        found = epsilon_of_training(
            self.history,
            self.noise_factor(),
            noise_multiplier=max(self._stated),
            steps=self.process.steps,
            scores=self.process.steps * self.made.canaries,
            delta=self.delta,
            sure=self.confidence,
            failed=[one["name"] for one in self.checks if one["status"] in (FAILED, IGNORED)],
        )
        found = replace(found, doubts=tuple(dict.fromkeys(one["name"] for one in self.faults if one["name"] != TARGET)))
        if self.ended:
            self._epsilon = found
        return found

    def headline(self) -> str:
        """The verdict, and ε beside what is promised."""
        return f"{self.verdict()}. {self.epsilon()}."

    def quote(self) -> str:
        """What may be said of this training, with all that it needs to be true."""
        outcome, sure = self.verdict().outcome.value, confidence(self.confidence)
        if outcome == "violated" and self.refuted_at is None:
            return f"the mechanism that it states is refuted by check {self.refuting[0]['name']}"
        if outcome == "violated":
            return f"the stated noise multiplier {self._noise()} is refuted at step {self.refuted_at}, {sure}"
        if outcome == "inconclusive":
            return "nothing: the audit is inconclusive"
        upper = self.epsilon().upper
        promise = "" if upper is None else f"; what is accounted promises {upper}"
        return (
            f"{self.process.steps} steps do not refute the stated noise multiplier {self._noise()}: the noise is at "
            f"most {self.noise_factor():.3g} × the stated, {sure}{promise}"
        )

    @property
    def _unlike(self) -> bool:
        """Do canaries find what the model's own parameters do not show?"""
        return self.process.refuted and self.refuted_at is None

    def _noise(self) -> str:
        low, high = min(self._stated), max(self._stated)
        return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"

    def _power(self) -> float:
        """The probability of a refutation by so many steps, had canaries twice the strength that they have for sure."""
        from epsilometer.auditing.verdict import FAULT

        factor = self.noise_factor()
        if math.isinf(factor):
            return 0.0
        sigma = sorted(self._stated.values())[len(self._stated) // 2]
        truth = GaussianClaim(FAULT / (sigma * max(factor, 1.0)))
        steps = min(self.process.steps, _MOST_SIMULATED)
        claim = StepClaim.of_noise(sigma)
        return share_refuted_in_steps(claim, truth, steps, self.made.canaries, self.confidence)

    def _noise_unseen(self) -> str:
        """Why checks cannot say that all of the model has the noise that an extra parameter had; empty if they can.

        Canaries in the model's own coordinates see it by themselves.
        """
        if self.made.place == MODEL or not self.checks:
            return ""
        told = [one for one in self.checks if one["name"] == NOISE_SCALE]
        return next((one["reason"] for one in told if one["status"] == NOT_APPLICABLE), "")

    @property
    def faults(self) -> list[dict[str, str]]:
        """Checks that failed and are not ignored, of those that some version of the library passes."""
        return [one for one in self.checks if one["status"] == FAILED and one["name"] not in UNMENDED]

    @property
    def refuting(self) -> list[dict[str, str]]:
        """Those of them that refute the mechanism which is stated."""
        return [one for one in self.faults if one.get("refutes")]

    def failed_checks(self) -> list[str]:
        """A line for each check that failed, also of those that are ignored."""
        how = {FAILED: "check failed", IGNORED: "check failed, and is ignored"}
        return [f"{how[one['status']]}: {one['name']}: {one['reason']}" for one in self.checks if one["status"] in how]

    def to_dict(self) -> dict[str, Any]:
        verdict = self.verdict()
        return {
            "pid": self.pid,
            "training": self.made.training,
            "optimizer": self.made.optimizer,
            "noise_multiplier": self.made.noise_multiplier,
            "clip_norm": self.made.clip_norm,
            "canaries": self.made.canaries,
            "place": self.made.place,
            "settings": self.made.settings,
            "steps": self.process.steps,
            "unseen_steps": self.unseen,
            "accounted": self.history,
            "log_e_value": self.process.log_e_value,
            "refuted_at": self.refuted_at,
            "noise_factor": self.noise_factor(),
            "confidence": self.confidence,
            "headline": self.headline(),
            "quote": self.quote(),
            "epsilon": self.epsilon().to_dict(),
            "verdict": verdict.outcome.value,
            "reason": verdict.reason,
            "power": verdict.power,
            "not_audited": self.not_audited or None,
            "ended": self.ended,
            "checks": self.checks,
        }

    def __str__(self) -> str:
        made = self.made
        place = PLACES.get(made.place, made.place)
        return (
            f"{made.optimizer}, noise multiplier {made.noise_multiplier:.4g}, clip norm {made.clip_norm:.4g}, "
            f"{made.canaries} canaries {place}"
        )

    def _says_nothing(self) -> str:
        """Why there is no verdict; empty if there is one."""
        if self.not_audited:
            return f"not audited, because {self.not_audited}"
        if self._unlike:
            own = "has no less noise than is stated" if self.own.seen else "could not be looked at"
            return (
                f"canaries on an extra parameter refute the stated noise at step {self.process.refuted_at}, but the "
                f"model itself {own}: the script may treat parameters that it does not know unlike its own; use "
                "--canaries model"
            )
        if self.vacuous:
            return f"{self.vacuous} steps state a noise multiplier of 0, which promises nothing"
        if self.process.steps == 0:
            unseen = f", though {self.unseen} were accounted for" if self.unseen else ""
            return f"not audited, because no step was seen{unseen}"
        return ""


class Monitor:
    """Takes the records of all processes of a command, or of one. Checks that are `ignored` may fail, and are shown. ε
    is shown at `delta`; where none is given, at the δ that a training asked its noise for."""

    def __init__(self, confidence: float = 0.95, delta: float | None = None, ignored: Collection[str] = ()) -> None:
        self.confidence, self.delta, self.ignored = confidence, delta, ignored
        self.processes: dict[str, Started] = {}
        self.libraries: list[Imported] = []
        self.trainings: dict[tuple[str, int], Watched] = {}
        self.failures: list[str] = []

    def here(self) -> Monitor:
        """A forked copy has a copy of this one."""
        return self

    def take(self, record: Record, source: str = "") -> Watched | None:
        """Note it; the training that it belongs to, if any."""
        match record:
            case Started():
                self.processes[source] = record
            case Imported():
                self.libraries.append(record)
            case MadePrivate():
                import epsilometer.auditing.verdict  # noqa: F401 (takes its time, while the training goes on)

                pid = self.processes[source].pid if source in self.processes else 0
                delta = _target_delta(record) if self.delta is None else self.delta
                watched = Watched(record, StepProcess(confidence=self.confidence), self.confidence, delta, pid)
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
    def supported(self) -> bool:
        """Are all of them consistent, and nothing left out or failed?"""
        consistent = all(one.verdict().outcome.value == "consistent" and not one.faults for one in self)
        return bool(self.trainings) and consistent and not self.failures

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
        waited = [one for one in FRAMEWORKS.values() if canaries or one.checks_alone]
        if not found:
            libraries = dict.fromkeys(library for one in waited for library in one.libraries)
            return f"{' or '.join(libraries)} was never imported{failed}"
        of = [one for one in waited if found & set(one.libraries)]
        begins, imported = " or ".join(one.begins for one in of), " and ".join(sorted(found))
        if code:
            return f"{imported} was imported, but {begins} never returned{failed}"
        return (
            f"{imported} was imported, but {begins} was not called; what is made private without it, in another way, "
            "is not watched"
        )

    def remarks(self) -> list[str]:
        """On versions of libraries that nobody has tried, and on frameworks of installed packages that cannot be
        used."""
        known = list(FRAMEWORKS.values())
        said = (one.remark(library.library, library.version) for library in self.libraries for one in known)
        return [*dict.fromkeys(filter(None, said)), *FRAMEWORKS.problems]

    def __iter__(self) -> Iterator[Watched]:
        return iter(self.trainings.values())

    def _of_training(self, record: Step | NotAudited | Told | Ended, watched: Watched | None) -> Watched | None:
        if watched is None:  # of a damaged recording
            return None
        match record:
            case Step():
                try:
                    watched.add(record)
                except EpsilometerError as error:  # noise of 1e-300, say
                    watched.not_audited = f"a step makes no sense ({error})"
            case NotAudited():
                watched.not_audited = record.reason
            case Told():  # the latest counts
                from epsilometer.watching.checks.catalogue import judge

                watched.checks = [self._accepted(check.to_dict()) for check in judge(record.facts)]
                watched.facts, watched.told = record.facts, True
            case Ended():
                watched.ended, watched.unseen, watched.history = True, record.unseen, record.history
        return watched

    def _accepted(self, check: dict[str, str]) -> dict[str, str]:
        """The same, with its status changed if it failed and is ignored."""
        unwelcome = check["status"] == FAILED or (check["status"], check["name"]) == (NOT_APPLICABLE, NOISE_SCALE)
        return {**check, "status": IGNORED} if unwelcome and check["name"] in self.ignored else check


def _target_delta(made: MadePrivate) -> float:
    """The δ that the script asked its noise for, where it said one."""
    target = made.settings.get("target_delta")
    return target if isinstance(target, float) and 0 < target < 1 else DELTA
