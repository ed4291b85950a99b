"""Published tables and figures: which cells, what is kept of them, and small stand-ins from end to end."""

import csv
import errno
import io
import json
import math
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import special

from epsilometer import DpSgdTraining
from epsilometer.adversaries import ClipBkd
from epsilometer.auditing import Choice, run, spec_from_dict
from epsilometer.auditing.pilot import Candidate
from epsilometer.bounds import BestOnSame, ClopperPearson, clopper_pearson
from epsilometer.claims import Relation
from epsilometer.data import Dataset
from epsilometer.errors import InvalidInput
from epsilometer.evidence import Counts, PairedRuns
from epsilometer.figures import Figure, Ladder
from epsilometer.report.seal import is_sealed
from epsilometer.reproductions import (
    REPRODUCTIONS,
    Reproduction,
    Row,
    Session,
    jagielski,
    jagielski_figure2,
    reproduction_directory,
    reproduction_named,
    write_rows,
)
from epsilometer.reproductions.reproduction import grid
from epsilometer.runs import SqliteStore, run_directory

TABLE2, FIGURE2, APPENDIX_B = (
    REPRODUCTIONS[f"jagielski-{name}"] for name in ("table2", "figure2", "appendix-b")
)  # fmt: skip
SETTINGS = {"reproduction": "toy", "trials": 20, "seed": 0}


def draw(rows: Sequence[Row]) -> Figure:
    assert all(isinstance(row.measured, float) for row in rows)
    return Ladder("a toy", float(len(rows)), ())


TOY = Reproduction(
    name="toy", summary="a toy", about="nothing", trials=20, cells=grid(a=("1", "2"), b=("x", "y", "inf")),
    measure=lambda cell, _: row(cell), draw=draw, shown=(),
)  # fmt: skip


def row(cell, measured: float = 1.0, **details) -> Row:
    return Row(cell, None, measured, details)


def table(out: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO((out / "table.csv").read_text())))


def document(out: Path) -> dict:
    return json.loads((out / "result.json").read_text(), parse_constant=pytest.fail)  # no NaN, no Infinity


# -- cells -----------------------------------------------------------------------------------------------------------


def test_a_grid_has_every_combination_once() -> None:
    cells = grid(a=("1", "2"), b=("x", "y", "z"), c=("!",))
    assert [tuple(cell.values()) for cell in cells] == [(a, b, "!") for a in "12" for b in "xyz"]
    assert all(list(cell) == ["a", "b", "c"] for cell in cells)


@pytest.mark.parametrize(
    ("only", "number"),
    [
        ([], 6),
        (["a=1"], 3),
        (["a=1", "a=2"], 6),
        (["a=1", "b=x"], 1),
        (["b=x", "b=inf"], 4),
        (["b=inf", "b=inf"], 2),
        (["a=1,2", "b=x"], 2),
        (["b=x,inf", "b=inf"], 4),
    ],
)
def test_settings_choose_cells(only: list[str], number: int) -> None:
    """Several values of one key are alternatives, several keys are conditions."""
    cells = TOY.chosen(only)
    assert len(cells) == number
    assert list(cells) == [cell for cell in TOY.cells if cell in cells]  # in their order
    for key in {word[0] for word in only}:
        asked = ",".join(word[2:] for word in only if word[0] == key)
        assert {cell[key] for cell in cells} == set(asked.split(","))


@pytest.mark.parametrize(
    ("only", "words"),
    [
        ("init=fixd", "only = 'fixd': expected one of 0.5, 1, 2, fixed; did you mean 'fixed'"),
        ("int=fixed", "only = 'int': expected one of C=…, eps=…, init=…; did you mean 'init=…'"),
        ("init", "only = 'init'"),
        ("", "only = ''"),
        ("=1", "only = ''"),
        ("C=", "only = ''"),
        ("eps=∞", "only = '∞'"),
        ("eps=1,3", "only = '3': expected one of 1, 2, 4, 8, 16, inf"),
        ("eps=1,", "only = ''"),
        ("c=1", "did you mean|one of C=…"),
    ],
)
def test_unknown_settings_are_refused(only: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        TABLE2.chosen([only])


def test_settings_that_do_not_occur_together_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"occur together \(with the other settings, attack is one of clipbkd, mi\)"):
        FIGURE2.chosen(["data=purchase", "attack=backdoor"])
    assert len(FIGURE2.chosen(["data=purchase", "attack=backdoor", "attack=mi", "init=1"])) == 12


