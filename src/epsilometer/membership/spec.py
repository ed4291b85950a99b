"""Spec files (TOML) of `epsilometer membership`: what a person writes, checked key by key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pydantic

from epsilometer import validate
from epsilometer.auditing.kinds import AnySubject, DpSgdSection, keys_of_subjects, kind_of
from epsilometer.auditing.spec_sections import DataSection, ModelSection, Section, TrainingSection
from epsilometer.auditing.spec_text import parse_toml, read_toml, validated
from epsilometer.data import Dataset, Progress, own_data, read_pairs
from epsilometer.errors import InvalidInput
from epsilometer.membership.attack import Attack
from epsilometer.membership.catalogue import ATTACKS, USUAL, USUAL_ALONE, attack_named, require_fitting
from epsilometer.membership.defences import defence_named
from epsilometer.membership.given import GivenModel
from epsilometer.membership.plan import MembershipPlan
from epsilometer.membership.queries import Queries
from epsilometer.membership.readout import READOUTS, Losses
from epsilometer.membership.signals import BLACK_BOX
from epsilometer.seeds import Stream, seed_of
from epsilometer.subjects import DpSgdTraining, Entry, PlainRecipe, PlainTraining, Subject
from epsilometer.training import Recipe

NO_CLIPPING = 1e12  # no gradient is as long


class OwnModel(ModelSection):
    """The network of the own engine; each model starts from weights of its own."""

    name: str = "mlp"
    hidden: list[int] = pydantic.Field(default_factory=lambda: [64])
    initialisation: str = "random"


class OwnTraining(TrainingSection):
    """SGD without noise or clipping, if nothing is said: what is attacked is often not private at all."""

    sample_rate: float = 0.05
    steps: int = 400
    learning_rate: float = 0.1
    clip_norm: Any = None
    noise_multiplier: float | None = 0.0
    sampling: str = "shuffle"
    optimizer: str = "momentum"

    def recipe(self, records: int, model: Mapping[str, Any]) -> Recipe:
        if self.budget is not None:
            raise InvalidInput("training.budget", self.budget, "nothing here", "say noise_multiplier and steps")
        settings = self.model_dump(exclude={"budget"})
        clip = NO_CLIPPING if not self.noise_multiplier else 1.0
        settings["clip_norm"] = clip if self.clip_norm is None else validate.real("clip_norm", self.clip_norm, above=0)
        if settings["noise_multiplier"] is None:
            settings["noise_multiplier"] = 0.0
        return Recipe(records=records, **model, **settings)


class DefenceSection(Section):
    """Training in torch with a defence against membership inference, in place of [model] and [training]; see
    `PlainRecipe`. `held_out` records are in no model: early stopping and adversarial regularisation need them."""

    name: str | None = None
    hidden: list[int] = pydantic.Field(default_factory=lambda: [256])
    activation: str = "tanh"
    epochs: int = 40
    batch: int = 100
    learning_rate: float = 1e-3
    l2: float | None = None
    label_smoothing: float | None = None
    adversarial: float | None = None
    patience: int | None = None
    held_out: int | None = None

    def recipe(self) -> PlainRecipe:
        assert self.name is not None
        settings = self.model_dump(exclude={"name", "held_out"}, exclude_none=True)
        return defence_named(self.name, settings)


class TargetSection(Section):
    """A given model: `predict`, and files with records that were in its training and others that were not."""

    predict: str | None = None
    members: str | None = None
    others: str | None = None
    outputs: str = "probabilities"


class MembershipSection(Section):
    """How many records and models, which attacks, and how they are judged."""

    records: int | None = None
    population: int | None = None
    targets: int = 1
    references: int = 16
    attacks: list[str] | None = None
    readout: str | None = None
    copies: int = 16
    noise: float = 0.1
    subgroup: int | None = None
    delta: float = 1e-5
    confidence: float = 0.95
    seed: int = 0


class MembershipSpec(Section):
    """A whole spec. Every key has a default; together they attack a small network on the embedded digits."""

    data: DataSection = DataSection()
    model: OwnModel = OwnModel()
    training: OwnTraining = OwnTraining()
    subject: AnySubject = DpSgdSection()
    defence: DefenceSection = DefenceSection()
    target: TargetSection = TargetSection()
    membership: MembershipSection = MembershipSection()
    settings: dict[str, dict[str, Any]] = pydantic.Field(default_factory=dict)

    @classmethod
    def keys_of(cls, section: str, given: Any = None) -> Mapping[str, Any]:
        return keys_of_subjects(given) if section == "subject" else super().keys_of(section)

    def study(self, data_dir: Path | None = None, progress: Progress | None = None) -> Study:
        """What is to be done, with everything that the spec left open decided."""
        try:
            return self._study(data_dir, progress)
        except InvalidInput as error:
            own: list[tuple[str, Section]] = [("training", self.training), ("model", self.model)]
            if kind_of(self.subject.model_dump()).unused or self.defence.name is not None:
                own = [("defence", self.defence)] if self.defence.name is not None else []
            sections = [("membership", self.membership), ("target", self.target), *own]
            known = {field: f"{name}.{field}" for name, section in sections for field in type(section).model_fields} | {
                "model": "model.name"
            }
            raise error.renamed(known[error.argument]) if error.argument in known else error from None

    def _study(self, data_dir: Path | None, progress: Progress | None) -> Study:
        asked = self.membership
        validate.seed("seed", asked.seed)  # records are drawn by it before there is a plan
        readout = None if asked.readout is None else READOUTS.named(asked.readout, "membership.readout")()
        if readout is None and getattr(self.subject, "score", None) is not None:
            readout = Losses()
        attacks = self._attacks(BLACK_BOX if readout is None else readout.signals)
        given = self._given()
        held_out: Dataset | None = None
        if given is None:
            records, population, held_out = self._split(self.data.load(data_dir, progress))
        else:
            _, records, population = given
        require_fitting(attacks, asked.references, len(population))
        trains = given is None or asked.references > 0
        queries = None
        if any(attack.asks for attack in attacks):
            queries = Queries(asked.copies, asked.noise, asked.seed)
        plan = MembershipPlan(
            training=self._training(records, held_out) if trains else None,
            population=population,
            targets=asked.targets,
            references=asked.references,
            queries=queries,
            white_box=any(attack.white_box for attack in attacks),
            seed=asked.seed,
            given=None if given is None else given[0],
            records=records,
            readout=readout,
        )
        return Study(plan, attacks, asked.delta, asked.confidence, asked.subgroup)

    def _attacks(self, signals: Sequence[str]) -> tuple[Attack, ...]:
        """Those that are asked for, or the usual ones that can be made of these signals."""
        names = self.membership.attacks
        if names is None:
            usual = USUAL if self.membership.references else USUAL_ALONE
            names = [name for name in usual if any(one in signals for one in ATTACKS[name].reads)]
        for name in self.settings:
            if name not in names:
                raise InvalidInput(f"settings.{name}", "a section", f"one of the attacks ({', '.join(names)})")
        try:
            return tuple(attack_named(name, self.settings.get(name)) for name in names)
        except InvalidInput as error:
            own = error.argument.partition(".")[0] in ATTACKS
            raise error.renamed(f"settings.{error.argument}") if own else error from None

    def _training(self, records: Dataset, held_out: Dataset | None) -> Subject:
        if (given := self.subject.training(records)) is not None:
            return given
        if self.defence.name is not None:
            return PlainTraining(self.defence.recipe(), records, held_out)
        return own_training(self.training, self.model, records)

    def _split(self, data: Dataset) -> tuple[Dataset, Dataset, Dataset | None]:
        """Records that are tossed for, others that are in no model, and those that a defence may look at."""
        population = len(data) // 5 if self.membership.population is None else self.membership.population
        validate.whole("population", population, least=0, most=len(data) - 2)
        held_out = 0
        if self.defence.name is not None and self.defence.recipe().needs_held_out:
            held_out = (len(data) - population) // 3 if self.defence.held_out is None else self.defence.held_out
            validate.whole("held_out", held_out, least=2, most=len(data) - population - 2)
        rest = len(data) - population - held_out
        records = rest if self.membership.records is None else self.membership.records
        remedy = f"{data.name} has {len(data)}, of which {population} are the population"
        validate.whole("records", records, least=2, most=rest, remedy=remedy)
        order = np.random.default_rng(seed_of(self.membership.seed, Stream.SPLITTING, 0)).permutation(len(data))
        first, second = records + population, records + population + held_out
        others = data.taken(order[first:second]) if held_out else None
        return data.taken(order[:records]), data.taken(order[records:first]), others

    def _given(self) -> tuple[GivenModel, Dataset, Dataset] | None:
        asked = self.target
        if asked.predict is None:
            for key in ("members", "others"):
                if getattr(asked, key) is not None:
                    raise InvalidInput("target.predict", None, f"a function of (x) beside {key}", "'mymodule:predict'")
            return None
        if self.data != DataSection():
            raise InvalidInput("data", "a section", "nothing beside [target], which names files", "remove one of them")
        if self.membership.records is not None:
            raise InvalidInput("membership.records", self.membership.records, "nothing: all records of the files count")
        parts = []
        for key in ("members", "others"):
            path = getattr(asked, key)
            if path is None:
                raise InvalidInput(f"target.{key}", None, "a file: .npz (x, y), .csv or .parquet", "name it")
            try:
                x, y = read_pairs(Path(path))
            except InvalidInput as error:
                raise error.renamed(f"target.{key}") if error.argument == "data" else error from None
            parts.append((np.asarray(x), np.asarray(y)))
        (members, _), (others, _) = parts
        if members.shape[1:] != others.shape[1:]:
            expected = f"records of shape {members.shape[1:]}, as the members have"
            raise InvalidInput("target.others", f"records of shape {others.shape[1:]}", expected)
        for key, x in (("members", members), ("others", others)):
            if not len(x):
                raise InvalidInput(f"target.{key}", 0, "at least one record", "an attack is judged by both")
        both = own_data((np.concatenate([members, others]), np.concatenate([y for _, y in parts])), "given")
        usual = len(others) // 4 if self.membership.references else 0
        population = usual if self.membership.population is None else self.membership.population
        validate.whole("population", population, least=0, most=len(others) - 1, remedy="they are taken from the others")
        rng = np.random.default_rng(seed_of(self.membership.seed, Stream.SPLITTING, 0))
        outside = len(members) + rng.permutation(len(others))
        kept = rng.permutation(np.concatenate([np.arange(len(members)), outside[population:]]))  # files are sorted
        model = GivenModel(Entry.of(asked.predict, "target.predict"), kept < len(members), asked.outputs)
        model.function()  # before anything else is done, whether it can be imported
        return model, both.taken(kept), both.taken(outside[:population])


@dataclass(frozen=True)
class Study:
    """A plan, and how it is judged."""

    plan: MembershipPlan
    attacks: tuple[Attack, ...]
    delta: float = 1e-5
    confidence: float = 0.95
    subgroup: int | None = None


def own_training(training: OwnTraining, model: OwnModel, records: Dataset) -> DpSgdTraining:
    """The own engine on records of which each model has a half."""
    recipe = training.recipe(max(1, round(0.5 * len(records))), model.settings())
    return DpSgdTraining(recipe, records, share=0.5)


def parse_membership(text: str | bytes, source: str = "spec") -> MembershipSpec:
    """A spec from TOML.

    >>> parse_membership('[membership]\\nreferences = 32').membership.references
    32
    """
    return validated(MembershipSpec, parse_toml(text, source))


def read_membership(path: Path) -> MembershipSpec:
    """A spec from a file."""
    return validated(MembershipSpec, read_toml(path))


def membership_from_dict(values: dict[str, Any]) -> MembershipSpec:
    """A spec from nested dictionaries."""
    return validated(MembershipSpec, values)
