"""Entries of our own, and those of packages that are really there: a module and its dist-info on the path."""

import importlib
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import epsilometer.auditing.per_step
from epsilometer import bounds
from epsilometer.accounting import ACCOUNTANTS, DpSgd, account
from epsilometer.adversaries import ADVERSARIES
from epsilometer.bounds import METHODS, method_named
from epsilometer.bounds.catalogue import bound_named
from epsilometer.bounds.named_method import Settings
from epsilometer.data import DATASETS, load
from epsilometer.errors import EpsilometerError, InvalidInput
from epsilometer.evidence import Counts, OneRun, PairedRuns, PerStep
from epsilometer.mechanisms import MECHANISMS, mechanism_named
from epsilometer.registry import NotRegistered, Registry, instance_of

Install = Callable[..., Path]
CODE = """
from dataclasses import dataclass
from typing import ClassVar

from epsilometer.accounting import Accountant, account
from epsilometer.adversaries import Api
from epsilometer.bounds import ExactRank
from epsilometer.data import Source, digits
from epsilometer.mechanisms import Laplace, NamedMechanism, Sensitivity


@dataclass(frozen=True)
class Quiet(Api):
    name: ClassVar[str] = "quiet"
    summary: ClassVar[str] = "says little"


def doubled(mechanism, delta, relation):
    return 2 * account(mechanism, delta, relation).epsilon


print("a package that prints")
twice = Accountant("twice", "PLD, and as much again", doubled, doubled)
few = Source("the first digits", lambda request: digits().subset(request.classes, request.per_class or 5))
wide = NamedMechanism("wide", "twice the noise", lambda e, _, amount: Laplace(e / 2, Sensitivity(amount, "l1")))


def second_rank(seed):
    return ExactRank(rank=2, seed=seed)


def needs_luck(seed):
    raise RuntimeError("no luck\\ntoday")
"""
POINTS = {
    "adversaries": {"quiet": "Quiet", "absent": "nothing", "wrong": "twice", "gradient": "Quiet"},
    "accountants": {"twice": "twice", "thrice": "twice"},
    "methods": {"second-rank": "second_rank", "luck": "needs_luck", "no-method": "few"},
    "datasets": {"few": "few"},
    "mechanisms": {"wide": "wide"},
}


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Makes a distribution of one module; where it is, is on the path."""
    monkeypatch.syspath_prepend(tmp_path)
    made = []

    def install(name: str, points: dict[str, dict[str, str]], code: str = CODE) -> Path:
        (tmp_path / f"{name}.py").write_text(code)
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = []
        for socket, entries in points.items():
            lines += [f"[epsilometer.{socket}]", *(f"{one} = {name}:{part}" for one, part in entries.items())]
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
        importlib.invalidate_caches()
        made.append(name)
        return tmp_path

    yield install
    for name in made:
        sys.modules.pop(name, None)


def epsilometer(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(place), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "epsilometer", *arguments]
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(command, check=False, cwd=place, env=environment, text=True, capture_output=True, timeout=120)


def test_list_shows_what_packages_bring_and_from_where(install: Install) -> None:
    place = install("extra", POINTS)
    shown = epsilometer(place, "list", "--json")
    assert shown.returncode == 0, shown.stderr
    listed = json.loads(shown.stdout)
    assert listed["adversaries"]["quiet"] == "says little (from extra 1.0)"
    assert listed["accountants"]["twice"] == "PLD, and as much again (from extra 1.0)"
    assert listed["bounds"]["second-rank"] == "(from extra 1.0)"
    assert listed["datasets"]["few"] == "the first digits (from extra 1.0)"
    assert listed["mechanisms"]["wide"] == "twice the noise (from extra 1.0)"
    assert "(from" not in listed["adversaries"]["gradient"]
    for table, registry in (("adversaries", ADVERSARIES), ("bounds", METHODS), ("mechanisms", MECHANISMS)):
        assert registry.own.keys() <= listed[table].keys()
    told = [line for line in shown.stderr.splitlines() if line.startswith("left out: ")]
    unusable = ("absent", "wrong", "gradient", "thrice", "luck", "no-method")
    assert len(told) == len(unusable)
    for name, line in zip(unusable, sorted(told, key=lambda one: _place(one, unusable)), strict=True):
        assert f"= {name!r}: expected " in line
        assert "extra 1.0" in line
    plain = epsilometer(place, "list", "accountants")
    assert "accountants\ttwice\tPLD, and as much again (from extra 1.0)" in plain.stdout.splitlines()
    assert "a package that prints" not in plain.stdout


def _place(line: str, names: tuple[str, ...]) -> int:
    return next(place for place, name in enumerate(names) if f"= {name!r}" in line)


def test_an_audit_has_everything_by_name(install: Install) -> None:
    place = install("extra", POINTS)
    spec = (
        '[data]\nname = "few"\nper_class = 20\n[training]\nsteps = 3\n[adversary]\nname = "{}"\n'
        '[audit]\nbound = "{}"\naccountant = "{}"\ntrials = 20\n'
    )

    def audited(*names: str) -> subprocess.CompletedProcess[str]:
        (place / "spec.toml").write_text(spec.format(*names))
        return epsilometer(place, "audit", "spec.toml", "--json", "--quiet")

    shown = audited("quiet", "second-rank", "twice")
    assert shown.returncode == 0, shown.stderr
    found = json.loads(shown.stdout)
    assert found["plan"]["adversary"]["name"] == "quiet"
    assert found["plan"]["method"]["rank"] == 2
    assert found["plan"]["accountant"] == "twice"
    assert found["upper_bound"]["epsilon"] == pytest.approx(8.0, rel=0.01)
    for names, words in (
        (("absent", "second-rank", "twice"), "adversary.name = 'absent': expected a package that can be imported"),
        (("quiet", "luck", "twice"), "audit.bound = 'luck': expected a package that can be imported"),
        (("quiet", "second-rank", "thrice"), "'thrice': expected extra:twice of extra 1.0 to be an Accountant whose"),
        (("quite", "second-rank", "twice"), "did you mean 'quiet'?"),
    ):
        refused = audited(*names)
        told = refused.stderr.replace("a package that prints\n", "")
        assert (refused.returncode, told.count("\n")) == (2, 1), told
        assert words in told


def test_from_python_too(install: Install) -> None:
    install("brings", POINTS)
    step = DpSgd(0.1, 1.0, 10)
    assert account(step, 1e-5, accountant="twice").epsilon == 2 * account(step, 1e-5).epsilon
    assert len(load("few")) == 50
    assert mechanism_named("wide", 1.0).describe() == mechanism_named("laplace", 0.5).describe()
    runs = PairedRuns(range(200), range(100, 300))
    assert bound_named("second-rank", runs, Settings()) == method_named("second-rank").bound(runs)
    with pytest.raises(EpsilometerError, match="second-rank does not take Counts; these do: clopper-pearson, gaussian"):
        bound_named("second-rank", Counts(9, 1, 1, 9), Settings())
    assert ADVERSARIES.origin("quiet") == "brings 1.0"
    assert ADVERSARIES.origin("api") == ""
    assert [name for name in ADVERSARIES if name not in ADVERSARIES.own] == ["quiet"]
    assert len(ADVERSARIES) == len(list(ADVERSARIES)) == len(ADVERSARIES.own) + 1


def test_own_entries_win_and_two_packages_share_no_name(install: Install) -> None:
    install("one", {"adversaries": {"gradient": "Quiet", "quiet": "Quiet"}})
    install("other", {"adversaries": {"quiet": "Quiet"}, "accountants": {"twice": "twice"}})
    assert ADVERSARIES["gradient"] is ADVERSARIES.own["gradient"]
    assert set(ADVERSARIES) == set(ADVERSARIES.own)
    assert "quiet" not in ADVERSARIES
    assert ADVERSARIES.get("quiet") is None
    with pytest.raises(NotRegistered, match=r"'quiet': expected one package that brings it, not .*one 1\.0") as caught:
        _ = ADVERSARIES["quiet"]
    assert "other 1.0" in str(caught.value)
    taken = "adversary = 'gradient': expected a name that is not taken: Epsilometer's own is used, not that of one 1.0"
    assert any(line.startswith(taken) for line in ADVERSARIES.problems)
    assert len(ADVERSARIES.problems) == 2
    assert "twice" in ACCOUNTANTS


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import a_library_that_is_not_here", "ModuleNotFoundError: No module named 'a_library_that_is_not_here'"),
        ("raise SystemExit(1)", "SystemExit: 1"),
        ("def entry(:", "SyntaxError"),
        ("entry = 7", "to be an Adversary whose name is 'mine'; correct the package's entry point"),
        ("from epsilometer.adversaries import Api as entry", "to be an Adversary whose name is 'mine'"),
    ],
)
def test_a_broken_one_is_told_in_a_line_and_hides_no_other(install: Install, code: str, words: str) -> None:
    install("broken", {"adversaries": {"mine": "entry"}}, code)
    install("whole", {"adversaries": {"quiet": "Quiet"}})
    assert ADVERSARIES["quiet"].summary == "says little"
    assert "quiet" in list(ADVERSARIES)
    with pytest.raises(InvalidInput) as caught:
        _ = ADVERSARIES["mine"]
    (line,) = ADVERSARIES.problems
    for text in (line, str(caught.value)):
        assert words in text
        assert "broken 1.0" in text
        assert "\n" not in text


def test_a_damaged_list_of_entry_points_hides_no_other(install: Install) -> None:
    place = install("whole", {"adversaries": {"quiet": "Quiet"}})
    install("damaged", {})
    (place / "damaged-1.0.dist-info" / "entry_points.txt").write_text("[epsilometer.adversaries]\nno equals sign\n")
    importlib.invalidate_caches()
    assert ADVERSARIES["quiet"].summary == "says little"
    assert any("the entry points of damaged 1.0 cannot be read" in line for line in ADVERSARIES.problems)


def test_packages_are_not_looked_for_before_somebody_asks(install: Install) -> None:
    """Neither when rooms are imported, nor for names of our own; and only the one that is asked for is imported."""
    place = install("asked", {"adversaries": {"quiet": "Quiet"}})
    install("another", {"adversaries": {"loud": "Quiet"}}, "raise RuntimeError('nobody asked for this')")
    code = """
