"""Poisonings: what the two worlds have, and what of them the final model shows."""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epsilometer import DpSgdTraining, PointClaim, Recipe, run
from epsilometer.adversaries import Backdoor, ClipBkd, Game, two_worlds
from epsilometer.adversaries.clipbkd import least_singular_direction
from epsilometer.auditing import Plan
from epsilometer.claims import Relation
from epsilometer.data import Dataset, digits
from epsilometer.errors import InvalidInput
from epsilometer.evidence import IN, OUT
from epsilometer.subjects import Trained
from epsilometer.training import record_losses, train

SEED = np.random.SeedSequence(0)
RELATIONS = [Relation.ADD_REMOVE, Relation.REPLACE]
COPIES = (1, 2, 4, 8)


def images(records: int = 60, shape: tuple[int, ...] = (8, 8), classes: int = 3) -> Dataset:
    """Random pixels, none of them white."""
    rng = np.random.default_rng(records)
    x = 0.9 * rng.random((records, int(np.prod(shape))))
    return Dataset("random images", x, rng.integers(0, classes, records), classes, shape=shape)


def recipe_for(data: Dataset, **settings) -> Recipe:
    return Recipe(records=len(data), **{"steps": 5, "sample_rate": 0.5, "learning_rate": 0.5} | settings)


def game_of(adversary, data: Dataset, relation: Relation = Relation.REPLACE) -> Game:
    return adversary.game(DpSgdTraining(recipe_for(data), data), relation, SEED)


def out_data(game: Game) -> Dataset:
    return game.insert(OUT, SEED).data


def in_data(game: Game) -> Dataset:
    return game.insert(IN, SEED).data


def changed(game: Game) -> np.ndarray:
    """Rows in which worlds of the same size differ."""
    differ = (in_data(game).x != out_data(game).x).any(axis=1) | (in_data(game).y != out_data(game).y)
    return np.flatnonzero(differ)


def distance(game: Game) -> int:
    """In how many records the worlds differ as multisets, by the game's relation."""
    records = [
        np.unique(np.c_[data.x, data.y].astype(np.float32), axis=0, return_counts=True)
        for data in (out_data(game), in_data(game))
    ]
    out, member = ({row.tobytes(): n for row, n in zip(*one, strict=True)} for one in records)
    surplus = sum(max(0, n - out.get(row, 0)) for row, n in member.items())
    missing = sum(max(0, n - member.get(row, 0)) for row, n in out.items())
    return max(surplus, missing) if game.relation is Relation.REPLACE else surplus + missing


@pytest.fixture(scope="module")
def data() -> Dataset:
    return digits()


# -- every poisoning -------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(
    copies=st.integers(1, 6),
    relation=st.sampled_from(RELATIONS),
    contrast=st.sampled_from(["label", "row", "backdoor"]),
    records=st.integers(40, 60),
    seed=st.integers(0, 99),
)
def test_worlds_differ_in_exactly_as_many_records_as_is_said(
    copies: int, relation: Relation, contrast: str, records: int, seed: int
) -> None:
    small = images(records, (5, 5), classes=2)
    adversary = Backdoor(copies, probes=3) if contrast == "backdoor" else ClipBkd(copies, contrast)
    game = adversary.game(DpSgdTraining(recipe_for(small), small), relation, np.random.SeedSequence(seed))
    assert distance(game) == game.group_size == adversary.group_size == copies
    assert game.relation is relation
    grown = 0 if relation is Relation.REPLACE else copies
    assert len(in_data(game)) == len(out_data(game)) + grown
    assert len(out_data(game)) == len(small)


def test_the_distance_of_worlds_is_noticed() -> None:
    """What the property above rests on: one record more would be seen."""
    game = game_of(ClipBkd(2, "row"), images())
    more = in_data(game).with_rows(int(np.setdiff1d(np.arange(60), changed(game))[0]), np.zeros(64), 0)
    assert distance(game) == 2
    assert distance(replace(game, insert=two_worlds(out_data(game), more))) == 3


@pytest.mark.parametrize("adversary", [ClipBkd, Backdoor])
def test_more_copies_than_evidence_can_state_are_refused_before_the_trials(adversary) -> None:
    assert adversary(1000).group_size == 1000
    with pytest.raises(InvalidInput, match="copies = 1001: expected a whole number from 1 to 1,000"):
        adversary(1001)


