"""Kinds of subjects: a spec has no branch on any of them, and a package may bring one."""

import importlib
import sys
from pathlib import Path

import pytest

from epsilometer.auditing import SUBJECTS, Spec, parse_spec, run, template
from epsilometer.auditing.kinds import DpSgdSection, kind_of
from epsilometer.auditing.kinds.callable import CallableSection
from epsilometer.auditing.kinds.private_ridge import RidgeSection
from epsilometer.errors import InvalidInput
from epsilometer.membership.spec import parse_membership

EXTENDING = Path(__file__).parent.parent.parent / "docs" / "extending.md"


@pytest.fixture
def brought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The subject of the page, as a package brings it."""
    text = EXTENDING.read_text()
    begin = text.index("# class_sums.py")
    (tmp_path / "class_sums.py").write_text(text[begin : text.index("```", begin)])
    info = tmp_path / "own-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[epsilometer.subjects]\nclass-sums = class_sums:kind\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield
    sys.modules.pop("class_sums", None)


@pytest.mark.parametrize(
    ("keys", "name"),
    [({}, "dp-sgd"), ({"train": "a:b"}, "callable"), ({"name": "private-ridge"}, "private-ridge")],
)
def test_a_kind_is_known_by_its_name_or_its_key(keys: dict[str, str], name: str) -> None:
    assert kind_of(keys).name == name
    assert kind_of({"name": name}) is SUBJECTS[name]


def test_sections_can_be_given_as_they_are_or_as_keys() -> None:
    assert type(Spec().subject) is DpSgdSection
    assert Spec(subject=RidgeSection(name="private-ridge")).kind.name == "private-ridge"
    assert Spec(subject={"train": "json:loads"}).subject == CallableSection(train="json:loads")
    assert Spec.model_validate(Spec(subject={"train": "json:loads"}).model_dump()).kind.name == "callable"
    assert parse_spec('[subject]\nname = "dp-sgd"').plan().fingerprint() == Spec().plan().fingerprint()


def test_keys_of_other_kinds_count_for_nothing_where_they_say_what_is_usual() -> None:
    """As in the template that `init` writes."""
    assert parse_spec(template("default")).plan().fingerprint() == Spec().plan().fingerprint()
    ridge = '[subject]\nname = "private-ridge"\n'
    more = 'arguments = {}\nisolation = "none"\ndeterministic = true'
    assert parse_spec(ridge + more).plan().fingerprint() == parse_spec(ridge).plan().fingerprint()


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ('name = "callable"', "subject.train is missing"),
        ('name = "private-ridge"\nreg = 1.0', "subject.reg = 1.0: expected one of calibration, name, records, regul"),
        ("name = 5", "subject.name = 5: expected one of callable, dp-sgd, private-ridge"),
        ("steps = 5", "subject.train is missing: expected a training with steps; name it: 'mymodule:train'"),
    ],
)
def test_what_fits_no_kind_is_one_line(keys: str, words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_spec(f"[subject]\n{keys}")
    assert str(refused.value).startswith(words)
    with pytest.raises(InvalidInput) as refused:
        parse_membership(f"[subject]\n{keys}").study()
    assert str(refused.value).startswith(words)


def test_a_package_brings_a_kind_with_keys_of_its_own(brought: None) -> None:
    plan = parse_spec('[subject]\nname = "class-sums"\nnoise = 2.0\n[audit]\ntrials = 60').plan()
    assert (plan.adversary.name, plan.promise.noise_multiplier) == ("clipbkd", 2.0)
    assert run(plan).verdict.outcome.value != "violated"
    assert SUBJECTS.origin("class-sums") == "own 1.0"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('noise = "much"', "subject.noise = 'much': expected a number"),
        ("noize = 1.0", "subject.noize = 1.0: expected one of name, noise; did you mean 'noise'?"),
        ("noise = -1.0", "noise_multiplier = -1.0"),
        ('train = "a:b"', "subject.train = 'a:b': expected nothing beside subject.name"),
        ("[training]\nsteps = 5", "training = 'a section': expected nothing where [subject] names what is audited"),
        ('[adversary]\nname = "gradient"', "adversary.name = 'gradient': expected one that needs no more than"),
        ('[adversary]\nname = "nobody"', "adversary.name = 'nobody': expected one of adaptive-poison"),
    ],
)
def test_its_specs_are_checked_like_all_others(brought: None, text: str, words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_spec(f'[subject]\nname = "class-sums"\n{text}').plan()
    assert str(refused.value).startswith(words)
