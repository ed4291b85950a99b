"""The options that say of which neighbours an ε is: --relation and --unit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from epsilometer.neighbours import Neighbours

RelationOption = Annotated[str, typer.Option(help="add-remove, replace or zero-out.")]
UnitOption = Annotated[str, typer.Option(help="What ε protects: a record, a user, or another word of yours.")]


def said_neighbours(relation: str, unit: str) -> Neighbours:
    """What the two options say together."""
    from epsilometer.neighbours import Neighbours, Relation, as_unit

    return Neighbours(as_unit(unit, "--unit"), Relation.of(relation))
