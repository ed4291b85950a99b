"""Crafting is remembered by what it depends on."""

import numpy as np

from epsilometer import DpSgdTraining, Recipe
from epsilometer.adversaries import AdaptivePoison, ClipBkd, StaticPoison
from epsilometer.adversaries.crafted_once import remembered
from epsilometer.adversaries.static_poison import static_poison
from epsilometer.claims import Relation
from epsilometer.data import digits


def test_equal_seeds_are_the_same_and_others_are_not() -> None:
    made = []

    @remembered(8)
    def make(what: str, seed: np.random.SeedSequence) -> int:
        made.append((what, seed.generate_state(1)[0]))
        return len(made)

    seeds = [3, np.int64(3), [3, 1], (3, 1), np.array([3, 1])]
    assert [make("a", np.random.SeedSequence(seed)) for seed in seeds] == [1, 1, 2, 2, 2]
    assert make("b", np.random.SeedSequence(3)) == 3
    assert make("a", np.random.SeedSequence(3, spawn_key=(1,))) == 4
    assert len({state for what, state in made if what == "a"}) == 3


def test_a_seed_of_several_numbers_crafts_poisons_and_is_not_used_up() -> None:
    data = digits().subset(classes=(0, 1), per_class=10)
    subject = DpSgdTraining(Recipe(records=len(data), sample_rate=0.5, steps=2), data)
    seed = np.random.SeedSequence([1, 2])
    for adversary in (StaticPoison(shadows=2), AdaptivePoison(shadows=2), ClipBkd()):
        adversary.game(subject, Relation.ADD_REMOVE, seed)
    settings = (subject, Relation.ADD_REMOVE, 2, "same")
    assert static_poison(*settings, seed) is static_poison(*settings, np.random.SeedSequence((1, 2)))
    assert seed.n_children_spawned == 0
