"""A grid over settings of a spec: privacy beside accuracy, a run directory for each cell."""

from __future__ import annotations

import copy
import functools
import hashlib
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from epsilometer import validate
from epsilometer.auditing import SUBJECTS, Plan, Spec, run, spec_from_dict
from epsilometer.auditing.utility import TRAININGS, Accuracy, has_accuracy, held_out_part, measure_accuracy
from epsilometer.bounds import Kind
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput, unknown_name
from epsilometer.json_values import json_values
from epsilometer.report import write_results
from epsilometer.reproductions.reproduction import Cell, Reproduction, Row, Session, grid
from epsilometer.reproductions.sweep_figure import sweep_figure
from epsilometer.runs import Inline, MemoryStore, Progress, Store, run_directory
from epsilometer.runs.identity import canonical
from epsilometer.training import TrainingDiverged

MOST_CELLS = 1000
_LONGEST = 100  # letters of a directory's name
_ODD = re.compile(r"[^A-Za-z0-9._=+,-]")


@dataclass(frozen=True)
class Axis:
    """A setting of a spec by its dotted key, and the values that it takes in turn."""

    key: str
    values: tuple[Any, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(value if isinstance(value, str) else canonical(json_values(value)) for value in self.values)


def parse_axis(text: str) -> Axis:
    """An axis as it is written on a command line: KEY=VALUE,VALUE… with values as in a spec; words need no quotes.

    >>> parse_axis("training.noise_multiplier=0.5,1,2")
    Axis(key='training.noise_multiplier', values=(0.5, 1, 2))
    >>> parse_axis("model.hidden=[16],[32, 32]").texts
    ('[16]', '[32, 32]')
    >>> parse_axis("training.sampling=poisson,shuffle").values
    ('poisson', 'shuffle')
    """
    key, sign, listed = (part.strip() for part in text.partition("="))
    if not sign or not key or not listed:
        raise InvalidInput("vary", text, "KEY=VALUE,VALUE…", "for instance training.noise_multiplier=0.5,1,2")
    _require_known(key)
    axis = Axis(key, tuple(_values(key, listed)))
    if len(set(axis.texts)) < len(axis.texts):
        raise InvalidInput(f"vary {key}", listed, "each value once")
    return axis


def _require_known(key: str) -> None:
    """That a spec has such a key; the adversary's own settings are known when there is an adversary."""
    section, _, name = key.partition(".")
    known = [f"{one}.{name}" for one in Spec.model_fields for name in Spec.keys_of(one)]
    if section == "subject":  # of whichever kind, also of another package
        known += [f"subject.{one}" for kind in SUBJECTS.values() for one in kind.section.model_fields]
    if key not in known and not (section == "adversary" and name and "." not in name):
        alike = [one for one in known if one.endswith(f".{key}")]
        nearest = InvalidInput("", "", "", f"did you mean {alike[0]!r}?") if alike else unknown_name("", key, known)
        expected = "a key of a spec, SECTION.KEY"
        raise InvalidInput("vary", key, expected, nearest.remedy or "'epsilometer init' writes all keys")


def _values(key: str, listed: str) -> list[Any]:
    def number(text: str) -> float:
        return validate.written(f"vary {key}", text)

    try:
        found: list[Any] = tomllib.loads(f"values = [{listed}\n]", parse_float=number)["values"]
        return found
    except InvalidInput:
        raise
    except (ValueError, RecursionError):  # words without quotes, such as names
        pass
    words = [word.strip() for word in listed.split(",")]
    if not all(words):
        raise InvalidInput(f"vary {key}", listed, "values between commas")
    return [_value(word, number) for word in words]


def _value(word: str, number: Any) -> Any:
    try:
        return tomllib.loads(f"value = {word}", parse_float=number)["value"]
    except InvalidInput:
        raise
    except (ValueError, RecursionError):
        return word


def sweep_of(
    values: Mapping[str, Any], axes: Sequence[Axis], *, data_dir: Any = None, progress: Any = None
) -> Reproduction:
    """All combinations of the axes' values on top of a spec (nested dictionaries), as cells of one table.

    Every cell's plan is made here, before the first trial: what is wrong with one is said at once.
    """
    cells = _cells(axes)
    shared: dict[str, Any] = {}
    plans: dict[str, _Planned] = {}
    for cell, chosen in cells:
        spec = _spec(values, axes, chosen)
        plan = _plan(spec, axes, cell, data_dir, progress)
        plans[_key(cell)] = _Planned(_sharing(plan, shared), _test_part(spec, plan, shared, data_dir, progress))
    first = next(iter(plans.values())).plan
    return Reproduction(
        name="sweep",
        summary="a grid over settings of a spec",
        about=_about(list(plans.values())),
        trials=first.planned_trials,
        cells=tuple(cell for cell, _ in cells),
        measure=functools.partial(_measure, plans),
        draw=functools.partial(sweep_figure, [axis.key for axis in axes]),
        shown=("theory", "family", "train_accuracy", "test_accuracy", "verdict"),
    )


@dataclass(frozen=True)
class _Planned:
    plan: Plan
    test: Dataset | None


def _cells(axes: Sequence[Axis]) -> list[tuple[Cell, tuple[Any, ...]]]:
    if not axes:
        raise InvalidInput("vary", None, "at least one setting", "for instance training.noise_multiplier=0.5,1,2")
    keys = [axis.key for axis in axes]
    if len(set(keys)) < len(keys):
        raise InvalidInput("vary", ", ".join(keys), "each key once", "list all of its values behind one")
    total = math.prod(len(axis.values) for axis in axes)
    if total > MOST_CELLS:
        raise InvalidInput("vary", f"{total} combinations", f"at most {MOST_CELLS}", "leave some values out")
    cells = grid(**{axis.key: axis.texts for axis in axes})
    by_text = [dict(zip(axis.texts, axis.values, strict=True)) for axis in axes]
    return [(cell, tuple(values[cell[axis.key]] for axis, values in zip(axes, by_text, strict=True))) for cell in cells]


def _spec(values: Mapping[str, Any], axes: Sequence[Axis], chosen: Sequence[Any]) -> Spec:
    given = copy.deepcopy(dict(values))
    for axis, value in zip(axes, chosen, strict=True):
        section, _, name = axis.key.partition(".")
        place = given.setdefault(section, {})
        *outer, last = name.split(".")
        for part in outer:
            place = place.setdefault(part, {})
        place[last] = value
    try:
        return spec_from_dict(given)
    except InvalidInput as error:
        raise _named(error, axes) from None


def _plan(spec: Spec, axes: Sequence[Axis], cell: Cell, data_dir: Any, progress: Any) -> Plan:
    try:
        rivals = spec.adversaries()
        if len(rivals) > 1:
            raise InvalidInput("adversary", f"{len(rivals)} of them", "one in each cell", "vary its setting instead")
        return spec.plan(data_dir, progress)
    except InvalidInput as error:
        raise _named(error, axes, _where(cell)) from None


def _named(error: InvalidInput, axes: Sequence[Axis], where: str = "") -> InvalidInput:
    """The error under the name that the user has written."""
    if error.argument in [axis.key for axis in axes]:
        return error.renamed(f"--vary {error.argument}")
    remedy = "; ".join(part for part in (error.remedy, where and f"this is the cell {where}") if part)
    return InvalidInput(error.argument, error.value, error.expected, remedy)


def _sharing(plan: Plan, shared: dict[str, Any]) -> Plan:
    """The same plan; data that another cell has as well are kept once."""
    data = plan.subject.data
    others = getattr(data, "held_out", None)
    known = shared.setdefault(f"{data.fingerprint()} {others and others.fingerprint()}", data)
    subject: Any = plan.subject
    if known is data or not hasattr(subject, "__dataclass_fields__"):
        return plan
    return replace(plan, subject=replace(subject, data=known))


def _test_part(spec: Spec, plan: Plan, shared: dict[str, Any], data_dir: Any, progress: Any) -> Dataset | None:
    """Records that no training sees; what another cell has as well is kept once."""
    key = canonical([spec.data.name, spec.data.path, json_values(spec.data.classes), has_accuracy(plan)])
    if key not in shared:
        shared[key] = held_out_part(spec, plan, data_dir, progress)
    found: Dataset | None = shared[key]
    return found


def _about(plans: Sequence[_Planned]) -> str:
    told = [
        "Every row is an audit of its own; bound and verdict hold for each by itself, at its confidence.",
        f"A violation counts only if it holds for all {len(plans)} rows together: each is tested with 1/{len(plans)} "
        "of the error.",
        f"Accuracy is the mean of {TRAININGS} trainings without a canary, whose seeds are used for nothing else: an "
        "estimate.",
        "It is of the records that were trained on (train), and of the data set's own test part (test)."
        if any(one.test is not None for one in plans)
        else "It is of the records that were trained on: no others of these data were found here.",
        _incomparable([one.plan for one in plans]),
    ]
    return " ".join(part for part in told if part)


def _incomparable(plans: Sequence[Plan]) -> str:
    if len({(plan.neighbours, plan.delta) for plan in plans}) == 1:
        return ""
    return "Rows with another unit, relation or δ are not comparable: no ε of theirs may be held against the others'."


def _where(cell: Cell) -> str:
    return ", ".join(f"{key}={value}" for key, value in cell.items())


def _key(cell: Cell) -> str:
    return canonical(dict(cell))


def cell_directory(cell: Cell) -> str:
    """The name of a cell's run directory: its settings, as far as they can be a name.

    >>> cell_directory({"training.steps": "10", "training.optimizer": "adam"})
    'training.steps=10,training.optimizer=adam'
    >>> cell_directory({"data.path": "../x.npz"})
    'data.path=.._x.npz-fbdef9db'
    """
    text = ",".join(f"{key}={value}" for key, value in cell.items())
    name = _ODD.sub("_", text)
    if name == text and len(name) <= _LONGEST:
        return name
    return f"{name[:_LONGEST]}-{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:8]}"


def _measure(plans: Mapping[str, _Planned], cell: Cell, session: Session) -> Row:
    planned = plans[_key(cell)]
    plan, executor = planned.plan, session.executor or Inline()
    where = None if session.directory is None else session.directory / cell_directory(cell)
    try:
        with ExitStack() as stack:
            store: Store = MemoryStore() if where is None else stack.enter_context(run_directory(where, plan))
            result = run(plan, session.progress, store=store, executor=executor)
            accuracies = _accuracies(planned, session.progress, store, executor)
    except TrainingDiverged as error:
        return Row(cell, None, math.nan, {"note": str(error), "verdict": None, "violated": False})
    if where is not None:
        write_results(where, result)
    confidence = 1.0 - (1.0 - plan.confidence) / len(plans)
    test = plan.planned_method.test(result.evidence, plan.claim, confidence=confidence)
    bound, family = result.lower_bound, result.family_bound
    return Row(
        cell,
        None,
        bound.epsilon,
        {
            "kind": bound.kind.value,
            "certified": bound.epsilon if bound.kind is Kind.CERTIFIED else None,
            "family": None if family is None else family.epsilon,
            "theory": None if result.upper_bound is None else result.upper_bound.epsilon,
            "claimed": plan.claimed_epsilon,
            **accuracies,
            "verdict": result.verdict.outcome.value,
            "reason": result.verdict.reason,
            "violated": test.refuted and test.kind is Kind.CERTIFIED,
            "adversary": plan.adversary.name,
            "method": bound.method,
            "trials": plan.planned_trials,
            "delta": plan.delta,
            **plan.neighbours.to_dict(),
            "confidence": plan.confidence,
            "seed": plan.seed,
            "directory": None if where is None else where.name,
            "plan_sha256": plan.fingerprint(),
            "seconds": round(result.seconds, 1),
        },
    )


def _accuracies(planned: _Planned, progress: Progress | None, store: Store, executor: Any) -> dict[str, float | None]:
    names = ("train_accuracy", "test_accuracy")
    found: tuple[Accuracy, ...] = ()
    if has_accuracy(planned.plan):
        found = measure_accuracy(planned.plan, planned.test, progress, store=store, executor=executor)
    told: dict[str, float | None] = {}
    for i, name in enumerate(names):
        told[name] = found[i].mean if i < len(found) else None
        told[f"{name}_deviation"] = found[i].deviation if i < len(found) else None
    return told
