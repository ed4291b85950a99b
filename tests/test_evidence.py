import numpy as np
import pytest

from epsilometer import PairedRuns
from epsilometer.bounds import clopper_pearson
from epsilometer.errors import EvidenceMismatch, InvalidInput
from epsilometer.evidence import Counts, Membership, OneRun


def test_scores_are_copied_and_frozen() -> None:
    scores = np.zeros(3)
    runs = PairedRuns(scores, [1, 2])
    scores[0] = 9
    assert runs.out_scores.tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="read-only"):
        runs.out_scores[0] = 1


def test_higher_means_member_and_ties_are_not_above() -> None:
    counts = PairedRuns([0.0, 1.0, 2.0], [1.0, 2.0, 3.0, 3.0], group_size=2).counts(1.0)
    assert (counts.tp, counts.fp, counts.fn, counts.tn, counts.group_size) == (3, 1, 1, 2, 2)


def test_infinite_scores_are_fine() -> None:
    assert PairedRuns([-np.inf, 0], [np.inf, 0]).counts(0).tp == 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: PairedRuns([], [1.0]), "at least one score"),
        (lambda: PairedRuns([1.0, float("nan")], [1.0]), "NaN at position 1"),
        (lambda: PairedRuns([[1.0]], [1.0]), "one-dimensional"),
        (lambda: PairedRuns(["x"], [1.0]), "a sequence of numbers"),
        (lambda: PairedRuns([10**400], [1.0]), "numbers up to 1.8e308"),
        (lambda: PairedRuns(np.array([1j]), [1.0]), "a sequence of numbers"),
        (lambda: PairedRuns([1.0], [1.0], group_size=0), "group_size = 0"),
        (lambda: PairedRuns([1.0], [1.0], relation="add"), "did you mean 'add-remove'"),
        (lambda: Counts(-1, 0, 1, 1), "tp = -1"),
        (lambda: Counts(0, 1, 0, 1), r"tp \+ fn = 0"),
        (lambda: Counts(1, 0, 1, 0), r"fp \+ tn = 0"),
        (lambda: OneRun([1.0, 2.0], [1]), "one value for each of 2 scores"),
        (lambda: Membership([1.0], [2]), "values 0 .out. and 1 .in."),
    ],
)
def test_bad_evidence_is_refused_in_words(make, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        make()


@pytest.mark.parametrize("evidence", [OneRun([1.0], [1]), Membership([1.0], [0])])
def test_a_bound_takes_only_the_evidence_it_is_valid_for(evidence) -> None:
    with pytest.raises(EvidenceMismatch, match="needs independent trials"):
        clopper_pearson(evidence)
