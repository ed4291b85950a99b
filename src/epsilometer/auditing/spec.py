"""Spec files (TOML): what a person writes, turned into a plan."""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from epsilometer import validate
from epsilometer.accounting import LARGEST_EPSILON, Budget, BudgetExceeded, account, curve
from epsilometer.adversaries import ADVERSARIES, Adversary, Canaries, MembershipAttack, RidgeClipBkd
from epsilometer.auditing.plan import Plan, claim_curve, noise_for
from epsilometer.auditing.ridge_spec import ADVERSARIES as RIDGE_ADVERSARIES
from epsilometer.auditing.ridge_spec import ridge_claim, ridge_training
from epsilometer.auditing.spec_sections import (
    AccessSection,
    AdversarySection,
    AuditSection,
    ClaimSection,
    DataSection,
    FaultsSection,
    ModelSection,
    Section,
    SubjectSection,
    TrainingSection,
)
from epsilometer.auditing.spec_text import parse_toml, read_toml, validated
from epsilometer.bounds import METHODS, EProcess, Method, OneRunPoint, Threshold, method_named
from epsilometer.bounds.named_method import Settings
from epsilometer.claims import Claim, PointClaim, Relation
from epsilometer.data import Progress
from epsilometer.errors import InvalidInput, unknown_name
from epsilometer.evidence import PerStep
from epsilometer.seeds import Stream, seed_of
from epsilometer.subjects import Access, CallableTraining, DpSgdTraining, Faults, Subject
from epsilometer.training import Recipe, median_gradient_norm, within_budget

USUAL, USUAL_BLACK_BOX = "gradient", "clipbkd"  # adversaries, where a spec names none


