"""Who plays trials: this process, processes on this machine, or a Ray cluster. Results are the same."""

from epsilometer.errors import InvalidInput, unknown_name
from epsilometer.runs.executors.auto import Auto
from epsilometer.runs.executors.executor import Executor, TrialsFailed
from epsilometer.runs.executors.inline import Inline
from epsilometer.runs.executors.local import Local
from epsilometer.runs.executors.on_ray import OnRay

EXECUTORS = {
    "auto": "this process, and processes on this machine as soon as they pay",
    "inline": "this process",
    "local": "processes on this machine",
    "ray": "a Ray cluster, or Ray on this machine (needs the extra: pip install 'epsilometer[ray]')",
}


def executor_named(name: str, workers: int | None = None, address: str | None = None) -> Executor:
    """The executor of that name; `workers` is the number of processes, `address` that of a Ray cluster."""
    if name not in EXECUTORS:
        raise unknown_name("executor", name, EXECUTORS)
    if address is not None and name != "ray":
        raise InvalidInput("address", address, "an address only with a Ray cluster", "add --executor ray")
    if name == "inline":
        if workers not in (None, 1):
            raise InvalidInput("workers", workers, "1 with --executor inline", "use --executor local")
        return Inline()
    if name == "ray":
        return OnRay(address, workers)
    return Local(workers) if name == "local" else Auto(workers)


__all__ = ["EXECUTORS", "Auto", "Executor", "Inline", "Local", "OnRay", "TrialsFailed", "executor_named"]
