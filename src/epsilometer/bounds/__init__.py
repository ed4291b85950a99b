"""Evidence → lower bounds on ε. numpy and scipy only; one method a file."""

from epsilometer.bounds.bayesian import bayesian
from epsilometer.bounds.by_name import default_method, method_as_dict, method_named, mirrored
from epsilometer.bounds.catalogue import compare_bounds
from epsilometer.bounds.clopper_pearson import ClopperPearson, clopper_pearson
from epsilometer.bounds.cosine import Cosines, cosine_canaries
from epsilometer.bounds.curve import largest_noise_multiplier, refute_curve
from epsilometer.bounds.eprocess import EProcess, eprocess
from epsilometer.bounds.exact_rank import ExactRank, exact_rank
from epsilometer.bounds.gaussian import StrengthLimit, gaussian_bound, gaussian_strength_limit, refute_step
from epsilometer.bounds.method import Method, Sequential, is_sequential
from epsilometer.bounds.methods import METHODS
from epsilometer.bounds.named_method import NamedMethod
from epsilometer.bounds.noise_law import NoiseLaw
from epsilometer.bounds.one_run import Threshold, one_run
from epsilometer.bounds.one_run_fdp import one_run_fdp, refute_one_run
from epsilometer.bounds.one_run_method import OneRunPoint
from epsilometer.bounds.power import blind_spot, eps_opt, refutation_power, trials_to_refute
from epsilometer.bounds.rates import epsilon_from_rates, gaussian_strength, upper_limit
from epsilometer.bounds.ratio import bailey, katz_log
from epsilometer.bounds.result import (
    ClaimTest,
    ErrorPair,
    Guesses,
    Kind,
    LowerBound,
    NoiseLimit,
    Proof,
    RankSumTest,
    RankTest,
)
from epsilometer.bounds.several_runs import pool_runs
from epsilometer.bounds.simulated_audits import draw_worlds
from epsilometer.bounds.simultaneous import Simultaneous
from epsilometer.bounds.step_process import (
    MOST_CANARIES,
    StepProcess,
    StepWealth,
    bet_on_steps,
    share_refuted_in_steps,
)
from epsilometer.bounds.strength import attack_strength, attacks_of_strength
from epsilometer.bounds.thresholds import BestOnSame, Fixed, Split, ThresholdStrategy, UnionBound
from epsilometer.deprecated import moved

__getattr__ = moved(__name__, {"BOUNDS": "epsilometer.bounds:METHODS"})

__all__ = [
    "METHODS",
    "MOST_CANARIES",
    "BestOnSame",
    "ClaimTest",
    "ClopperPearson",
    "Cosines",
    "EProcess",
    "ErrorPair",
    "ExactRank",
    "Fixed",
    "Guesses",
    "Kind",
    "LowerBound",
    "Method",
    "NamedMethod",
    "NoiseLimit",
    "NoiseLaw",
    "OneRunPoint",
    "Proof",
    "RankSumTest",
    "RankTest",
    "Sequential",
    "Simultaneous",
    "Split",
    "StepProcess",
    "StepWealth",
    "StrengthLimit",
    "Threshold",
    "ThresholdStrategy",
    "UnionBound",
    "attack_strength",
    "attacks_of_strength",
    "bailey",
    "bayesian",
    "bet_on_steps",
    "blind_spot",
    "clopper_pearson",
    "compare_bounds",
    "cosine_canaries",
    "default_method",
    "draw_worlds",
    "eprocess",
    "eps_opt",
    "epsilon_from_rates",
    "exact_rank",
    "gaussian_bound",
    "gaussian_strength",
    "gaussian_strength_limit",
    "is_sequential",
    "katz_log",
    "largest_noise_multiplier",
    "method_as_dict",
    "method_named",
    "mirrored",
    "one_run",
    "one_run_fdp",
    "pool_runs",
    "refutation_power",
    "refute_curve",
    "refute_one_run",
    "refute_step",
    "share_refuted_in_steps",
    "trials_to_refute",
    "upper_limit",
]