def test_cells_without_a_setting_are_there_with_all_of_its_values() -> None:
    cells = ({"a": "1", "b": "x"}, {"a": "1"}, {"a": "2", "b": "y"}, {"a": "2"})
    some = replace(TOY, cells=cells)
    assert some.chosen(["b=x"]) == (cells[0], cells[1], cells[3])
    assert some.chosen(["a=2", "b=x"]) == (cells[3],)


def test_reproductions_have_names_and_cells_of_their_own() -> None:
    for name, one in REPRODUCTIONS.items():
        assert one is reproduction_named(name)
        assert one.name == name
        assert len({tuple(cell.items()) for cell in one.cells}) == len(one.cells)
    assert (len(TABLE2.cells), len(FIGURE2.cells), len(APPENDIX_B.cells)) == (72, 192, 5)
    with pytest.raises(InvalidInput, match=r"NAME = 'jagielski-table3'.*did you mean 'jagielski-table2'"):
        reproduction_named("jagielski-table3")


# -- what is kept ----------------------------------------------------------------------------------------------------


def test_cells_that_were_measured_before_stay_and_keep_their_order(tmp_path: Path) -> None:
    first, *middle, last = TOY.cells
    write_rows(tmp_path, TOY, SETTINGS, [row(last, 6.0), row(middle[0], 2.0)])
    write_rows(tmp_path, TOY, SETTINGS, [row(first, 1.0), row(last, 7.0)])  # the last is measured again
    assert [(found["a"], found["b"], found["measured"]) for found in table(tmp_path)] == [
        ("1", "x", "1.0"), ("1", "y", "2.0"), ("2", "inf", "7.0"),
    ]  # fmt: skip
    assert [found["measured"] for found in document(tmp_path)["rows"]] == [1.0, 2.0, 7.0]
    assert document(tmp_path)["figures"]["all"]["upper"] == 3
    assert is_sealed((tmp_path / "figure.svg").read_bytes())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figure.svg", "result.json", "table.csv"]


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    """Infinities too, although JSON has none; a setting that is called inf remains one."""
    cell = TOY.cells[2]
    details = {"theory": math.inf, "verdict": "inf-luenced", "pilot": {"1": math.inf}, "agrees": True, "k": 4}
    write_rows(tmp_path, TOY, SETTINGS, [Row(cell, math.inf, math.inf, details)])
    before = [(tmp_path / name).read_bytes() for name in ("result.json", "table.csv")]
    write_rows(tmp_path, TOY, SETTINGS, [])
    assert [(tmp_path / name).read_bytes() for name in ("result.json", "table.csv")] == before
    (found,) = document(tmp_path)["rows"]
    assert (found["b"], found["measured"], found["theory"]) == ("inf", "inf", "inf")


def test_tables_have_every_column_and_no_nested_ones(tmp_path: Path) -> None:
    first, second = row(TOY.cells[0], k=1, pilot={"1": 2.0}), row(TOY.cells[1], told='a "quoted", word\nand a line')
    write_rows(tmp_path, TOY, SETTINGS, [first, second])
    found = table(tmp_path)
    assert list(found[0]) == ["a", "b", "paper", "measured", "k", "told"]
    assert (found[0]["k"], found[1]["k"], found[0]["paper"]) == ("1", "", "")
    assert found[1]["told"] == 'a "quoted", word\nand a line'
    stored = document(tmp_path)
    assert stored["schema"] == 1
    assert stored["settings"] == SETTINGS
    assert stored["rows"][0]["pilot"] == {"1": 2.0}
    assert "epsilometer" in stored["versions"]


