"""Options that commands share: one object a group, one line an option, and keys that a spec really has."""

import dataclasses
import inspect
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args, get_type_hints

import pytest
import typer
from typer.testing import CliRunner

from epsilometer.auditing import Spec
from epsilometer.cli.driver import Players
from epsilometer.cli.groups import Key, Only, as_user_wrote, grouped, put, said
from epsilometer.cli.manner import Manner
from epsilometer.cli.membership import MembershipOptions
from epsilometer.cli.outlets import OutletOptions
from epsilometer.cli.plan import PlanOptions
from epsilometer.cli.property import PropertyOptions
from epsilometer.cli.reconstruct import ReconstructOptions
from epsilometer.collaborative import PropertySpec
from epsilometer.errors import InvalidInput
from epsilometer.membership import MembershipSpec
from epsilometer.reconstruction import ReconstructionSpec

SPECS = (
    (PlanOptions, Spec),
    (MembershipOptions, MembershipSpec),
    (PropertyOptions, PropertySpec),
    (ReconstructOptions, ReconstructionSpec),
)
GROUPS = (*(group for group, _ in SPECS), OutletOptions, Players, Manner)


@dataclasses.dataclass(frozen=True)
class Meal:
    """Options of a made-up command."""

    dish: Annotated[str | None, Key("menu", "dish"), typer.Option(help="What.")] = None
    sides: Annotated[list[str] | None, Key("menu", "sides", "--side"), typer.Option("--side")] = None
    cook_book: Annotated[Path | None, Key("kitchen", "book"), typer.Option(help="From where.")] = None
    quick: bool = False


def test_a_command_gets_one_object_and_the_program_has_its_options() -> None:
    seen: list[tuple[str, Meal]] = []
    app = typer.Typer()

    @app.command()
    @grouped
    def eat(who: str, *, meal: Meal, times: int = 1) -> None:
        """Eat."""
        seen.append((who, meal))

    shown = CliRunner().invoke(app, ["Ada", "--dish", "soup", "--side", "bread", "--side", "salt", "--quick"])
    assert shown.exit_code == 0, shown.output
    assert seen == [("Ada", Meal("soup", ["bread", "salt"], None, True))]
    assert list(inspect.signature(eat).parameters) == ["who", "dish", "sides", "cook_book", "quick", "times"]
    assert eat.__doc__ == "Eat."


def test_a_command_may_have_some_of_a_group() -> None:
    @grouped
    def eat(*, meal: Annotated[Meal, Only("quick", "dish")]) -> Meal:
        return meal

    assert list(inspect.signature(eat).parameters) == ["quick", "dish"]
    assert eat(quick=True, dish="soup") == Meal("soup", quick=True)
    with pytest.raises(KeyError):
        grouped(unknown)


def unknown(*, meal: Annotated[Meal, Only("drink")]) -> None:
    """A command with an option that its group lacks."""


def test_options_win_over_a_spec_and_name_its_errors() -> None:
    values: dict[str, Any] = {"menu": {"dish": "stew", "guests": 2}}
    names = put(values, said(Meal("soup", [], Path("a.txt"))))
    assert values == {"menu": {"dish": "soup", "guests": 2}, "kitchen": {"book": "a.txt"}}
    assert names == {"menu.dish": "--dish", "kitchen.book": "--cook-book"}
    assert [one.option for one in said(Meal())] == ["--dish", "--side", "--cook-book"]
    assert put(values, said(Meal(sides=["salt"]))) == {"menu.sides": "--side"}
    assert as_user_wrote(InvalidInput("menu.dish", 1, "a dish"), names).argument == "--dish"
    assert as_user_wrote(InvalidInput("menu.guests", 1, "more"), names).argument == "menu.guests"


def test_zero_and_no_are_something_said() -> None:
    values: dict[str, Any] = {}
    put(values, said(PlanOptions(seed=0, deterministic=False)))
    assert values == {"audit": {"seed": 0}, "subject": {"deterministic": False}}


@pytest.mark.parametrize("group", GROUPS)
def test_every_option_of_a_group_may_be_left_out_and_says_what_it_is(group: type) -> None:
    group()
    for name, hint in get_type_hints(group, include_extras=True).items():
        (info,) = [extra for extra in get_args(hint) if isinstance(extra, typer.models.OptionInfo)]
        assert info.help, name


@pytest.mark.parametrize(("group", "spec"), SPECS)
def test_options_set_keys_that_a_spec_has_and_take_what_these_take(group: type, spec: Any) -> None:
    """Options are written apart from the sections, whose import takes long: this is where they meet."""
    plain, known = get_type_hints(group), 0
    for name, hint in get_type_hints(group, include_extras=True).items():
        for key in (extra for extra in get_args(hint) if isinstance(extra, Key)):
            known += 1
            if (key.section, key.name) == ("adversary", "record"):  # settings of adversaries are their own fields
                continue
            wanted = _arms(spec.keys_of(key.section)[key.name].annotation)
            assert _arms(plain[name]) <= wanted | {NoneType}, f"{name}: {plain[name]}, {key}"
    assert known >= 4


def _arms(hint: Any) -> set[Any]:
    """The types that a value may have, paths as texts and sequences as lists, without metadata."""
    arms = get_args(hint) if get_args(hint) and not hasattr(hint, "__metadata__") else (hint,)
    if getattr(hint, "__origin__", None) in (list, tuple):
        return {list}
    found: set[Any] = set()
    for arm in arms:
        inner = get_args(arm)[0] if hasattr(arm, "__metadata__") else arm
        origin = getattr(inner, "__origin__", inner)
        found.add({Path: str, tuple: list}.get(origin, origin))
    return found