import sys
from importlib import metadata

asked, real = [], metadata.entry_points


def spy(**chosen):
    asked.append(chosen.get("group", "all"))
    return real(**chosen)


metadata.entry_points = spy
import epsilometer
for room in epsilometer._ROOMS:
    if room not in ("jax", "opacus"):
        getattr(epsilometer, room)
epsilometer.adversaries.ADVERSARIES["gradient"]
epsilometer.bounds.method_named("split")
epsilometer.account(epsilometer.DpSgd(0.1, 1.0, 10), 1e-5)
epsilometer.mechanisms.mechanism_named("laplace", 1.0)
epsilometer.data.load("digits")
assert not [group for group in asked if group.startswith("epsilometer")], asked
epsilometer.adversaries.ADVERSARIES["quiet"]
assert "epsilometer.adversaries" in asked
assert "asked" in sys.modules and "another" not in sys.modules
"""
    path = os.pathsep.join([str(place), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-W", "ignore", "-c", code]
    shown = subprocess.run(command, check=False, text=True, capture_output=True, env=environment, timeout=120)
    assert shown.returncode == 0, shown.stderr


def test_an_unknown_name_is_an_error_of_both_kinds() -> None:
    with pytest.raises(InvalidInput, match=r"accountant = 'pdl': expected one of basic, .*; did you mean 'pld'\?"):
        _ = ACCOUNTANTS["pdl"]
    with pytest.raises(KeyError) as caught:
        DATASETS.named("digit", "data")
    assert str(caught.value).startswith("data = 'digit': expected one of adult, ")
    travelled = pickle.loads(pickle.dumps(caught.value))
    assert (type(travelled), str(travelled)) == (NotRegistered, str(caught.value))
    assert DATASETS.get("digit") is None
    assert DATASETS.get("digit", 3) == 3
    with pytest.raises(InvalidInput, match=r"accountant = \['pld'\]: expected one of"):
        account(DpSgd(0.1, 1.0, 10), 1e-5, accountant=["pld"])  # type: ignore[arg-type]


def test_own_entries_are_registered_once_and_seen_from_outside_only() -> None:
    numbers = Registry("numbers", {"one": 1}, argument="number", expected="a number", accept=instance_of(int))
    numbers.register("two", 2)
    numbers.register("two", 2)
    with pytest.raises(EpsilometerError, match="number 'two' is registered already"):
        numbers.register("two", 3)
    with pytest.raises(TypeError):
        numbers.own["three"] = 3  # type: ignore[index]
    assert dict(numbers) == {"one": 1, "two": 2}
    with pytest.raises(InvalidInput, match=r"expected one of all, one$"):
        numbers.named("three", where=lambda number: number < 2, also=["all"])


EVIDENCE = {
    PairedRuns: PairedRuns(range(60), range(30, 90)),
    Counts: Counts(40, 10, 20, 50),
    OneRun: OneRun(np.arange(60.0), np.arange(60) % 3 > 0),
    PerStep: PerStep(np.arange(60.0), np.arange(60) % 3 > 0, steps=20, middle=30.0),
}


@pytest.mark.parametrize("name", METHODS.own)
def test_a_method_gives_bounds_of_the_kind_that_the_table_says(name: str) -> None:
    entry = METHODS[name]
    delta = 0.0 if "δ = 0" in entry.assumes else 1e-5
    mechanism = DpSgd(0.5, 1.0, 20) if entry.needs_mechanism else None
    settings = Settings(delta, threshold=45.0 if entry.needs_threshold else None, mechanism=mechanism)
    for kind, evidence in EVIDENCE.items():
        assert entry.takes(evidence) == (kind in entry.evidence_type)
        if entry.takes(evidence):
            assert bound_named(name, evidence, settings).kind is entry.kind
    assert entry.make is not None or entry.compute is not None
    if entry.make is not None:
        assert (entry.method(settings).evidence_type,) == entry.evidence_type


def test_methods_for_steps_are_made_for_a_training_only() -> None:
    with pytest.raises(InvalidInput, match="method = 'step-bets': expected one of") as caught:
        method_named("step-bets")
    assert "gaussian-steps" not in str(caught.value)
    with pytest.raises(InvalidInput, match="method = 'bayesian': expected one of"):
        method_named("bayesian")


def test_the_old_table_of_bounds_is_the_one_of_methods() -> None:
    with pytest.warns(DeprecationWarning, match=r"epsilometer\.bounds\.BOUNDS is now epsilometer\.bounds\.METHODS"):
        assert bounds.BOUNDS is METHODS