def test_other_settings_are_refused_with_the_difference(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with reproduction_directory(out, TOY, SETTINGS):
        write_rows(out, TOY, SETTINGS, [row(TOY.cells[0])])
    with reproduction_directory(out, TOY, dict(SETTINGS)):  # the same continue
        pass
    words = "the settings that were used there .trials: 20 there, 40 now; seed: 0 there, 1 now.; name another"
    with (
        pytest.raises(InvalidInput, match=words),
        reproduction_directory(out, TOY, SETTINGS | {"trials": 40, "seed": 1}),
    ):
        pass
    assert document(out)["settings"] == SETTINGS


@pytest.mark.parametrize("content", ["", "mine", "[]", "{}", "{broken", '"settings"'])
def test_a_result_of_somebody_else_is_not_touched(tmp_path: Path, content: str) -> None:
    with reproduction_directory(tmp_path / "run", TOY, SETTINGS):
        (tmp_path / "run" / "result.json").write_text(content)
    with (
        pytest.raises(InvalidInput, match=r"a result\.json of this program, or none; move"),
        reproduction_directory(tmp_path / "run", TOY, SETTINGS),
    ):
        pass
    assert (tmp_path / "run" / "result.json").read_text() == content


class Stops(Exception):
    pass


def stops(out: Path, measured: int) -> None:
    with reproduction_directory(out, TOY, SETTINGS):
        for cell in TOY.cells[:measured]:
            write_rows(out, TOY, SETTINGS, [row(cell)])
        raise Stops


def test_nothing_is_left_of_what_found_nothing(tmp_path: Path) -> None:
    with pytest.raises(Stops):
        stops(tmp_path / "run", 0)
    assert not (tmp_path / "run").exists()
    (tmp_path / "own").mkdir()
    with pytest.raises(Stops):
        stops(tmp_path / "own", 0)
    assert list((tmp_path / "own").iterdir()) == []  # a directory that was there stays


def test_what_found_something_continues(tmp_path: Path) -> None:
    """Also where a cell plays no trials of an audit, as those of Appendix B."""
    with pytest.raises(Stops):
        stops(tmp_path / "run", 1)
    with reproduction_directory(tmp_path / "run", TOY, SETTINGS):
        write_rows(tmp_path / "run", TOY, SETTINGS, [row(TOY.cells[1])])
    assert len(table(tmp_path / "run")) == 2


# -- from end to end -------------------------------------------------------------------------------------------------


def stand_in(records: int = 260, name: str = "stand-in") -> Dataset:
    """Two classes of images, told apart by their brightness."""
    rng = np.random.default_rng(0)
    y = np.arange(records) % 2
    x = np.clip(0.3 + 0.3 * y[:, None] + 0.2 * rng.normal(size=(records, 784)), 0, 1)
    return Dataset(name, x, y, 2, ("dark", "bright"), (28, 28))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    data, test = stand_in(), stand_in(60, "test part")
    monkeypatch.setattr(jagielski, "_loaded", lambda *_: data)
    monkeypatch.setattr(jagielski, "_test_part", lambda *_: test)


def same(one: Row, other: Row) -> None:
    mine, others = ({k: v for k, v in found.to_dict().items() if k != "seconds"} for found in (one, other))
    assert mine == others


def test_appendix_b(tmp_path: Path) -> None:
    rows = list(APPENDIX_B.rows(APPENDIX_B.cells, Session(400)))
    for done in range(1, len(rows) + 1):
        write_rows(tmp_path, APPENDIX_B, SETTINGS, rows[:done])
    assert [tuple(found.cell.values()) for found in rows] == [tuple(cell.values()) for cell in APPENDIX_B.cells]
    for found in rows:
        assert found.details["agrees"]  # the closed form lies in the interval of 99.9 %
        assert found.details["certified"] <= found.details["claimed"] == float(found.cell["eps"])
        assert found.details["leaked"] <= found.details["claimed"]
    assert len({found.details["counts"]["tp"] for found in rows}) > 1  # cells have noise of their own
    assert [line["eps"] for line in table(tmp_path)] == ["0.5", "1", "2", "4", "8"]
    assert ElementTree.parse(tmp_path / "figure.svg").getroot().tag.endswith("svg")
    for one, other in zip(rows, APPENDIX_B.rows(APPENDIX_B.cells, Session(400)), strict=True):
        same(one, other)
    assert next(APPENDIX_B.rows(APPENDIX_B.cells[3:], Session(400, seed=1))).measured != rows[3].measured


def test_the_recipe_of_table_2_is_the_papers() -> None:
    """Its Table 1: 24 epochs of 6000 records in batches of 250, learning rate 0.15."""
    recipe = jagielski.recipe_of("fmnist", stand_in(6000), "4", "fnn", clip_norm=0.5, init="2")
    assert (recipe.batch_size, recipe.steps, recipe.learning_rate, recipe.hidden) == (250, 576, 0.15, (32,))
    assert (recipe.clip_norm, recipe.initialisation, recipe.init_scale) == (0.5, "random", 2.0)
    assert recipe.sampling == "shuffle"
    fixed = jagielski.recipe_of("fmnist", stand_in(), "4", "fnn")
    assert (fixed.initialisation, fixed.init_scale, fixed.batch_size, fixed.steps) == ("fixed", 1.0, 250, 24)


def test_table_2_interrupted_and_resumed_is_the_same(
    small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cell,) = TABLE2.chosen(["init=fixed", "C=1", "eps=inf"])
    (whole,) = TABLE2.rows([cell], Session(20))
    details = whole.details
    assert (whole.paper, details["noise_multiplier"], details["pld_replace"]) == (4.54, 0.0, math.inf)
    assert details["k"] in (1, 2, 4, 8)
    assert details["papers_k"] == 1  # nothing else does the paper's rule good where there is no noise
    assert set(details["pilot_with_caution"]) == {"1", "2", "4", "8"}
    assert whole.measured > 0.5  # no noise: by 20 trials alone, 1.19 for k = 1
    assert 0 < details["papers_rule"] <= whole.measured + 1e-3  # δ = 0 there, 1e-5 here
    assert 0.5 < details["train_accuracy"] <= 1.0
    trained: list[int] = []
    before = DpSgdTraining.run

    def counting(self: DpSgdTraining, insertions, *rest):
        trained.append(len(insertions))
        return before(self, insertions, *rest)

    monkeypatch.setattr(DpSgdTraining, "run", counting)

    def tell(_) -> None:
        if sum(trained) >= limit:
            raise Stops

    with SqliteStore(tmp_path / "trials.sqlite") as store:
        for limit in (30, 100):  # noqa: B007  in the pilot, and in the audit
            with pytest.raises(Stops):
                list(TABLE2.rows([cell], Session(20, store=store, progress=tell)))
        (resumed,) = TABLE2.rows([cell], Session(20, store=store))
        played = sum(trained)
        audits = 40 if details["k"] == details["papers_k"] else 80  # the paper's rule has its own, if its k is its own
        assert 0 <= played - (4 * 20 + audits + 5) <= 2  # nothing twice, but one stored trial each time it goes on
        list(TABLE2.rows([cell], Session(20, store=store)))
        assert sum(trained) == played
    same(whole, resumed)
    for _ in range(2):
        write_rows(tmp_path, TABLE2, SETTINGS, [resumed])
    assert table(tmp_path)[0]["eps"] == "inf"
    ElementTree.parse(tmp_path / "figure.svg")


@pytest.mark.parametrize(
    ("counts", "k", "paper", "composed"),
    [
        (Counts(tp=500, fp=0, fn=0, tn=500), 1, 4.542, 4.542),  # ε_OPT(500, .01)
        (Counts(tp=500, fp=0, fn=0, tn=500), 2, 2.271, 3.860),
        (Counts(tp=500, fp=0, fn=0, tn=500), 8, 0.568, 0.965),
        (Counts(tp=100, fp=300, fn=400, tn=200), 2, 0.0, 0.0),
        (Counts(tp=499, fp=250, fn=1, tn=250), 1, 3.398, 3.398),  # by the complement set; .57 without it
    ],
)
def test_the_papers_rule_divides_by_k(counts: Counts, k: int, paper: float, composed: float) -> None:
    """ln(p1/p0)/k with limits at .005 each. Composing k times is another rule: 3.86 where the paper has 2.27."""
    bound = clopper_pearson(replace(counts, group_size=k), confidence=0.99)
    ours = jagielski.papers_rule(counts.tp, counts.fp, 500, k)
    assert ours == pytest.approx(paper, abs=1e-3)
    assert bound.epsilon == pytest.approx(composed, abs=2e-3)
    low = special.betaincinv(max(counts.tp, 1e-9), counts.fn + 1, 0.005)  # Clopper and Pearson's limits, by the book
    high = special.betaincinv(counts.fp + 1, counts.tn, 0.995)
    assert ours == pytest.approx(max(0.0, math.log(low / high), math.log((1 - high) / (1 - low))) / k, abs=1e-9)


def test_the_papers_rule_has_a_threshold_of_its_own() -> None:
    """Of worlds that lie far apart composed limits prove most at another one, where the paper's rule looks weak."""
    likely = special.ndtri((np.arange(500) + 0.5) / 500)
    pairs = PairedRuns(likely, likely + 4.0, Relation.REPLACE, 8)
    own = jagielski.papers_threshold(pairs)

    def proved(cut: float) -> float:
        return float(jagielski.papers_rule((pairs.in_scores > cut).sum(), (pairs.out_scores > cut).sum(), 500, 8))

    assert proved(own) >= max(proved(cut) for cut in np.linspace(-3, 6, 200))
    composed = ClopperPearson(BestOnSame()).bound(pairs, delta=1e-5, confidence=0.99).proof
    assert proved(own) > 1.2 * proved(composed.threshold)  # type: ignore[union-attr]
    never = jagielski.papers_rule([0, 500], [500, 500], 500, 1)  # no hit, and nothing but false alarms
    assert never.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("apart", "k"), [((2.2, 3.0, 4.4, 6.0), 1), ((0.5, 2.5, 4.4, 6.0), 2), ((0.1, 0.3, 1.0, 2.5), 8)]
)
def test_the_papers_rule_has_a_k_of_its_own(apart: Sequence[float], k: int) -> None:
    """It divides by k: at one that was chosen for the default bound it proved 1.14 where the paper has 1.90."""
    recipe = jagielski.recipe_of("fmnist", stand_in(), "8", "fnn")
    plan = jagielski.plan_of(stand_in(), recipe, ClipBkd(copies=4), Relation.REPLACE, Session(500))
    normal = special.ndtri((np.arange(50) + 0.5) / 50)
    candidates = tuple(
        Candidate(ClipBkd(copies=copies), PairedRuns(normal, normal + gap, Relation.REPLACE, copies), 0.0)
        for copies, gap in zip(jagielski.COPIES, apart, strict=True)
    )
    papers = jagielski.for_papers_rule(Choice(plan, candidates))
    assert papers.adversary == ClipBkd(copies=k)
    assert papers.plan.fingerprint() == replace(plan, adversary=ClipBkd(copies=k)).fingerprint()  # nothing else differs
    assert jagielski.by_papers_rule(papers, papers.chosen.pilot)["papers_k"] == k


