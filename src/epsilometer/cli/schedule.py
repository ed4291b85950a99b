"""How long a training is, as accountants count (rate and steps), or as people do (epochs, batches, records)."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from epsilometer import validate
from epsilometer.errors import InvalidInput

Epochs = Annotated[
    float | None, typer.Option(help="Instead of --steps, with --batch-size and --records: for example 15.")
]
BatchSize = Annotated[
    int | None, typer.Option(help="Instead of --sample-rate, with --records: the mean size of a batch, such as 256.")
]
Records = Annotated[int | None, typer.Option(help="With --batch-size: how many records there are, such as 60000.")]


def rate_and_steps(
    sample_rate: float | None, steps: int | None, epochs: float | None, batch_size: int | None, records: int | None
) -> tuple[float | None, int | None]:
    """Sample rate and steps, each as given or as it follows: a batch of all records, steps rounded up.

    >>> rate_and_steps(None, None, 10, 256, 60_000)
    (0.004266666666666667, 2344)
    >>> rate_and_steps(0.01, 500, None, None, None)
    (0.01, 500)
    """
    if batch_size is not None or records is not None:
        if sample_rate is not None:
            given, value = ("--batch-size", batch_size) if batch_size is not None else ("--records", records)
            raise InvalidInput(given, value, "nothing beside --sample-rate", "they say the same: leave one out")
        if batch_size is None or records is None:
            raise InvalidInput("--batch-size and --records", (batch_size, records), "both", "their ratio is the rate")
        most = validate.whole("--records", records, least=1)
        sample_rate = validate.whole("--batch-size", batch_size, least=1, most=most) / most
    if epochs is not None:
        if steps is not None:
            raise InvalidInput("--epochs", epochs, "nothing beside --steps", "they say the same: leave one out")
        if sample_rate is None:
            raise InvalidInput("--epochs", epochs, "--batch-size and --records beside it, or --sample-rate")
        rate = validate.real("--sample-rate", sample_rate, above=0, below=1, closed="]")
        steps = math.ceil(round(validate.real("--epochs", epochs, above=0, below=1e12) / rate, 6))
    return sample_rate, steps