# -- ClipBKD ---------------------------------------------------------------------------------------------------------


def test_with_labels_contrasted_both_worlds_have_the_poison() -> None:
    small = images()
    game = game_of(ClipBkd(3, "label"), small)
    np.testing.assert_array_equal(in_data(game).x, out_data(game).x)
    rows = changed(game)
    assert len(rows) == 3
    assert len(np.unique(in_data(game).x[rows], axis=0)) == 1
    assert (in_data(game).x[rows] != small.x[rows]).any(axis=1).all()
    assert len(set(in_data(game).y[rows])) == len(set(out_data(game).y[rows])) == 1


def test_with_rows_contrasted_world_0_is_the_natural_data() -> None:
    small = images()
    game = game_of(ClipBkd(3, "row"), small)
    assert out_data(game) is small
    labelled = game_of(ClipBkd(3, "label"), small)
    np.testing.assert_array_equal(in_data(game).x, in_data(labelled).x)  # world 1 is the same
    np.testing.assert_array_equal(in_data(game).y, in_data(labelled).y)


@pytest.mark.parametrize("contrast", ["label", "row"])
def test_what_is_added_is_added_to_the_natural_data(contrast: str) -> None:
    small = images()
    game = game_of(ClipBkd(3, contrast), small, Relation.ADD_REMOVE)
    assert out_data(game) is small
    np.testing.assert_array_equal(in_data(game).x[:60], small.x)
    assert len(np.unique(in_data(game).x[60:], axis=0)) == 1


@pytest.mark.parametrize("contrast", ["label", "row"])
def test_fewer_copies_take_rows_that_more_copies_take_too(contrast: str) -> None:
    rows = [set(changed(game_of(ClipBkd(k, contrast), images()))) for k in COPIES]
    assert [len(some) for some in rows] == list(COPIES)
    assert all(fewer < more for fewer, more in pairwise(rows))


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_label_is_unlikely_at_the_poison(relation: Relation, data: Dataset) -> None:
    game, recipe = game_of(ClipBkd(contrast="row"), data, relation), recipe_for(data)
    row = len(data) if relation is Relation.ADD_REMOVE else changed(game)[0]
    point, label = in_data(game).x[row], in_data(game).y[row]
    flat = train(recipe, data, SEED, noise_scale=0.0)
    logits = point @ flat[:640].reshape(10, 64).T + flat[640:]
    assert label == np.argmin(logits)


@pytest.mark.parametrize("norm", [0.25, 40.0])
def test_the_norm_may_be_said(norm: float, data: Dataset) -> None:
    game = game_of(ClipBkd(norm=norm), data, Relation.ADD_REMOVE)
    point = in_data(game).x[-1]
    assert np.linalg.norm(point) == pytest.approx(norm, rel=1e-5)
    assert abs(point @ least_singular_direction(data.x)) == pytest.approx(norm, rel=1e-4)
    usual = in_data(game_of(ClipBkd(), data, Relation.ADD_REMOVE)).x[-1]
    assert np.linalg.norm(usual) == pytest.approx(np.median(np.linalg.norm(data.x, axis=1)), rel=1e-5)


def test_world_0_has_one_name_exactly_when_it_is_one() -> None:
    small = images()

    def names(contrast: str, relation: Relation, **settings) -> list[str]:
        return [game_of(ClipBkd(k, contrast, **settings), small, relation).out_identity for k in COPIES]

    assert len(set(names("label", Relation.REPLACE))) == len(COPIES)
    assert len(set(names("row", Relation.REPLACE))) == 1
    assert len(set(names("label", Relation.ADD_REMOVE))) == 1
    assert all(names("row", Relation.REPLACE))
    # The data are the same, but another poison is scored at another point.
    assert set(names("row", Relation.REPLACE)).isdisjoint(names("row", Relation.REPLACE, norm=1.0))