def test_figure_2_has_the_papers_weights_first_and_fixed_ones_as_a_second_picture(small: None) -> None:
    assert [cell["init"] for cell in FIGURE2.cells] == ["1"] * 96 + ["fixed"] * 96
    recipe = jagielski.recipe_of("fmnist", stand_in(), "4", "lr", init="1")
    assert (recipe.initialisation, recipe.init_scale) == ("random", 1.0)
    told = {}
    for init in jagielski_figure2.INITS:
        (cell,) = FIGURE2.chosen(["data=fmnist", "model=lr", "attack=backdoor", "eps=inf", f"init={init}"])
        (found,) = FIGURE2.rows([cell], Session(20, seed=1))
        told[init] = found.details["adversary"], found.paper
    assert "probes = 60, poisons = copies, probed = held-out" in told["1"][0]  # the whole test part
    assert told["1"][1] == 0.11
    assert "poisons" not in told["fixed"][0]
    assert told["fixed"][1] is None


def test_rows_from_before_there_were_random_weights_stay(tmp_path: Path) -> None:
    """They are those of fixed weights; a table and a picture that nobody changed are written anew."""
    old = {"data": "fmnist", "model": "lr", "attack": "clipbkd", "eps": "4"}
    before = replace(FIGURE2, cells=(old,), earlier={}, draw=draw)
    write_rows(tmp_path, before, SETTINGS, [Row(old, None, 1.82, {"k": 1})])
    with reproduction_directory(tmp_path / "other", FIGURE2, SETTINGS):
        pass
    cell = FIGURE2.chosen(["init=1", "data=fmnist", "model=lr", "attack=clipbkd", "eps=4"])[0]
    written = write_rows(tmp_path, FIGURE2, SETTINGS, [Row(cell, None, 0.5, {"k": 2})])
    assert [path.name for path in written] == ["table.csv", "figure.svg", "result.json"]
    assert [(line["init"], line["measured"]) for line in table(tmp_path)] == [("1", "0.5"), ("fixed", "1.82")]
    titles = [one["title"] for one in document(tmp_path)["figures"]["all"]["figures"]]
    assert titles == ["Fashion-MNIST, LR", "Fashion-MNIST, LR, fixed weights"]


