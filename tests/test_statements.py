"""Evidence adds up to a standing of each statement; nothing but a counterexample or a test can break one."""

import itertools

import pytest

from epsilometer.statements import SAYS, About, Basis, Speaks, Standing, Stands, Statement, statements


def about(speaks: Speaks, basis: Basis = Basis.TEST, *, source: str = "one", **more: object) -> About:
    return About(Statement.NOISE, source, speaks, basis, f"{source} says so", **more)  # type: ignore[arg-type]


def noise(*evidence: About, assumed: tuple[Statement, ...] = ()) -> Stands:
    rows = statements(evidence, assumed)
    assert [row.statement for row in rows] == list(Statement) == list(SAYS)
    return rows[1]


SUPPORT = about(Speaks.FOR, needed=True, source="support")


def test_nothing_but_a_counterexample_or_a_test_breaks_a_statement() -> None:
    for speaks, basis in itertools.product(Speaks, Basis):
        broken = noise(SUPPORT, about(speaks, basis)).standing is Standing.BROKEN
        assert broken == (speaks is Speaks.AGAINST and basis is not Basis.HINT)


def test_what_is_held_needs_somebody_who_would_have_seen() -> None:
    assert noise().standing is Standing.UNTESTED
    assert noise(about(Speaks.FOR)).standing is Standing.UNTESTED  # it supports, and is not enough
    assert noise(SUPPORT).standing is Standing.HELD
    missing = about(Speaks.NOT, needed=True, source="missing", remedy="train longer")
    found = noise(SUPPORT, missing)
    assert (found.standing, found.by, found.next) == (Standing.UNTESTED, ("missing",), "train longer")
    assert "missing says so" in found.reason
    assert noise(SUPPORT, about(Speaks.NOT)).standing is Standing.HELD


def test_a_hint_against_it_leaves_it_untested() -> None:
    found = noise(SUPPORT, about(Speaks.AGAINST, Basis.HINT, source="hint", remedy="--neighbours 2"))
    assert (found.standing, found.by, found.next) == (Standing.UNTESTED, ("hint",), "--neighbours 2")


@pytest.mark.parametrize("support", [(), (SUPPORT,)], ids=["alone", "beside support"])
def test_what_is_accepted_is_assumed_whatever_else_holds_it(support: tuple[About, ...]) -> None:
    found = noise(*support, about(Speaks.ACCEPTED, Basis.COUNTEREXAMPLE, source="sampler"))
    assert (found.standing, found.by) == (Standing.ASSUMED, ("sampler",))
    assert "sampler is ignored: sampler says so" in found.reason


def test_who_vouches_for_a_statement_cannot_undo_what_breaks_or_holds_it() -> None:
    mine = (Statement.NOISE,)
    assert noise(assumed=mine).standing is Standing.ASSUMED
    assert noise(SUPPORT, assumed=mine).standing is Standing.HELD
    assert noise(SUPPORT, about(Speaks.AGAINST), assumed=mine).standing is Standing.BROKEN


def test_a_counterexample_comes_first_then_the_earliest_step() -> None:
    late, early = (about(Speaks.AGAINST, step=step, source=f"at {step}") for step in (9, 3))
    found = noise(late, about(Speaks.AGAINST, source="nowhere"), early)
    assert (found.by, found.step, found.basis) == (("at 3", "at 9", "nowhere"), 3, Basis.TEST)
    sure = about(Speaks.AGAINST, Basis.COUNTEREXAMPLE, source="sure")
    found = noise(late, sure)
    assert (found.by[0], found.basis, found.reason) == ("sure", Basis.COUNTEREXAMPLE, "sure says so")
    assert found.to_dict() == {
        "statement": "noise", "standing": "broken", "reason": "sure says so", "by": ["sure", "at 9"],
        "basis": "counterexample", "step": None, "next": None,
    }  # fmt: skip
