"""Named data sets."""

from collections.abc import Callable

from epsilometer.data.dataset import Dataset
from epsilometer.data.digits import digits
from epsilometer.errors import unknown_name

DATASETS: dict[str, tuple[str, Callable[[], Dataset]]] = {
    "digits": ("1797 handwritten digits, 64 pixels, 10 classes; embedded, nothing to download", digits),
}


def load(name: str) -> Dataset:
    """The data set of that name."""
    if name not in DATASETS:
        raise unknown_name("data.name", name, DATASETS)
    return DATASETS[name][1]()


__all__ = ["DATASETS", "Dataset", "digits", "load"]