@pytest.mark.parametrize("init", ["1", "fixed"])
@pytest.mark.parametrize(
    ("attack", "relation"), [("clipbkd", "replace"), ("backdoor", "replace"), ("mi", "add-remove")]
)
def test_figure_2(attack: str, relation: str, init: str, small: None, tmp_path: Path) -> None:
    (cell,) = FIGURE2.chosen(["data=fmnist", "model=lr", f"attack={attack}", "eps=16", f"init={init}"])
    session = Session(20, seed=1)
    (found,) = FIGURE2.rows([cell], session)
    assert found.details["relation"] == relation
    assert found.details["noise_multiplier"] == 0.73
    assert found.details["trials"] == (1 if attack == "mi" else 20)  # 10 models for 500 trials, as in the paper
    assert 0 <= found.measured <= found.details["theory"] < math.inf
    assert found.details["verdict"] != "violated"
    (again,) = FIGURE2.rows([cell], session)  # from the store
    same(found, again)
    write_rows(tmp_path, FIGURE2, SETTINGS, [found])
    words = list(ElementTree.parse(tmp_path / "figure.svg").iter("{http://www.w3.org/2000/svg}text"))
    texts = [str(text.text).strip() for text in words]
    assert document(tmp_path)["figures"]["all"]["figures"][0]["title"].startswith("Fashion-MNIST, LR")
    assert ("papers_rule" in found.details) == (attack != "mi")
    assert 0.5 < found.details["train_accuracy"] <= 1.0
    assert jagielski_figure2.ATTACKS[attack] in texts


