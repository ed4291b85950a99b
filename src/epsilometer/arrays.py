"""Arrays of numbers, as annotations name them; numpy only, so that whoever needs the name loads nothing else."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