def test_one_name_means_the_same_scores() -> None:
    small = images()
    subject, claim = DpSgdTraining(recipe_for(small), small), PointClaim(4.0, 1e-5, Relation.REPLACE)
    plans = [Plan(subject, claim, 1e-5, ClipBkd(k, "row"), trials=5) for k in (1, 4)]
    outs, ins = (
        [np.concatenate(p.play(p.prepare(), [(world, i) for i in range(5)])) for p in plans] for world in (OUT, IN)
    )
    np.testing.assert_array_equal(*outs)
    assert not np.isclose(*ins).any()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"contrast": "rows"}, "contrast = 'rows'.*did you mean 'row'"),
        ({"norm": 0.0}, "norm = 0"),
        ({"norm": float("nan")}, "norm = nan"),
        ({"copies": 0}, "copies = 0"),
        ({"copies": 1.5}, "copies = 1.5"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        ClipBkd(**settings)


@pytest.mark.parametrize("relation", RELATIONS)
def test_as_many_copies_as_records_are_refused(relation: Relation) -> None:
    with pytest.raises(InvalidInput, match="copies = 40: expected fewer than the 40 records of random images"):
        game_of(ClipBkd(40), images(40), relation)


# -- the backdoor ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(8, 8), (3, 8, 6)])
def test_the_pattern_is_the_corner_of_every_channel_and_nothing_else(shape: tuple[int, ...]) -> None:
    """An oracle by loops: white in rows and columns 0 to 4, as before elsewhere."""
    small = images(shape=shape)
    game = game_of(Backdoor(4, probes=10), small)
    for row in changed(game):
        before, after = small.x[row].reshape(-1, *shape[-2:]), in_data(game).x[row].reshape(-1, *shape[-2:])
        for channel, line, column in np.ndindex(before.shape):
            marked = line < 5 and column < 5
            assert after[channel, line, column] == (1.0 if marked else before[channel, line, column])


def test_the_size_of_the_pattern_may_be_said() -> None:
    game = game_of(Backdoor(1, size=2, probes=10), images())
    (row,) = changed(game)
    assert (in_data(game).x[row] != out_data(game).x[row]).sum() == 4


@pytest.mark.parametrize("target", [0, 2])
@pytest.mark.parametrize("copies", COPIES)
def test_as_many_images_as_is_said_get_pattern_and_label(copies: int, target: int) -> None:
    small = images()
    game = game_of(Backdoor(copies, target, probes=10), small)
    assert out_data(game) is small
    rows = changed(game)
    assert len(rows) == copies
    assert (in_data(game).y[rows] == target).all()
    assert (small.y[rows] != target).all()  # the label is another one for each of them
    added = in_data(game_of(Backdoor(copies, target, probes=10), small, Relation.ADD_REMOVE))
    assert {x.tobytes() for x in added.x[60:]} == {x.tobytes() for x in in_data(game).x[rows]}
    assert (added.y[60:] == target).all()


def test_fewer_images_are_among_more() -> None:
    rows = [set(changed(game_of(Backdoor(k, probes=20), images()))) for k in COPIES]
    assert all(fewer < more for fewer, more in pairwise(rows))


def scored_points(game: Game) -> np.ndarray:
    return game.observe()._points


def test_probes_are_natural_in_both_worlds() -> None:
    small = images()
    adversary = Backdoor(3, probes=20)
    game = game_of(adversary, small)
    points, rows = scored_points(game), changed(game)
    assert len(points) == 23
    assert {x.tobytes() for x in points[:3]} == {x.tobytes() for x in in_data(game).x[rows]}
    marked = adversary.perturb(small.x, small.shape)
    untouched = np.setdiff1d(np.arange(60), rows)
    places = [int(np.flatnonzero((marked == point).all(axis=1)).item()) for point in points[3:]]
    assert len(set(places)) == 20
    assert set(places) <= set(untouched)
    for world in (out_data(game), in_data(game)):  # where they stand, both worlds have the image without its pattern
        np.testing.assert_array_equal(world.x[places], small.x[places])
        np.testing.assert_array_equal(world.y[places], small.y[places])
    assert (small.y[places] != adversary.target).all()


@pytest.mark.parametrize("loss", ["cross-entropy", "logistic", "squared"])
def test_the_score_is_minus_the_mean_loss_of_pattern_and_target(loss: str) -> None:
    small = images()
    subject = DpSgdTraining(recipe_for(small, loss=loss), small)
    game = Backdoor(2, target=1, probes=5).game(subject, Relation.REPLACE, SEED)
    observer, flat = game.observe(), np.random.default_rng(0).normal(size=195)
    observer.finish(Trained(subject.network, flat, np.zeros(0)))
    logits = scored_points(game) @ flat[:192].reshape(3, 64).T + flat[192:]
    expected = -record_losses(logits, np.ones(7, int), loss).mean()
    assert observer.score() == pytest.approx(expected, rel=1e-9)


# -- the paper's way: marked copies, and a marked test set


def with_test_images(records: int = 60) -> Dataset:
    return replace(images(records), held_out=images(41))


@pytest.mark.parametrize("copies", COPIES)
def test_marked_copies_take_the_place_of_other_records(copies: int) -> None:
    """The images that were copied are still there, as they were, which they are not if they are marked in place."""
    small = images()
    adversary = Backdoor(copies, probes=10, poisons="copies")
    game = game_of(adversary, small)
    rows = changed(game)
    assert out_data(game) is small
    assert len(rows) <= copies == distance(game)
    marked = adversary.perturb(small.x, small.shape)
    sources = [int(np.flatnonzero((marked == x).all(axis=1)).item()) for x in in_data(game).x[rows]]
    assert not set(sources) & set(rows)
    np.testing.assert_array_equal(in_data(game).x[sources], small.x[sources])
    assert (in_data(game).y[rows] == 0).all()
    (in_place,) = changed(game_of(Backdoor(1, probes=10), small))
    assert adversary.perturb(small.x[[in_place]], small.shape).tobytes() == (
        in_data(game_of(Backdoor(1, probes=10), small)).x[in_place].tobytes()
    )


def test_copies_are_of_all_classes_and_fewer_are_among_more() -> None:
    small = images(200)
    games = [game_of(Backdoor(k, probes=20, poisons="copies"), small) for k in (*COPIES, 64)]
    poisoned = [{x.tobytes() for x in in_data(game).x[changed(game)]} for game in games]
    assert all(fewer < more for fewer, more in pairwise(poisoned))
    sources = np.isin(Backdoor().perturb(small.x, small.shape), in_data(games[-1]).x[changed(games[-1])]).all(axis=1)
    assert set(small.y[sources]) == {0, 1, 2}


@pytest.mark.parametrize("poisons", ["rows", "copies"])
def test_a_marked_test_set_is_scored_and_nothing_else(poisons: str) -> None:
    data = with_test_images()
    adversary = Backdoor(2, probes=41, poisons=poisons, probed="held-out")
    game = game_of(adversary, data)
    assert data.held_out is not None
    np.testing.assert_array_equal(scored_points(game), adversary.perturb(data.held_out.x, data.held_out.shape))
    fewer = scored_points(game_of(replace(adversary, probes=7), data))
    assert len(fewer) == 7
    assert {x.tobytes() for x in fewer} < {x.tobytes() for x in scored_points(game)}


@pytest.mark.parametrize("poisons", ["rows", "copies"])
def test_games_with_other_copies_share_the_trials_of_world_0(poisons: str) -> None:
    data = with_test_images()
    adversary = Backdoor(2, probes=9, poisons=poisons, probed="held-out")
    games = [game_of(replace(adversary, copies=k), data) for k in COPIES]
    assert len({game.out_identity for game in games}) == 1
    assert games[0].out_identity
    assert games[0].out_identity != game_of(replace(adversary, probes=10), data).out_identity
    assert game_of(replace(adversary, probed="same"), data).out_identity == ""


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"poisons": "rows of mine"}, "poisons = 'rows of mine': expected one of copies, rows"),
        ({"probed": "test"}, "probed = 'test': expected one of held-out, same"),
        ({"probed": "held-out", "probes": 0}, "probes = 0: expected at least 1 with probed"),
        ({"probed": "held-out", "probes": 42}, "probed = 'held-out': expected data that hold out at least 42 records"),
        ({"poisons": "copies", "copies": 20, "probes": 21}, "2 × copies . probes = 61: expected at most the 60 rec"),
    ],
)
def test_what_cannot_be_marked_is_refused(settings: dict, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        game_of(Backdoor(**settings), with_test_images())


@dataclass(frozen=True)
class Inverted(Backdoor):
    """The negative of the whole image."""

    def perturb(self, images: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        return 1.0 - images


@dataclass(frozen=True)
class Cropped(Backdoor):
    def perturb(self, images: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        return images[:, :-1]


@dataclass(frozen=True)
class Lost(Backdoor):
    def perturb(self, images: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        return images[:-1]


def backdoor_plan(adversary: Backdoor, data: Dataset, **settings) -> Plan:
    full = {"sampling": "full", "sample_rate": 1.0, "steps": 40, "clip_norm": 10.0, "learning_rate": 0.05}
    subject = DpSgdTraining(recipe_for(data, noise_multiplier=0.0, **full), data)
    return Plan(subject, PointClaim(1.0, 1e-5, Relation.REPLACE), 1e-5, adversary, trials=20, **settings)


def test_another_pattern_is_one_method() -> None:
    small = images()
    game = game_of(Inverted(2, probes=4), small)
    for row in changed(game):
        np.testing.assert_allclose(in_data(game).x[row], 1.0 - small.x[row], rtol=1e-6)
    result = run(backdoor_plan(Inverted(8, probes=4), small))
    assert result.evidence.out_scores.max() < result.evidence.in_scores.min()  # without noise, it is seen
    vectors = Dataset("vectors", small.x, small.y, 3)
    assert len(changed(game_of(Inverted(2, probes=4), vectors))) == 2  # and a pattern need not be for images


def test_another_pattern_is_another_plan() -> None:
    """Or a store would give it the first one's trials."""
    small = images()
    plans = [backdoor_plan(kind(probes=4), small) for kind in (Backdoor, Inverted)]
    assert plans[0].fingerprint() != plans[1].fingerprint()
    assert plans[0].to_dict()["adversary"] == {"name": "backdoor", "copies": 1, "target": 0, "size": 5, "probes": 4}
    assert plans[1].to_dict()["adversary"]["class"]["name"] == "Inverted"


@pytest.mark.parametrize(("adversary", "shape"), [(Cropped, r"\(63,\)"), (Lost, r"\(64,\)")])
def test_a_pattern_that_changes_the_shape_is_refused(adversary: type[Backdoor], shape: str) -> None:
    with pytest.raises(InvalidInput, match=rf"perturb = .*shape.*{shape}"):
        backdoor_plan(adversary(2, probes=4), images()).prepare()


@pytest.mark.parametrize(
    ("adversary", "data", "words"),
    [
        (Backdoor(target=3, probes=1), images(), "target = 3: expected a class of random images, 0 to 2"),
        (Backdoor(size=9, probes=1), images(), "size = .*9, for records of shape.*images of at least 9 × 9.*clipbkd"),
        (Backdoor(probes=1), images(shape=(64,)), "images of at least 5 × 5 pixels; use clipbkd instead"),
        (Backdoor(5, probes=100), images(), "copies [+] probes = 105: expected at most the .. records.*not of class 0"),
    ],
)
@pytest.mark.parametrize("relation", RELATIONS)
def test_data_that_do_not_fit_are_refused(adversary: Backdoor, data: Dataset, words: str, relation: Relation) -> None:
    with pytest.raises(InvalidInput, match=words):
        game_of(adversary, data, relation)


def test_plain_vectors_are_refused_in_one_line() -> None:
    vectors = Dataset("vectors", images().x, images().y, 3)
    with pytest.raises(InvalidInput, match="images of at least 5 × 5 pixels; use clipbkd instead") as caught:
        game_of(Backdoor(probes=1), vectors)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("settings", [{"copies": 0}, {"target": -1}, {"size": 0}, {"probes": -1}, {"probes": 2.0}])
def test_impossible_backdoors_are_refused(settings: dict) -> None:
    with pytest.raises(InvalidInput, match=f"{next(iter(settings))} = "):
        Backdoor(**settings)


def test_every_record_may_be_used() -> None:
    small = images()
    most = int((small.y != 0).sum())
    game = game_of(Backdoor(2, probes=most - 2), small)
    assert len(scored_points(game)) == most