class Spec(Section):
    """A whole spec. Every key has a default; together they are the embedded default audit."""

    claim: ClaimSection = ClaimSection()
    data: DataSection = DataSection()
    model: ModelSection = ModelSection()
    training: TrainingSection = TrainingSection()
    adversary: AdversarySection = AdversarySection()
    audit: AuditSection = AuditSection()
    access: AccessSection = AccessSection()
    faults: FaultsSection = FaultsSection()
    subject: SubjectSection = SubjectSection()

    def plan(self, data_dir: Path | None = None, progress: Progress | None = None) -> Plan:
        """The plan that this spec describes, with everything that it left open decided.

        If it has several adversaries, the plan has the first: `choose_adversary` decides between them.
        `data_dir` is where data files may lie; `progress` is told about downloads.
        """
        try:
            return self._plan(data_dir, progress)
        except InvalidInput as error:
            unused = self._unused() or ("subject",)
            sections = [(name, section) for name, section in self if name not in unused]
            known = {field: f"{name}.{field}" for name, section in sections for field in type(section).model_fields}
            known |= {"model": "model.name", "method": "audit.bound", "adversary": "adversary.name"}
            raise error.renamed(known[error.argument]) if error.argument in known else error from None

    def _unused(self) -> tuple[str, ...]:
        """Sections of the own DP-SGD, in whose place there is another subject."""
        if self.subject.name is not None:
            return ("model", "training")
        return () if self.subject.train is None else ("model", "training", "faults")

    def _plan(self, data_dir: Path | None, progress: Progress | None) -> Plan:
        self._require_one_subject()
        if self.subject.name is not None:
            return self._ridge_plan()
        if self.subject.train is None:
            return self._own_plan(data_dir, progress)
        data = self.data.load(data_dir, progress)
        subject = self.subject.training(data)
        return self._planned(subject, self._claim_of(subject))

    def _require_one_subject(self) -> None:
        """Nothing may be said that would not count."""
        for name in self._unused():
            if getattr(self, name) != type(getattr(self, name))():
                expected = "nothing where [subject] names what is audited"
                remedy = "remove it; sample_rate, noise_multiplier and steps of your own training belong to [subject]"
                raise InvalidInput(name, "a section", expected, remedy)
        ridge = {"name", "regularisation", "records", "calibration"}
        named, usual = self.subject.name is not None, SubjectSection()
        for key in type(self.subject).model_fields:
            if getattr(self.subject, key) == getattr(usual, key) or key in ("name", "train"):
                continue
            if key in ridge and not named:
                raise InvalidInput("subject.name", None, f"private-ridge, which has {key}", "name it")
            if key not in ridge and self.subject.train is None and not named:
                raise InvalidInput("subject.train", None, f"a training with {key}", "name it: 'mymodule:train'")
        foreign = self.subject.model_dump(exclude=ridge)
        if named and foreign != usual.model_dump(exclude=ridge):
            key = next(key for key, value in foreign.items() if value != getattr(usual, key))
            raise InvalidInput(f"subject.{key}", foreign[key], "nothing beside subject.name", "remove one of the two")

    def _ridge_plan(self) -> Plan:
        for key, value in self.data.model_dump(exclude={"path"}).items():
            if value != getattr(DataSection(), key):
                expected = "nothing: private-ridge needs records with a number each"
                raise InvalidInput(f"data.{key}", value, expected, "name a file (path), or nothing for an example")
        subject = ridge_training(
            self.subject.regularisation,
            self.subject.records,
            self.subject.calibration,
            epsilon=self.claim.epsilon,
            delta=self.claim.delta,
            path=self.data.path,
            noise_scale=self.faults.noise_scale,
        )
        return self._planned(subject, ridge_claim(subject, self.claim.form, self.claim.relation))

    def _claim_of(self, subject: CallableTraining) -> Claim:
        """The curve of what the training says of itself; or the point that the spec has."""
        relation, epsilon = Relation.of(self.claim.relation), self.claim.epsilon
        if self.claim.form == "curve" and subject.stated is None:
            remedy = "add sample_rate, noise_multiplier and steps to [subject]"
            raise InvalidInput("claim.form", "curve", "a training that says how much noise it adds to what", remedy)
        if subject.stated is not None and self.claim.form != "point":
            if epsilon is not None:
                expected = "nothing where [subject] says the noise: the curve follows from it"
                raise InvalidInput("claim.epsilon", epsilon, expected, 'leave it out, or add form = "point"')
            return curve(subject.stated, relation)
        if epsilon is None:
            expected = "the ε that the training claims, or its sample rate, noise multiplier and steps"
            raise InvalidInput("claim.epsilon", None, expected, "a curve needs far fewer trials than a point")
        return PointClaim(epsilon, self.claim.delta, relation)

    def _planned(self, subject: Subject, claim: Claim) -> Plan:
        adversary = self._fitting(self.adversaries()[0], subject)
        settings = self.audit.model_dump(exclude={"bound", "threshold", "target"})
        return Plan(
            subject=subject,
            claim=claim,
            delta=self.claim.delta,
            adversary=adversary,
            method=self._method(adversary, subject),
            access=self._access(),
            **settings,
        )

    def _fitting(self, adversary: Adversary, subject: Subject) -> Adversary:
        """As many canaries of a foreign training as its records allow, where nobody says how many."""
        count = {Canaries: "canaries", MembershipAttack: "records"}.get(type(adversary))
        if self.subject.train is None or count is None or count in self.adversary.model_dump():
            return adversary
        return replace(adversary, **{count: min(getattr(adversary, count), len(subject.data) // 2)})  # type: ignore[type-var]

    def _own_plan(self, data_dir: Path | None, progress: Progress | None) -> Plan:
        data = self.data.load(data_dir, progress)
        relation = Relation.of(self.claim.relation)
        epsilon, noise = self.claim.epsilon, self.training.noise_multiplier
        if epsilon is None and noise is None:
            epsilon = 4.0
        calibrated = noise is None
        if noise is None:
            assert epsilon is not None
            noise = noise_for(epsilon, self.claim.delta, self.training.sample_rate, self.training.steps, relation)
        model = self.model.settings()
        training = self.training.model_dump(exclude={"noise_multiplier", "budget"})
        median = training["clip_norm"] == "median"
        training |= {"clip_norm": 1.0} if median else {}
        recipe = self._affordable(Recipe(records=len(data), noise_multiplier=noise, **model, **training), relation)
        if median:
            chosen = median_gradient_norm(recipe, data, seed_of(self.audit.seed, Stream.CLIP_NORM, 0))
            recipe = replace(recipe, clip_norm=chosen)
        subject = DpSgdTraining(recipe, data, Faults(self.faults.noise_scale), clip_norm_from_data=median)
        return self._planned(subject, self._claim(recipe, relation, epsilon, calibrated))

    def _affordable(self, recipe: Recipe, relation: Relation) -> Recipe:
        """The recipe, ended before the budget is exceeded, if there is one."""
        if self.training.budget is None:
            return recipe
        validate.real("budget", self.training.budget, above=0, remedy="a budget is a finite ε > 0")
        budget = Budget(self.training.budget, self.claim.delta, relation, self.audit.accountant)
        try:
            return within_budget(recipe, budget)
        except BudgetExceeded as error:
            remedy = "raise it, or use more noise"
            raise InvalidInput("budget", self.training.budget, f"enough for a step: {error}", remedy) from None

    def _claim(self, recipe: Recipe, relation: Relation, epsilon: float | None, calibrated: bool) -> Claim:
        """The recipe's curve, unless the spec says or implies that a point is claimed."""
        form = self.claim.form
        if form is None:
            form = "curve" if recipe.is_accounted and (calibrated or epsilon is None) else "point"
        if form == "curve":
            if epsilon is not None and not calibrated:
                raise InvalidInput(
                    "claim.form", "curve", "one of claim.epsilon and training.noise_multiplier, not both",
                    "a curve follows from the noise: leave epsilon out, or claim a point",
                )  # fmt: skip
            promised = claim_curve(recipe, relation)
            self._require_within_reach(promised, recipe)
            return promised
        if epsilon is None:
            why = "" if recipe.is_accounted else f": no accountant here proves one for sampling = {recipe.sampling}"
            raise InvalidInput("claim.epsilon", None, f"the ε of a point claim{why}", "add epsilon to [claim]")
        return PointClaim(epsilon, self.claim.delta, relation)

    def _require_within_reach(self, promised: Claim, recipe: Recipe) -> None:
        """Curves end where e^ε does: beyond it one would claim ∞, and theory something else."""
        if math.isfinite(promised.epsilon_at(self.claim.delta)):
            return
        theory = account(recipe.mechanism, self.claim.delta, promised.relation).epsilon
        if math.isfinite(theory):
            raise InvalidInput(
                "noise_multiplier", recipe.noise_multiplier,
                f"noise with which theory promises ε ≤ {LARGEST_EPSILON:g} (it promises {theory:.4g})",
                "no audit can tell more from no privacy at all; claim a point, or use more noise",
            )  # fmt: skip

    def _access(self) -> Access:
        try:
            return Access(self.access.sees, self.access.controls)
        except InvalidInput as error:
            raise error.renamed(f"access.{error.argument}") from None

    def _method(self, adversary: Adversary, subject: Subject) -> Method | None:
        """The method that is asked for; none where the plan decides, as it does again for another adversary."""
        audit = self.audit
        usual = adversary.evidence_type.usual_method
        if audit.threshold is not None and usual == OneRunPoint.name and audit.bound in (None, OneRunPoint.name):
            return OneRunPoint(Threshold(audit.threshold), audit.seed)
        name = audit.bound or ("fixed" if audit.threshold is not None else None)
        if name == EProcess.name:
            return EProcess(audit.target, seed=audit.seed)
        if audit.target is not None:
            raise InvalidInput("target", audit.target, 'a number only with bound = "eprocess", which may stop early')
        if name is None:
            return None
        steps = subject.promise.steps if adversary.evidence_type is PerStep else None
        if steps is not None and (known := METHODS.get(name)) is not None and known.needs_mechanism:
            return known.method(Settings(mechanism=steps))
        try:
            return method_named(name, audit.threshold, audit.seed)
        except InvalidInput as error:
            raise error.renamed("bound") if error.argument == "method" else error from None

    def adversaries(self) -> tuple[Adversary, ...]:
        """The adversary; or several, one for each value of settings that were given as lists."""
        name, chosen = self._adversary()
        given = self.adversary.model_dump(exclude={"name"})
        if self.subject.train is not None and chosen is Canaries:  # of a foreign training only the model is seen
            given = {"kind": "records", "sees": "model", **given}
        _require_settings(name, chosen, given)
        alternatives = {key: value if isinstance(value, list) else [value] for key, value in given.items()}
        for key, values in alternatives.items():
            _require_plain(key, values)
        try:
            found = [
                chosen(**dict(zip(alternatives, values, strict=True)))
                for values in itertools.product(*alternatives.values())
            ]
            return tuple(dict.fromkeys(found))
        except InvalidInput as error:
            raise error.renamed(f"adversary.{error.argument}") from None

    def _adversary(self) -> tuple[str, type[Adversary]]:
        """The adversary that is named, or the usual one of what is audited."""
        if self.subject.name is None:
            name = self.adversary.name or (USUAL if self.subject.train is None else USUAL_BLACK_BOX)
            return name, ADVERSARIES.named(name, "adversary.name")
        name = self.adversary.name or RidgeClipBkd.name
        if name not in RIDGE_ADVERSARIES:
            raise unknown_name("adversary.name", name, RIDGE_ADVERSARIES)
        return name, RIDGE_ADVERSARIES[name]


def _require_settings(name: str, adversary: type[Adversary], given: Mapping[str, Any]) -> None:
    """An adversary's fields are its settings; it has no others."""
    known = [field.name for field in dataclasses.fields(adversary)]  # type: ignore[arg-type]
    for key, value in given.items():
        if key not in known:
            remedy = _near(key, known) or "remove it, or choose another adversary"
            raise InvalidInput(f"adversary.{key}", value, f"a setting of {name} ({', '.join(known)})", remedy)


def _require_plain(key: str, values: Sequence[Any]) -> None:
    """Settings are stored as JSON, and whole numbers in 64 bits."""
    if not values:
        raise InvalidInput(f"adversary.{key}", values, "at least one value")
    for value in values:
        if isinstance(value, list | dict) or (isinstance(value, int) and abs(value) >= 2**63):
            expected = "a number (of 64 bits, if it is whole) or a text in quotes, or a list of these"
            raise InvalidInput(f"adversary.{key}", value, expected)


def _near(key: str, known: list[str]) -> str:
    """A setting that was probably meant."""
    found = difflib.get_close_matches(key, known, n=1, cutoff=0.75)
    return f"did you mean {found[0]!r}?" if found else ""


def parse_spec(text: str | bytes, source: str = "spec") -> Spec:
    """A spec from TOML; every mistake is an `InvalidInput` that names the key.

    >>> parse_spec('[training]\\nlearning_rte = 1.0')
    Traceback (most recent call last):
    ...
    epsilometer.errors.InvalidInput: training.learning_rte = 1.0: expected ... did you mean 'learning_rate'?
    """
    return spec_from_dict(parse_toml(text, source))


def read_spec(path: Path) -> Spec:
    """A spec from a file."""
    return spec_from_dict(read_toml(path))


def spec_from_dict(values: dict[str, Any]) -> Spec:
    """A spec from nested dictionaries."""
    return validated(Spec, values)
