"""What a spec can audit: a kind of subject, with keys of its own in [subject]."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from epsilometer.adversaries import ADVERSARIES, Adversary
from epsilometer.auditing.spec_sections import SubjectSection
from epsilometer.claims import Claim
from epsilometer.data import Dataset
from epsilometer.errors import unknown_name
from epsilometer.subjects import Subject

if TYPE_CHECKING:
    from epsilometer.auditing.spec import Spec

Loading = Callable[[], Dataset]  # the data that [data] names


@dataclass(frozen=True)
class SubjectKind:
    """A kind of subject: `[subject] name = …`, or the key by which it is known without a name.

    Args:
        name: What a spec calls it.
        summary: What it is, in a line.
        section: Its keys in [subject]: a `SubjectSection` of its own.
        build: From the spec, and a function that loads what [data] names: the subject, and what it claims.
        adversary: The usual one, where a spec names none.
        own_adversaries: Those that are for it alone, if only they can play; of all others, capabilities decide.
        unused: Sections of a spec that have no meaning for it.
        key: The key by which it is known where nobody says its name.
        least_privileged: Whether adversaries have their least privileged settings where nobody says others, and as many
            canaries as the records allow.
        needs_data: Whether records must be named: the embedded ones would be nobody's.
    """

    name: str
    summary: str
    section: type[SubjectSection]
    build: Callable[[Spec, Loading], tuple[Subject, Claim]]
    adversary: str
    own_adversaries: Mapping[str, type[Adversary]] = field(default_factory=dict)
    unused: tuple[str, ...] = ("model", "training", "faults")
    key: str = "name"
    least_privileged: bool = False
    needs_data: bool = False

    @property
    def has_keys(self) -> bool:
        """Beside its name."""
        return len(self.section.model_fields) > 1

    def adversary_named(self, name: str | None) -> type[Adversary]:
        """The adversary of that name, or the usual one."""
        chosen = name or self.adversary
        if not self.own_adversaries:
            return ADVERSARIES.named(chosen, "adversary.name")
        if chosen not in self.own_adversaries:
            raise unknown_name("adversary.name", chosen, self.own_adversaries)
        return self.own_adversaries[chosen]

    def needed_for(self, key: str) -> tuple[str, str]:
        """What was expected of somebody who said a key of it and did not say which kind it is, and what helps."""
        if self.key == "name":
            return f"{self.name}, which has {key}", "name it"
        return f"a training with {key}", f"name it: 'mymodule:{self.key}'"
