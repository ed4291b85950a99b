"""The mechanisms on which bounds must cover; their ε is known exactly."""

from epsilometer.bounds.coverage import (
    Mechanism,
    constant,
    laplace,
    least_favourable,
    mixture,
    randomized_response,
)

LEAST_FAVOURABLE = [
    least_favourable(epsilon, delta) for epsilon in (0.0, 0.5, 1.0, 2.0, 4.0, 6.0) for delta in (0.0, 1e-5, 0.01)
]
OTHERS = [
    least_favourable(1.0, 0.0, group_size=2),
    least_favourable(0.5, 1e-3, group_size=4),
    least_favourable(1.0, 0.0, levels=5),
    least_favourable(2.0, 0.01, levels=20),
    laplace(1.0),
    laplace(3.0, 1e-3),
    mixture(3.0, 0.1),
    mixture(1.0, 0.5),
    randomized_response(0.5),
    randomized_response(3.0),
    constant(),
]
MECHANISMS = LEAST_FAVOURABLE + OTHERS
QUICK = [LEAST_FAVOURABLE[i] for i in (0, 4, 8, 9, 14)] + [OTHERS[i] for i in (0, 3, 4, 6, 8, 10)]

__all__ = ["MECHANISMS", "QUICK", "Mechanism", "constant", "least_favourable", "randomized_response"]
