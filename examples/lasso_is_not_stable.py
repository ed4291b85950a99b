"""One record of n moves LASSO by as much whatever n is, and ridge regression by 1/n: noise for LASSO would not
shrink."""

import numpy as np
from sklearn.linear_model import Lasso, Ridge


def moved(n: int, penalty: float = 0.1) -> tuple[float, float]:
    """How far the coefficients of LASSO and ridge move if the first of n records has another value.

    Two features say the same of all records but the first, which has only one of them: LASSO gives all weight to that.
    """
    x = np.full((n, 2), 0.5)
    worlds = [np.vstack([first, x[1:]]) for first in ([1.0, 0.0], [0.0, 1.0])]
    y = np.full(n, 0.5)
    lasso = Lasso(penalty, fit_intercept=False, tol=1e-12, max_iter=10**7, precompute=True)
    ridge = Ridge(penalty * n, fit_intercept=False)
    return tuple(
        float(np.linalg.norm(np.subtract(*(m.fit(w, y).coef_.copy() for w in worlds)))) for m in (lasso, ridge)
    )


if __name__ == "__main__":
    for n in (20, 100, 500, 2500):
        print(f"n = {n}: LASSO moves by {moved(n)[0]:.3f}, ridge by {moved(n)[1]:.5f}")
