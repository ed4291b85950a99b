"""Every mechanism by name, the right ones and those that are broken on purpose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from epsilometer.errors import InvalidInput
from epsilometer.mechanisms.above_threshold import AboveThreshold
from epsilometer.mechanisms.broken import (
    FloatingLaplace,
    HalfLaplace,
    HalfPca,
    NoisyMaxScale,
    NoisyMaxValue,
    PricesFromBids,
)
from epsilometer.mechanisms.broken_sparse_vector import (
    NoAnswerNoise,
    NoEnd,
    NoiseWithoutCount,
    NoThresholdNoise,
    SaysAnswers,
)
from epsilometer.mechanisms.exponential import Exponential
from epsilometer.mechanisms.gaussian import Gaussian
from epsilometer.mechanisms.input_perturbation import InputPerturbation
from epsilometer.mechanisms.laplace import Laplace
from epsilometer.mechanisms.mechanism import Mechanism, positive_epsilon
from epsilometer.mechanisms.noisy_max import ReportNoisyMax
from epsilometer.mechanisms.pca import DpPca
from epsilometer.mechanisms.randomized_response import RandomizedResponse
from epsilometer.mechanisms.sensitivity import Sensitivity
from epsilometer.mechanisms.student import Student
from epsilometer.registry import Registry, instance_of

Make = Callable[[float, float, float], Mechanism]  # of ε, δ and the sensitivity


@dataclass(frozen=True)
class NamedMechanism:
    """A mechanism that can be asked for by name; `fault` says what is wrong with it, if it is so on purpose."""

    name: str
    summary: str
    make: Make
    entries: int = 1  # of the values that an audit tries, if nobody gives any
    fault: str = ""


def _of_scores(kind: type[Exponential | ReportNoisyMax | AboveThreshold]) -> Make:
    return lambda epsilon, _, amount: kind(epsilon, Sensitivity(amount, "linf"))


def _of_number(kind: type[Laplace]) -> Make:
    return lambda epsilon, _, amount: kind(epsilon, Sensitivity(amount, "l1"))


def _until(kind: type[AboveThreshold], count: int) -> Make:
    return lambda epsilon, _, amount: kind(epsilon, Sensitivity(amount, "linf"), count=count)


def _records(epsilon: float, delta: float, amount: float) -> Mechanism:
    noise = Laplace(epsilon, Sensitivity(amount)) if delta == 0 else Gaussian.analytic(epsilon, delta, amount)
    return InputPerturbation(noise, 0.0, amount)


def _first_component(kind: type[DpPca]) -> Make:
    return lambda epsilon, delta, _: kind(1, Gaussian.analytic(epsilon, delta).noise_std)


_OWN = (
    NamedMechanism("laplace", "Laplace noise of scale Δ/ε", _of_number(Laplace)),
    NamedMechanism("gaussian", "Gaussian noise, analytic calibration", Gaussian.analytic),
    NamedMechanism("gaussian-classic", "Gaussian noise, √(2 ln(1.25/δ))Δ/ε", Gaussian.classic),
    NamedMechanism("student", "Student-t noise (ν = 5), ε at δ = 0", lambda e, _, amount: Student.pure(e, amount)),
    NamedMechanism(
        "gaussian-pca", "the first principal component, noise on the covariance", _first_component(DpPca), 3
    ),
    NamedMechanism("exponential", "the exponential mechanism over scores", _of_scores(Exponential), 2),
    NamedMechanism("randomized-response", "a true answer, or another", lambda e, _, __: RandomizedResponse(e)),
    NamedMechanism("noisy-max", "the place of the largest noisy score", _of_scores(ReportNoisyMax), 5),
    NamedMechanism("above-threshold", "sparse vector: which numbers are above", _of_scores(AboveThreshold), 10),
    NamedMechanism("input-perturbation", "noise on every record", _records, 3),
    NamedMechanism("laplace-half", "", _of_number(HalfLaplace), 1, "half of the noise"),
    NamedMechanism("gaussian-pca-half", "", _first_component(HalfPca), 3, "half of the noise on the covariance"),
    NamedMechanism("laplace-float", "", _of_number(FloatingLaplace), 1, "inversion in floating point (Mironov 2012)"),
    NamedMechanism("noisy-max-value", "", _of_scores(NoisyMaxValue), 20, "the noisy score itself is said"),
    NamedMechanism("noisy-max-scale", "", _of_scores(NoisyMaxScale), 2, "noise for monotonic scores"),
    NamedMechanism(
        "exponential-data-outputs",
        "",
        lambda e, _, __: PricesFromBids(e),
        4,
        "the set of outputs depends on the data",
    ),
    NamedMechanism("sparse-vector-3", "", _of_scores(SaysAnswers), 6, "says the noisy numbers (Lyu et al. 2017, 3)"),
    NamedMechanism("sparse-vector-4", "", _until(NoiseWithoutCount, 3), 6, "noise does not grow with the count (4)"),
    NamedMechanism("sparse-vector-5", "", _of_scores(NoAnswerNoise), 10, "no noise on the numbers (5)"),
    NamedMechanism("sparse-vector-6", "", _of_scores(NoEnd), 10, "never ends (6)"),
    NamedMechanism("sparse-vector-bare", "", _of_scores(NoThresholdNoise), 8, "no noise on the threshold"),
)


MECHANISMS: Registry[NamedMechanism] = Registry(
    "mechanisms",
    {one.name: one for one in _OWN},
    argument="mechanism",
    expected="a NamedMechanism whose name is {name!r}",
    accept=instance_of(NamedMechanism),
)


def mechanism_named(name: str, epsilon: float, delta: float = 0.0, sensitivity: float = 1.0) -> Mechanism:
    """The mechanism of that name, made for (ε, δ) and a sensitivity.

    >>> mechanism_named("laplace", epsilon=0.5).describe()
    'Laplace mechanism (ε = 0.5, scale 2)'
    """
    known = MECHANISMS[name]
    positive_epsilon(epsilon)
    if delta == 0 and name.startswith("gaussian"):
        raise InvalidInput("delta", delta, "above 0: Gaussian noise has no ε at δ = 0", "a common choice is 1e-5")
    return known.make(epsilon, delta, sensitivity)
