"""What `bound` and `compare` are given: scores, canaries or counts; and what their users should be told of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from epsilometer.cli.columns import LOSS, Columns
from epsilometer.cli.parquet import is_parquet, read_parquet
from epsilometer.cli.scores import (
    columns_of,
    content_of,
    parse_canaries,
    parse_scores,
    stated_group_size,
    stated_neighbours,
)
from epsilometer.errors import InvalidInput
from epsilometer.evidence import Counts, OneRun, PairedRuns

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from epsilometer.bounds.catalogue import Evidence, Settings
    from epsilometer.neighbours import Neighbours

CLEAR = 0.99  # confidence that scores are reversed, before anybody is told so
ENOUGH_TO_SEE = 20_000  # scores of a world tell that as well as millions do
_ASSUMED: dict[type, str] = {
    PairedRuns: "each row must be the score of an independent training: several rows of one training prove nothing",
    Counts: "each count must be of independent trainings, and the test chosen before they were seen",
    OneRun: "each row must be a canary that a fair coin of its own put into the training or left out",
}


@dataclass(frozen=True)
class Given:
    """Evidence, the names of the columns that it came from, and remarks on them."""

    evidence: Evidence
    columns: Columns | None = None  # of a file
    remarks: list[str] = field(default_factory=list)


def given(
    scores: Path | None,
    counts: tuple[int, int, int, int] | None,
    one_run: Path | None,
    group_size: int | None,
    neighbours: Neighbours,
    settings: Settings,
) -> Given:
    """The one kind of evidence that was given, with everything that is to be remarked on it."""
    named = [name for name, value in (("SCORES", scores), ("--counts", counts), ("--one-run", one_run)) if value]
    if len(named) != 1:
        shown = " and ".join(named) or "none"
        remedy = "name a file, or give four counts"
        raise InvalidInput("SCORES, --counts, --one-run", shown, "exactly one of them", remedy)
    if scores is not None:
        found = _pairs(scores, group_size, neighbours)
    elif one_run is not None:
        found = _canaries(one_run, group_size, neighbours, settings.in_order)
    else:
        assert counts is not None
        found = Given(_counts(counts, group_size, neighbours))
    _refuse_turning_twice(found, settings)
    assumed, seen = _ASSUMED[type(found.evidence)], _reversed(found, settings.direction)
    return replace(found, remarks=[assumed, *found.remarks, *seen])


def _pairs(path: Path, group_size: int | None, neighbours: Neighbours) -> Given:
    content = content_of(path, "SCORES")
    outs: ArrayLike
    ins: ArrayLike
    if is_parquet(path, content):
        table = read_parquet(content, "SCORES", "world")
        (outs, ins), columns, stated, told = table.worlds, table.columns, table.group_size, table.neighbours
    else:
        (outs, ins), columns = parse_scores(content), columns_of(content, "world")
        stated, told = stated_group_size(content), stated_neighbours(content)
    of = _neighbours(neighbours, told)
    return Given(PairedRuns(outs, ins, of, _group_size(group_size, stated)), columns, columns.remarks)


def _canaries(path: Path, group_size: int | None, neighbours: Neighbours, in_order: bool) -> Given:
    content = content_of(path, "--one-run")
    scores: ArrayLike
    member: ArrayLike
    if is_parquet(path, content):
        table = read_parquet(content, "--one-run", "member")
        scores, member, columns, stated = table.scores, table.inside, table.columns, table.group_size
        told = table.neighbours
    else:
        scores, member = parse_canaries(content)
        columns, stated = columns_of(content, "member"), stated_group_size(content)
        told = stated_neighbours(content)
    run = OneRun(scores, member, _neighbours(neighbours, told), _group_size(group_size, stated), in_order)
    return Given(run, columns, columns.remarks)


def _counts(counts: tuple[int, int, int, int], group_size: int | None, neighbours: Neighbours) -> Counts:
    try:
        return Counts(*counts, neighbours.relation, 1 if group_size is None else group_size, neighbours.unit)
    except InvalidInput as error:
        raise error if error.argument == "group_size" else error.renamed(f"--counts: {error.argument}") from None


def _neighbours(said: Neighbours, told: Mapping[str, str]) -> Neighbours:
    """What the file says; an option that says something else must be the default, which nobody may have said."""
    usual, given = type(said)().to_dict(), said.to_dict()
    for name, word in told.items():
        if given[name] not in (word, usual[name]):
            raise InvalidInput(f"--{name}", given[name], f"{word}, as the file says", "leave it out")
    return type(said).read({**given, **told})


def _group_size(said: int | None, stated: int | None) -> int:
    """What the user says, or the file; they must not contradict each other."""
    if said is not None and stated is not None and said != stated:
        raise InvalidInput("--group-size", said, f"{stated}, as the file says", "leave it out")
    return next(size for size in (said, stated, 1) if size is not None)


def _refuse_turning_twice(found: Given, settings: Settings) -> None:
    """A loss says itself what low values mean; who says it once more, or in its own units, must not be misread."""
    if found.columns is None or found.columns.score_name != LOSS:
        return
    remedy = "or call the column score"
    if settings.direction == "lower":
        raise InvalidInput("--direction", "lower", "higher (default) or either with a column loss: its sign is turned "
                           "already", f"leave it out, {remedy}")  # fmt: skip
    threshold = settings.threshold if settings.threshold is not None else getattr(settings.guesses, "value", None)
    if threshold is not None:
        raise InvalidInput("--threshold", threshold, "none with a column loss, whose sign is turned",
                           f"leave it out, {remedy} and say --direction lower")  # fmt: skip


def _reversed(found: Given, direction: str) -> list[str]:
    """A remark if members clearly have the scores that others should have."""
    from epsilometer.bounds import attack_strength

    pairs = _as_pairs(found.evidence)
    if pairs is None or direction == "either":
        return []
    if attack_strength(pairs if direction == "lower" else pairs.flipped(), CLEAR) == 0.0:
        return []
    said, seen = ("lower", "higher") if direction == "lower" else ("higher", "lower")
    by_loss = found.columns is not None and found.columns.score_name == LOSS
    known = "call the column score" if by_loss else f"say --direction {seen}"
    text = f"{said} must mean member, but members score {seen} here: if that was known before any score, {known}"
    if "either" in found.evidence.directions:
        text += "; if it was not, --direction either tries both and pays for the choice"
    return [text]


def _as_pairs(evidence: Evidence) -> PairedRuns | None:
    """Scores apart by who was in, enough of them to see a direction; for looking only."""
    if not evidence.has_scores or not all(evidence.sizes.values()):
        return None
    pairs = cast("PairedRuns | OneRun", evidence).as_pairs()
    outs, ins = pairs.out_scores, pairs.in_scores
    return PairedRuns(outs[:: 1 + len(outs) // ENOUGH_TO_SEE], ins[:: 1 + len(ins) // ENOUGH_TO_SEE])
