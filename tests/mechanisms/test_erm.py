"""Private ERM: solvers against obvious oracles, sensitivities and densities against their limits, and wrong ones
caught."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, special, stats
from sklearn.linear_model import LogisticRegression

from epsilometer.claims import GaussianClaim, PointClaim, Relation
from epsilometer.errors import InvalidInput
from epsilometer.mechanisms.erm import (
    Flaws,
    GeneratorDraws,
    Huber,
    LipschitzSgd,
    Logistic,
    Loss,
    NoOptimum,
    ObjectivePerturbation,
    OutputPerturbation,
    Problem,
    Risk,
    SmoothedHinge,
    Squared,
    accounted_epsilon,
    lone_pair,
    loss_named,
    optimum,
    saturated_pair,
)
from epsilometer.mechanisms.erm.draws import long_tailed
from epsilometer.mechanisms.erm.utility import sample_size

DELTA = 1e-5
ALL: list[Loss] = [Logistic(), SmoothedHinge(0.5), SmoothedHinge(0.05), Huber(1.0), Huber(0.2), Squared()]


def records(loss: Loss, n: int = 40, features: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, features))
    x /= np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True))
    y = rng.choice([-1.0, 1.0], n) if loss.classifies else rng.uniform(-1, 1, n)
    return x, y


def problem_of(loss: Loss, regularisation: float = 0.1, **more: float) -> Problem:
    bounded = {"target_norm": 1.0} if isinstance(loss, Squared) else {}
    return Problem(loss, regularisation, **(bounded | more))


# -- losses and solvers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ALL, ids=str)
def test_slopes_are_derivatives_and_within_their_limits(loss: Loss) -> None:
    scores, step = np.linspace(-4, 4, 4001) + 1e-5, 1e-6
    for target in (-1.0, 1.0):
        y = np.full_like(scores, target)
        slopes = (loss.value(scores + step, y) - loss.value(scores - step, y)) / (2 * step)
        assert np.allclose(loss.slope(scores, y), slopes, atol=1e-7)
        curvatures = (loss.slope(scores + step, y) - loss.slope(scores - step, y)) / (2 * step)
        assert np.allclose(loss.curvature(scores, y), curvatures, atol=1e-5)
        assert np.abs(slopes).max() <= loss.steepest(4.1, 1.0) + 1e-7
        assert loss.curvature(scores, y).max() <= loss.curvature_limit
    most = max(np.abs(loss.slope(scores, np.full_like(scores, target))).max() for target in (-1.0, 1.0))
    assert most > 0.95 * min(loss.steepest(4.0, 1.0), 1.0) - 1e-9  # and no lower limit would do


@pytest.mark.parametrize("loss", ALL, ids=str)
@pytest.mark.parametrize("regularisation", [1e-4, 0.1, 10.0])
def test_newton_finds_what_a_general_optimiser_finds(loss: Loss, regularisation: float) -> None:
    x, y = records(loss)
    risk = Risk.of(loss, x, y, np.full(3, regularisation))
    (found,) = optimum(risk, 1e-10)
    assert np.linalg.norm(risk.gradient(found[None])) <= 1e-10
    oracle = optimize.minimize(
        lambda w: risk.value(w[None])[0], np.zeros(3), jac=lambda w: risk.gradient(w[None])[0], tol=1e-12
    )
    assert risk.value(found[None])[0] <= oracle.fun + 1e-12
    assert np.allclose(found, oracle.x, atol=1e-3 if regularisation < 1e-3 else 1e-5)


def test_logistic_models_are_those_of_scikit_learn() -> None:
    x, y = records(Logistic(), n=200)
    theirs = LogisticRegression(C=1 / (200 * 0.05), fit_intercept=False, tol=1e-12, max_iter=10_000).fit(x, y)
    ours = OutputPerturbation(Problem(Logistic(), 0.05), 1.0).fit(x, y)
    assert np.allclose(ours, theirs.coef_[0], atol=1e-6)


def test_many_objectives_are_each_solved_as_if_alone() -> None:
    loss = SmoothedHinge(0.1)
    x, y = records(loss)
    x, y = np.vstack([x, x]), np.append(y, y)  # equal records are joined
    linear = np.random.default_rng(1).normal(size=(7, 3)) / 10
    together = optimum(Risk.of(loss, x, y, np.full(3, 0.01), linear=linear), 1e-11)
    for one, model in zip(linear, together, strict=True):
        assert np.allclose(optimum(Risk.of(loss, x, y, np.full(3, 0.01), linear=one), 1e-11)[0], model, atol=1e-8)


def test_what_has_no_optimum_is_not_released() -> None:
    """A linear function has none."""
    with pytest.raises(NoOptimum, match=r"a larger regularisation or tolerance"):
        optimum(Risk.of(Logistic(), np.zeros((4, 1)), np.ones(4), np.zeros(1), linear=np.ones(1)), 1e-3)


# -- output perturbation ---------------------------------------------------------------------------------------------


def test_the_noise_is_the_courses() -> None:
    """σ = 2√(2 ln(1.25/δ))/(nλε) for ‖x‖ ≤ 1 and a 1-Lipschitz loss, and in proportion to both limits otherwise."""
    for n, penalty, epsilon in ((100, 0.1, 1.0), (5000, 1e-3, 0.3)):
        erm = OutputPerturbation(Problem(Logistic(), penalty), epsilon, DELTA, calibration="classic")
        course = 2 * math.sqrt(2 * math.log(1.25 / DELTA)) / (n * penalty * epsilon)
        assert erm.noise_std(n) == pytest.approx(course, rel=1e-6)
        twice = OutputPerturbation(Problem(Logistic(), penalty, data_norm=2.0), epsilon, DELTA, calibration="classic")
        assert twice.noise_std(n) == pytest.approx(2 * course, rel=1e-6)
        steep = OutputPerturbation(Problem(Huber(3.0), penalty), epsilon, DELTA, calibration="classic")
        assert steep.noise_std(n) == pytest.approx(3 * course, rel=1e-6)
        least = OutputPerturbation(Problem(Logistic(), penalty), epsilon, DELTA)
        assert least.noise_std(n) < course
        assert least.curve(n).epsilon_at(DELTA) == pytest.approx(epsilon)


@pytest.mark.parametrize("loss", ALL, ids=str)
@pytest.mark.parametrize("solver", [{}, {"tolerance": 0.01}, {"solver": "gradient-descent", "steps": 7}], ids=str)
@pytest.mark.parametrize("intercept", [0.0, 1.0])
def test_no_neighbours_are_further_apart_than_the_sensitivity(loss: Loss, solver: dict, intercept: float) -> None:
    rng = np.random.default_rng(3)
    furthest = 0.0
    for penalty in (0.01, 1.0):
        erm = OutputPerturbation(problem_of(loss, penalty, intercept=intercept), 1.0, **solver)
        for seed in range(8):
            n = int(rng.integers(1, 12))
            x, y = records(loss, n, 2, seed)
            other_x, other_y = records(loss, n, 2, 100 + seed)
            far_x, far_y = x.copy(), y.copy()
            far_x[0], far_y[0] = 5 * other_x[0], other_y[0]  # clipped
            moved = np.linalg.norm(erm.fit(x, y) - erm.fit(far_x, far_y))
            furthest = max(furthest, moved / erm.sensitivity(n))
    assert furthest <= 1.0
    assert furthest > (0.02 if isinstance(loss, Squared) else 0.05)


@pytest.mark.parametrize("loss", [SmoothedHinge(0.5), Huber(0.5)], ids=str)
@pytest.mark.parametrize("solver", [{}, {"solver": "gradient-descent", "steps": 50}], ids=["newton", "descent"])
def test_the_sensitivity_is_reached(loss: Loss, solver: dict) -> None:
    erm = OutputPerturbation(Problem(loss, 0.1), 1.0, DELTA, **solver)
    pair = lone_pair(erm.problem, 100)
    moved = np.linalg.norm(erm.fit(pair.x, pair.y) - erm.fit(*pair.replaced()))
    assert moved == pytest.approx(erm.sensitivity(100), rel=1e-6)  # half of it, as without the 2, would not do
    assert erm.epsilon_of(moved, 100) == pytest.approx(1.0, rel=1e-6)


def test_the_logistic_sensitivity_is_nearly_reached() -> None:
    erm = OutputPerturbation(Problem(Logistic(), 0.001), 1.0, DELTA)
    used = {}
    for name, pair in (("lone", lone_pair(erm.problem, 2000)), ("saturated", saturated_pair(erm.problem, 2000))):
        used[name] = np.linalg.norm(erm.fit(pair.x, pair.y) - erm.fit(*pair.replaced())) / erm.sensitivity(2000)
    assert used["lone"] == pytest.approx(0.4446, abs=1e-3)
    assert 0.94 < used["saturated"] < 1.0


def test_descent_needs_no_regularisation_and_a_solver_that_stops_early_needs_more_noise() -> None:
    free = OutputPerturbation(Problem(SmoothedHinge(0.5), 0.0), 1.0, DELTA, solver="gradient-descent", steps=20)
    pair = lone_pair(free.problem, 50)
    moved = np.linalg.norm(free.fit(pair.x, pair.y) - free.fit(*pair.replaced()))
    assert moved == pytest.approx(free.sensitivity(50)) == pytest.approx(2 * 20 / 50)
    exact, rough = (OutputPerturbation(Problem(Logistic(), 0.1), 1.0, tolerance=t) for t in (1e-10, 0.05))
    assert rough.sensitivity(50) == pytest.approx(exact.sensitivity(50) + 2 * 0.05 / 0.1, rel=1e-6)


def test_a_free_intercept_and_longer_records_go_beyond_the_sensitivity() -> None:
    erm = OutputPerturbation(Problem(Logistic(), 1.0, intercept=1.0), 1.0)
    y = np.r_[-1.0, -1.0, np.ones(8)]
    worlds = [(np.zeros((10, 1)), y), (np.zeros((10, 1)), np.r_[1.0, y[1:]])]
    free = Flaws(free_intercept=True)
    assert np.linalg.norm(np.subtract(*(erm.fit(*world) for world in worlds))) < erm.sensitivity(10)
    moved = np.linalg.norm(np.subtract(*(erm.fit(*world, free) for world in worlds)))
    assert moved == pytest.approx(math.log(9) - math.log(4), rel=1e-6)  # log odds of 9 : 1 and 8 : 2
    assert moved > 2 * erm.sensitivity(10)
    short = OutputPerturbation(Problem(SmoothedHinge(), 0.1, data_norm=0.25), 1.0)
    x = np.zeros((100, 1))
    x[0] = 1.0
    longer = [(x, np.r_[label, np.ones(99)]) for label in (1.0, -1.0)]
    apart = [
        np.linalg.norm(np.subtract(*(short.fit(*world, flaw) for world in longer))) / short.sensitivity(100)
        for flaw in (Flaws(), Flaws(unclipped=True))
    ]
    assert apart == pytest.approx([1.0, 4.0], rel=1e-6)


def test_pure_noise_has_the_density_that_it_should() -> None:
    rng = np.random.default_rng(0)
    one = long_tailed(rng.standard_normal((20_000, 2)))[:, 0]
    assert stats.kstest(one, "laplace").pvalue > 1e-3
    three = long_tailed(rng.standard_normal((20_000, 4)))
    lengths = np.linalg.norm(three, axis=1)
    assert stats.kstest(lengths, stats.gamma(3).cdf).pvalue > 1e-3
    assert stats.kstest(lengths, stats.gamma(2).cdf).pvalue < 1e-9
    assert stats.kstest(three[:, 0] / lengths, stats.uniform(-1, 2).cdf).pvalue > 1e-3  # Archimedes


def test_releases_are_the_model_and_noise() -> None:
    for delta, spread in ((DELTA, 1.0), (0.0, math.sqrt(3.0))):
        erm = OutputPerturbation(Problem(Logistic(), 0.1), 1.0, delta)
        x, y = records(Logistic(), features=2)
        drawn = erm.releases(x, y, GeneratorDraws(np.random.default_rng(0), 50_000))
        assert drawn.mean(axis=0) == pytest.approx(erm.fit(x, y), abs=5 * spread * erm.noise_std(40) / 220)
        assert drawn.std(axis=0) == pytest.approx(spread * erm.noise_std(40), rel=0.03)
    assert erm.claim == PointClaim(1.0, 0.0, Relation.REPLACE)


# -- objective perturbation: densities are known in one dimension ----------------------------------------------------


def log_density(
    erm: ObjectivePerturbation, rows: np.ndarray, targets: np.ndarray, at: np.ndarray, left: float
) -> np.ndarray:
    """Of θ: b(θ) = −n·∇(the rest of the objective), and the density of b changes by |db/dθ|."""
    n = len(rows)
    penalty = erm.problem.regularisation + erm.split(n)[1]
    scores = at[:, None] * rows.T
    pull = (erm.problem.loss.slope(scores, targets) @ rows)[:, 0] + n * penalty * at
    stretch = (erm.problem.loss.curvature(scores, targets) @ rows**2)[:, 0] + n * penalty
    beta = left / (2 * erm.problem.lipschitz())
    return math.log(beta / 2) - beta * np.abs(pull) + np.log(stretch)


def worst_loss(erm: ObjectivePerturbation, left: float | None = None) -> float:
    """The largest |ln ratio of densities| over many pairs of neighbours."""
    at, worst = np.linspace(-30, 30, 6001), 0.0
    points = [np.array([[v]]) for v in (-1.0, -0.3, 0.0, 0.3, 1.0)]
    for rest in (0, 1, 3):
        others = np.linspace(-1, 1, rest)[:, None]
        labels = np.where(np.arange(rest) % 2 == 0, 1.0, -1.0)
        for a in points:
            for b in points:
                for u, v in ((1.0, 1.0), (1.0, -1.0), (-1.0, 1.0)):
                    budget = erm.split(rest + 1)[0] if left is None else left
                    one = log_density(erm, np.vstack([a, others]), np.r_[u, labels], at, budget)
                    two = log_density(erm, np.vstack([b, others]), np.r_[v, labels], at, budget)
                    worst = max(worst, float(np.abs(one - two).max()))
    return worst


@pytest.mark.parametrize("loss", [Logistic(), SmoothedHinge(0.5), Huber(1.0)], ids=str)
@pytest.mark.parametrize(("epsilon", "penalty"), [(0.5, 0.05), (1.0, 0.1), (1.0, 2.0), (4.0, 0.2)])
def test_no_density_ratio_exceeds_epsilon(loss: Loss, epsilon: float, penalty: float) -> None:
    erm = ObjectivePerturbation(Problem(loss, penalty), epsilon)
    worst = worst_loss(erm)
    assert worst <= epsilon + 1e-9
    assert worst > 0.3 * epsilon


def test_without_the_condition_a_ratio_exceeds_epsilon() -> None:
    """All of ε for b, and nothing for how b and θ stretch each other."""
    erm = ObjectivePerturbation(Problem(SmoothedHinge(0.5), 2.0), 1.0)
    assert erm.split(1)[1] == 0
    assert worst_loss(erm, left=1.0) == pytest.approx(1.0 + math.log(1.5), abs=0.01)
    assert worst_loss(erm) <= 1.0


def test_the_condition_on_lambda_and_c() -> None:
    erm = ObjectivePerturbation(Problem(SmoothedHinge(0.5), 0.1, data_norm=2.0), 1.0)
    n, c = 1000, 1.0 * 4.0
    assert erm.split(n) == pytest.approx((1.0 - math.log(1 + 2 * c / (n * 0.1) + (c / (n * 0.1)) ** 2), 0.0))
    left, more = erm.split(10)
    assert left == 0.5
    assert more == pytest.approx(c / (10 * (math.exp(0.25) - 1)) - 0.1)
    assert 2 * math.log1p(c / (10 * (0.1 + more))) == pytest.approx(0.5)  # the other half


def test_tilted_optima_have_that_density() -> None:
    erm = ObjectivePerturbation(Problem(Logistic(), 0.5), 1.0)
    rows, targets = np.array([[1.0], [-0.4]]), np.array([1.0, 1.0])
    drawn = erm.releases(rows, targets, GeneratorDraws(np.random.default_rng(0), 20_000))[:, 0]
    grid = np.linspace(-60, 60, 200_001)
    law = np.exp(log_density(erm, rows, targets, grid, erm.split(2)[0]))
    whole = np.concatenate([[0.0], np.cumsum((law[1:] + law[:-1]) / 2 * np.diff(grid))])
    assert whole[-1] == pytest.approx(1.0, abs=1e-4)
    assert stats.kstest(drawn, lambda t: np.interp(t, grid, whole)).pvalue > 1e-3
    assert stats.kstest(1.1 * drawn, lambda t: np.interp(t, grid, whole)).pvalue < 1e-3


# -- DP-SGD ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "steps"), [(100, 100), (100, 10_000), (1000, 1), (1000, 10_000), (10_000, 4000)])
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_the_noise_of_bassily_is_enough_by_an_accountant(n: int, steps: int, epsilon: float) -> None:
    erm = LipschitzSgd(Problem(Logistic(), 0.0), epsilon, DELTA, steps)
    assert erm.accounted(n) <= epsilon
    logarithms = math.log(2 / DELTA) * math.log(2.5 * steps / (DELTA * n))
    assert erm.formula(n) == pytest.approx(16 * math.sqrt(steps * logarithms) / (n * epsilon))
    enough = steps >= (n * epsilon) ** 2 / (32 * math.log(2 / DELTA))
    assert (erm.noise_std(n) == erm.formula(n)) == enough


def test_the_courses_formula_is_not_enough_for_few_steps() -> None:
    """Its proof needs T ≥ (nε)²/(32 ln(2/δ)), of which the course says nothing."""
    for n, steps in ((1000, 1), (10_000, 4000)):
        erm = LipschitzSgd(Problem(Logistic(), 0.0), 1.0, DELTA, steps)
        assert accounted_epsilon(n, erm.formula(n) / 2, steps, DELTA) > 1.0


def test_one_step_shows_whose_gradient_it_was() -> None:
    """The same without an accountant: one step on 1000 records, exactly (amplification, Balle et al. 2018)."""
    erm, q = LipschitzSgd(Problem(Logistic(), 0.0), 1.0, DELTA, 1), 1e-3
    inner = math.log1p(math.expm1(1.0) / q)
    assert q * GaussianClaim(2 / erm.formula(1000)).delta_at(inner) > 90 * DELTA
    assert q * GaussianClaim(2 / erm.noise_std(1000)).delta_at(inner) < DELTA


def test_least_noise_by_renyi_accounting() -> None:
    erm = LipschitzSgd(Problem(Logistic(), 0.0), 3.0, DELTA, 500, calibration="rdp")
    assert 2.97 < erm.accounted(200) <= 3.0
    assert LipschitzSgd(Problem(Logistic(), 0.0, data_norm=2.0), 3.0, DELTA, 500, calibration="rdp").noise_std(
        200
    ) == pytest.approx(2 * erm.noise_std(200))
    assert accounted_epsilon(1, 1.0, 1, DELTA) >= GaussianClaim(1.0).epsilon_at(DELTA)  # one record is always drawn


def test_sgd_stays_in_the_ball_and_learns_without_noise() -> None:
    x, y = records(Logistic(), 200)
    y = np.where(x[:, 0] > 0, 1.0, -1.0)
    erm = LipschitzSgd(Problem(Logistic(), 0.0), 1.0, DELTA, 300, radius=2.0)
    noisy = erm.releases(x, y, GeneratorDraws(np.random.default_rng(0), 20))
    assert np.linalg.norm(noisy, axis=1).max() <= 2.0 + 1e-9
    small = LipschitzSgd(Problem(Logistic(), 0.0), 1e6, DELTA, 300, radius=2.0, calibration="rdp")
    clean = small.releases(x, y, GeneratorDraws(np.random.default_rng(0), 20))
    assert (np.sign(clean @ x.T) == y).mean() > 0.95


def test_every_record_is_drawn_as_often() -> None:
    x = np.eye(4)
    erm = LipschitzSgd(Problem(Huber(1.0), 0.0), 1.0, DELTA, 1, radius=10.0)
    drawn = erm.releases(x, np.ones(4), GeneratorDraws(np.random.default_rng(0), 40_000), Flaws(noise_scale=0.0))
    counts = (drawn != 0).sum(axis=0)
    assert counts.sum() == 40_000
    assert stats.chisquare(counts).pvalue > 1e-3


# -- utility, and what cannot be used --------------------------------------------------------------------------------


def test_the_terms_of_the_utility_theorem() -> None:
    size = sample_size(0.1, epsilon=0.5, delta=DELTA, features=7, norm=3.0, beta=0.01)
    noisy = 7 * math.log(700) * math.sqrt(math.log(1e5))
    assert size.learning == pytest.approx(9 * math.log(100) / 0.01)
    assert size.noise == pytest.approx(noisy * 3 / (0.1 * 0.5))
    assert size.noise_and_penalty == pytest.approx(noisy * 9 / (0.1**1.5 * 0.5))
    assert size.records == size.noise_and_penalty
    assert sample_size(0.1, epsilon=math.inf, delta=DELTA, features=7).records == pytest.approx(math.log(20) / 0.01)


LOGISTIC = Problem(Logistic(), 0.1)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: OutputPerturbation(Problem(Logistic(), 0.0), 1.0), "regularisation = 0.0: .*no finite sensitivity"),
        (lambda: Problem(Logistic(), -1.0), "regularisation = -1.0"),
        (lambda: Problem(Logistic(), math.nan), "regularisation = nan"),
        (lambda: Problem(Logistic(), 0.1, data_norm=0.0), "data_norm = 0.0: .*known beforehand"),
        (lambda: Problem(Logistic(), 0.1, data_norm=-1.0), "data_norm = -1.0"),
        (lambda: Problem(Logistic(), 0.1, data_norm=math.inf), "data_norm = inf"),
        (lambda: Problem("logistic", 0.1), "loss = 'logistic'"),  # type: ignore[arg-type]
        (lambda: OutputPerturbation(LOGISTIC, 0.0), "epsilon = 0.0"),
        (lambda: OutputPerturbation(LOGISTIC, math.nan), "epsilon = nan"),
        (lambda: OutputPerturbation(LOGISTIC, 1.0, 1.0), "delta = 1.0"),
        (lambda: OutputPerturbation(LOGISTIC, 10.0, DELTA, "classic"), "keep only 10.39; use calibration = 'analytic'"),
        (lambda: OutputPerturbation(LOGISTIC, 1.0, DELTA, "clasic"), "did you mean 'classic'"),
        (lambda: OutputPerturbation(LOGISTIC, 1.0, tolerance=0.0), "tolerance = 0.0"),
        (lambda: OutputPerturbation(LOGISTIC, 1.0, solver="gradient-descent"), "steps is missing"),
        (lambda: OutputPerturbation(Problem(Squared(), 0.1), 1.0), "loss = 'squared': .*state target_norm"),
        (lambda: ObjectivePerturbation(Problem(Squared(), 0.1, target_norm=1.0), 1.0), "loss = 'squared': .*use huber"),
        (lambda: ObjectivePerturbation(LOGISTIC, 1.0, DELTA), "delta = 1e-05: expected 0"),
        (lambda: ObjectivePerturbation(Problem(Logistic(), 0.0), 1.0), "regularisation = 0.0"),
        (lambda: LipschitzSgd(LOGISTIC, 2.0, DELTA), "epsilon = 2.0: expected at most 1.*'rdp'"),
        (lambda: LipschitzSgd(LOGISTIC, 1.0, 0.0), "delta = 0.0"),
        (lambda: LipschitzSgd(LOGISTIC, 1.0, DELTA, radius=0.0), "radius = 0.0"),
        (lambda: LipschitzSgd(LOGISTIC, 1.0, DELTA, steps=0), "steps = 0"),
        (lambda: LipschitzSgd(LOGISTIC, 1.0, 0.5, steps=1).noise_std(10**6), "steps = 1: expected at least"),
        (lambda: OutputPerturbation(LOGISTIC, 1.0).fit([[math.nan]], [1.0]), "x = 'NaN or infinity'"),
        (lambda: OutputPerturbation(LOGISTIC, 1.0).fit([[1.0]], [0.0]), "y = 0.0: expected labels −1 and 1"),
        (lambda: OutputPerturbation(LOGISTIC, 1.0).fit([1.0], [1.0]), "x = .*a table"),
        (lambda: OutputPerturbation(LOGISTIC, 1.0).fit([[1.0]], [1.0, 1.0]), "y = .*one target for each of 1 rows"),
        (lambda: OutputPerturbation(LOGISTIC, 1.0).sensitivity(0), "records = 0"),
        (lambda: SmoothedHinge(0.0), "half_width = 0.0"),
        (lambda: Huber(-1.0), "threshold = -1.0"),
        (lambda: loss_named("huber", classifies=True, corner=1.0), "loss = 'huber': expected one of logistic"),
        (lambda: loss_named("huber", classifies=False, corner=0.0), "corner = 0.0"),
        (lambda: saturated_pair(Problem(Huber(), 0.1), 10), "use lone_pair"),
        (lambda: sample_size(0.0, epsilon=1.0, delta=DELTA, features=1), "gamma = 0.0"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(make, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_huge_and_tiny_records_are_clipped_without_overflow() -> None:
    rows, _ = Problem(Logistic(), 0.1, data_norm=2.0).bounded([[1e300, 1e300], [1e-300, 0.0]], [1.0, -1.0])
    assert np.linalg.norm(rows[0]) == pytest.approx(2.0)
    assert rows[1].tolist() == [1e-300, 0.0]
    assert np.isfinite(special.expit(rows)).all()
    _, labels = Problem(Logistic(), 0.1, target_norm=0.5).bounded([[1.0]], [1.0])
    assert labels.tolist() == [1.0]  # targets of classes are no numbers
    _, targets = Problem(Squared(), 0.1, target_norm=0.5).bounded([[1.0], [1.0]], [7.0, -0.25])
    assert targets.tolist() == [0.5, -0.25]
