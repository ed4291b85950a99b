"""Figures from JSON, as result.json has them."""

from __future__ import annotations

from typing import Any

from epsilometer.errors import InvalidInput
from epsilometer.figures import FIGURES, Figure, Grid


def figure_from_dict(document: dict[str, Any]) -> Figure:
    """What `Figure.to_dict` has written.

    >>> from epsilometer.figures import Level, Path
    >>> path = Path("a", "trials", "ε", "bound", (10, 20), (0.5, float("inf")), (Level("claim", 4.0),))
    >>> figure_from_dict(path.to_dict()) == path
    True
    """
    import pydantic

    try:
        values = {key: value for key, value in document.items() if key != "kind"}
        kind = FIGURES[document["kind"]]
        if kind is Grid:
            values["figures"] = tuple(figure_from_dict(one) for one in values["figures"])
            return Grid(**values)
        return pydantic.TypeAdapter(kind).validate_python(values)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        expected = "a figure as this version writes it"
        raise InvalidInput("figures", f"{type(error).__name__}", expected, "write the result anew") from None
