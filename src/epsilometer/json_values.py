"""Results as plain data that JSON can hold."""

from __future__ import annotations

import math
import numbers
from typing import Any

SCHEMA = 1


def json_values(value: Any) -> Any:
    """The same with built-in types only; JSON has no infinities, so they become "inf" and "-inf".

    >>> json_values({"epsilon": float("inf"), "counts": (1, 2)})
    {'epsilon': 'inf', 'counts': [1, 2]}
    """
    if isinstance(value, dict):
        return {str(key): json_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_values(item) for item in value]
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        number = float(value)
        return number if math.isfinite(number) else str(number)
    return str(value)
