"""Privacy of single records: whose ε is it?

Each number here is one of three things. The *worst case* holds for every record, and is what one may publish. A
guarantee *in expectation over trainings* (Thudi et al. 2024, rules sum and mean) is for one record among these data.
*Individual accounting* (Yu et al. 2023) says what one recorded training has cost a record, and promises nothing about
another training. All but the worst case are private themselves.
"""

from epsilometer.instances.batches import draw_batches
from epsilometer.instances.budgets import certified_epsilons, trainings_wanted
from epsilometer.instances.composition import DIRECTIONS, Holder, at_worst, expected
from epsilometer.instances.individual import individual_epsilons
from epsilometer.instances.leakage import Leakage, ends, measure
from epsilometer.instances.mean_rule import Batches, StepBound, mean_rule, paired, sensitivity_distribution
from epsilometer.instances.meaning import most_accurate, most_memorised, most_reconstructed, unlearned_for_free
from epsilometer.instances.moments import StepMoments
from epsilometer.instances.monte_carlo import log_mean_limit
from epsilometer.instances.paths import costliest_epsilons, expected_epsilons, expected_moments
from epsilometer.instances.plan import RULES, USUAL_RECORDS, InstancePlan, chosen_records, own_engine
from epsilometer.instances.result import WARNING, Agreement, InstanceResult, step_by_step
from epsilometer.instances.result import judge as judge_instances
from epsilometer.instances.result import run as run_instances
from epsilometer.instances.watchers import ClippedNorms, MeanUpdates

__all__ = [
    "DIRECTIONS",
    "RULES",
    "USUAL_RECORDS",
    "WARNING",
    "Agreement",
    "Batches",
    "ClippedNorms",
    "Holder",
    "InstancePlan",
    "InstanceResult",
    "Leakage",
    "MeanUpdates",
    "StepBound",
    "StepMoments",
    "at_worst",
    "certified_epsilons",
    "chosen_records",
    "draw_batches",
    "ends",
    "costliest_epsilons",
    "expected",
    "expected_epsilons",
    "expected_moments",
    "individual_epsilons",
    "judge_instances",
    "log_mean_limit",
    "mean_rule",
    "measure",
    "most_accurate",
    "most_memorised",
    "most_reconstructed",
    "own_engine",
    "paired",
    "run_instances",
    "sensitivity_distribution",
    "step_by_step",
    "trainings_wanted",
    "unlearned_for_free",
]