@pytest.mark.parametrize("rows", ["", '"rows": 5', '"rows": [1]', '"rows": [{"eps": "1", "C": "1", "init": "2"}]'])
def test_rows_that_cannot_be_read_are_refused_before_anything_is_measured(tmp_path: Path, rows: str) -> None:
    out = tmp_path / "run"
    with reproduction_directory(out, TABLE2, SETTINGS):
        pass
    settings = json.dumps(SETTINGS)
    (out / "result.json").write_text(f'{{"settings": {settings}{", " if rows else ""}{rows}}}')
    with pytest.raises(InvalidInput, match=r"result\.json"), reproduction_directory(out, TABLE2, SETTINGS):
        pass


def test_an_audits_directory_stays_an_audits(tmp_path: Path) -> None:
    plan = spec_from_dict({"training": {"steps": 2}, "audit": {"trials": 2}}).plan()
    with run_directory(tmp_path / "audit", plan) as store:
        run(plan, store=store)
    held = tmp_path / "audit"
    with pytest.raises(InvalidInput, match="it holds an audit"), reproduction_directory(held, TABLE2, SETTINGS):
        pass
    with reproduction_directory(tmp_path / "run", TABLE2, SETTINGS):
        pass
    with pytest.raises(InvalidInput, match="is of this plan"), run_directory(tmp_path / "run", plan):
        pass


def test_a_table_that_cannot_be_written_is_named_and_the_old_one_stays(tmp_path: Path, monkeypatch) -> None:
    write_rows(tmp_path, TOY, SETTINGS, [row(TOY.cells[0], 1.0)])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(InvalidInput, match=r"out = '.*table\.csv': .* \(No space left on device\); trials are stored"):
        write_rows(tmp_path, TOY, SETTINGS, [row(TOY.cells[0], 2.0)])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
