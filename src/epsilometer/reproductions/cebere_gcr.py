"""GC-R of Cebere, Bellet & Papernot (2025): a crafted gradient in the hidden-state model."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from epsilometer.adversaries import HiddenState
from epsilometer.auditing import Plan, claim_curve, run
from epsilometer.bounds import attack_strength
from epsilometer.claims import GaussianClaim
from epsilometer.data import Dataset
from epsilometer.figures import Figure, Lines, Series, panels
from epsilometer.reproductions.reproduction import Cell, Reproduction, Row, Session, grid
from epsilometer.subjects import DpSgdTraining
from epsilometer.training import Recipe

DELTA, STEPS = 1e-5, 250
EPSILONS = ("1", "4", "8", "12", "24")


def tumours() -> Dataset:
    """Eight features of sklearn's embedded breast-cancer data, standardised: a stand-in for the paper's Housing."""
    from sklearn.datasets import load_breast_cancer

    x, y = load_breast_cancer(return_X_y=True)
    x = x[:, :8]
    return Dataset("breast-cancer", ((x - x.mean(axis=0)) / x.std(axis=0)).astype(np.float32), y, 2)


def _measure(cell: Cell, session: Session) -> Row:
    data, mu = tumours(), GaussianClaim.through(float(cell["eps"]), DELTA).mu
    recipe = Recipe(
        records=len(data),
        sample_rate=1.0,
        sampling="full",
        steps=STEPS,
        noise_multiplier=math.sqrt(STEPS) / mu,
        learning_rate=float(cell["lr"]),
        model="mlp",
        hidden=(6,),
    )
    subject = DpSgdTraining(recipe, data)
    plan = Plan(subject, claim_curve(recipe), DELTA, HiddenState(), session.trials, seed=session.seed)
    result = run(plan, session.progress, store=session.store, executor=session.executor)
    seen = result.evidence.as_pairs()
    assert result.family_bound is not None
    low, high = (attack_strength(seen, level) for level in (0.975, 0.025))
    if seen.in_scores.min() > seen.out_scores.max():
        high = math.inf
    return Row(
        cell=cell,
        paper=None,
        measured=result.family_bound.epsilon,
        details={
            "theory": result.upper_bound and result.upper_bound.epsilon,
            "certified": result.lower_bound.epsilon,
            "mu_theory": mu,
            "mu_interval": f"{low:.3f} to {high:.3f}",
            "eps_interval": f"{_epsilon(low):.3g} to {_epsilon(high):.3g}",
            "agrees": low <= mu <= high,
            "noise_multiplier": recipe.noise_multiplier,
            "trials": plan.planned_trials,
            "delta": DELTA,
            "confidence": plan.confidence,
            "seed": session.seed,
            "plan_sha256": plan.fingerprint(),
            "seconds": round(result.seconds, 1),
        },
    )


def _epsilon(mu: float) -> float:
    return GaussianClaim(mu).epsilon_at(DELTA)


def _draw(rows: Sequence[Row]) -> Figure:
    series = [
        Series(
            f"learning rate {rate}",
            tuple((r.cell["eps"], r.measured) for r in rows if r.cell["lr"] == rate),
            at_least=True,
        )
        for rate in dict.fromkeys(row.cell["lr"] for row in rows)
    ]
    theory = Series("theory", tuple((eps, float(eps)) for eps in EPSILONS), reference=True)
    chart = Lines("68 parameters, T = 250", EPSILONS, (*series, theory))
    return panels("GC-R", [chart], "ε", "ε, family, 95 %")


GCR = Reproduction(
    name="cebere-gcr",
    summary="a crafted gradient seen through the final model only (Cebere et al. 2025, GC-R)",
    about="The paper finds that theory is nearly reached. measured is what follows from the "
    "trials (95 %) if the training is Gaussian DP, which without subsampling it is. agrees says whether theory's μ "
    "lies in the 95 % interval of the attack's (from the area under its curve, a normal approximation). The data stand "
    "in for the paper's Housing. At a larger learning rate the training forgets its first steps, and hides them.",
    trials=5000,
    cells=grid(lr=("0.005", "1"), eps=EPSILONS),
    measure=_measure,
    draw=_draw,
    shown=("theory", "certified", "mu_theory", "mu_interval", "eps_interval", "agrees"),
    at_least=("measured", "certified"),
)
