"""Every membership attack by name."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from epsilometer.errors import InvalidInput
from epsilometer.membership.attack import Attack
from epsilometer.membership.learned import ShadowAttack, WhiteBoxAttack, WhiteBoxByRecord
from epsilometer.membership.lira import Lira, OfflineLira
from epsilometer.membership.rmia import Rmia
from epsilometer.membership.simple import EntropyAttack, LabelOnlyAttack, LossAttack, ModifiedEntropyAttack
from epsilometer.registry import Registry

_OWN: tuple[type[Attack], ...] = (
    LossAttack,
    EntropyAttack,
    ModifiedEntropyAttack,
    LabelOnlyAttack,
    ShadowAttack,
    Lira,
    OfflineLira,
    Rmia,
    WhiteBoxAttack,
    WhiteBoxByRecord,
)


def _accepted(name: str, found: Any) -> type[Attack] | None:
    """A class whose name is that of its entry point."""
    fits = inspect.isclass(found) and issubclass(found, Attack) and getattr(found, "name", None) == name
    return found if fits else None


ATTACKS: Registry[type[Attack]] = Registry(
    "attacks",
    {one.name: one for one in _OWN},
    argument="attacks",
    expected="a class that inherits Attack, whose name is {name!r}",
    accept=_accepted,
)
USUAL = ("loss", "modified-entropy", "lira", "lira-offline", "rmia")
USUAL_ALONE = ("loss", "entropy", "modified-entropy")  # where there are no references


def attack_named(name: str, settings: Mapping[str, Any] | None = None) -> Attack:
    """The attack of that name with these settings.

    >>> attack_named("lira", {"variance": "record"})
    Lira(variance='record')
    """
    kind = ATTACKS[name]
    known = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    for key, value in (settings or {}).items():
        if key not in known:
            expected = f"a setting of {name} ({', '.join(known) or 'it has none'})"
            raise InvalidInput(f"{name}.{key}", value, expected, "remove it, or choose another attack")
        usual = getattr(kind(), key)
        if isinstance(usual, str | bool) and type(value) is not type(usual):  # numbers are checked by the attack
            expected = "true or false" if isinstance(usual, bool) else "a text"
            raise InvalidInput(f"{name}.{key}", value, f"{expected}, such as {usual!r}")
    try:
        return kind(**(settings or {}))
    except InvalidInput as error:
        raise error.renamed(f"{name}.{error.argument}") from None


def require_fitting(attacks: Sequence[Attack], references: int, population: int) -> None:
    """Refuse attacks for which there are too few models or records, before anything is trained."""
    if not attacks:
        raise InvalidInput("attacks", [], f"at least one of {', '.join(ATTACKS)}")
    if len({attack.name for attack in attacks}) < len(attacks):
        raise InvalidInput("attacks", [attack.name for attack in attacks], "each attack once")
    for attack in attacks:
        if references < attack.least_references:
            expected = f"at least {attack.least_references} for {attack.name}, half of which have a record"
            raise InvalidInput("references", references, expected, "train more, or leave the attack out")
        if population < attack.least_population:
            expected = f"at least {attack.least_population} for {attack.name}: records that are in no model"
            raise InvalidInput("population", population, expected, "hold some out, or leave the attack out")
