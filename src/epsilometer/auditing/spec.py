"""Spec files (TOML): what a person writes, turned into a plan."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from epsilometer.adversaries import Adversary
from epsilometer.auditing.kinds import AnySubject, DpSgdSection, SubjectKind, keys_of_subjects, kind_of
from epsilometer.auditing.plan import Plan
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
from epsilometer.claims import Claim
from epsilometer.data import Progress
from epsilometer.errors import InvalidInput
from epsilometer.evidence import PerStep
from epsilometer.subjects import Access, Subject

AnySection = TypeVar("AnySection", bound=SubjectSection)


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
    subject: AnySubject = DpSgdSection()

    def plan(self, data_dir: Path | None = None, progress: Progress | None = None) -> Plan:
        """The plan that this spec describes, with everything that it left open decided.

        If it has several adversaries, the plan has the first: `choose_adversary` decides between them.
        `data_dir` is where data files may lie; `progress` is told about downloads.
        """
        try:
            return self._plan(data_dir, progress)
        except InvalidInput as error:
            unused = (*self.kind.unused, *(() if self.kind.has_keys else ("subject",)))
            sections = [(name, section) for name, section in self if name not in unused]
            known = {field: f"{name}.{field}" for name, section in sections for field in type(section).model_fields}
            known |= {"model": "model.name", "method": "audit.bound", "adversary": "adversary.name"}
            raise error.renamed(known[error.argument]) if error.argument in known else error from None

    @property
    def kind(self) -> SubjectKind:
        """What kind of subject is audited."""
        return kind_of(self.subject.model_dump())

    def part(self, section: type[AnySection]) -> AnySection:
        """[subject], with the keys of its kind."""
        assert type(self.subject) is section
        return self.subject

    @classmethod
    def keys_of(cls, section: str, given: Any = None) -> Mapping[str, Any]:
        return keys_of_subjects(given) if section == "subject" else super().keys_of(section)

    def _plan(self, data_dir: Path | None, progress: Progress | None) -> Plan:
        self._require_one_subject()
        return self._planned(*self.kind.build(self, functools.partial(self.data.load, data_dir, progress)))

    def _require_one_subject(self) -> None:
        """Nothing may be said that would not count."""
        for name in self.kind.unused:
            if getattr(self, name) != type(getattr(self, name))():
                expected = "nothing where [subject] names what is audited"
                remedy = "remove it; sample_rate, noise_multiplier and steps of your own training belong to [subject]"
                raise InvalidInput(name, "a section", expected, remedy)

    def _planned(self, subject: Subject, claim: Claim) -> Plan:
        adversary = self.adversaries()[0]
        if self.kind.least_privileged:
            adversary = adversary.fitted(len(subject.data), self.adversary.model_dump())
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
        chosen = self.kind.adversary_named(self.adversary.name)
        given = self.adversary.model_dump(exclude={"name"})
        if self.kind.least_privileged:
            given = {**chosen.least_settings, **given}
        _require_settings(chosen, given)
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


def _require_settings(adversary: type[Adversary], given: Mapping[str, Any]) -> None:
    """An adversary's fields are its settings; it has no others."""
    known = [field.name for field in dataclasses.fields(adversary)]  # type: ignore[arg-type]
    for key, value in given.items():
        if key not in known:
            remedy = _near(key, known) or "remove it, or choose another adversary"
            raise InvalidInput(f"adversary.{key}", value, f"a setting of {adversary.name} ({', '.join(known)})", remedy)


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
