"""Trials on a Ray cluster. What a lost node was doing is done again; trials are pure, so nothing changes."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, ClassVar

from epsilometer import validate
from epsilometer.errors import EpsilometerError, InvalidInput
from epsilometer.runs.executors.executor import Job, Task, next_task, play_group
from epsilometer.runs.executors.own_ray import private_ray
from epsilometer.runs.executors.patience import Patience, ending_this_process_after, exceeded
from epsilometer.runs.groups import Groups, Played
from epsilometer.runs.trials import Trial

_AHEAD = 2  # groups for each core: one that is played and one that waits
_GRACE, _MORE = 1.5, 1.0  # times the limit, and seconds: what a training can say of itself comes first


class OnRay:
    """Each group is a Ray task of one core. Without an `address`, Ray is started on this machine."""

    name: ClassVar[str] = "ray"

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        self._address = address
        self._workers = None if workers is None else validate.whole("workers", workers, least=1, most=100_000)

    def play(self, job: Job, groups: Groups) -> Generator[Played]:
        ray = _ray()
        ours = not ray.is_initialized()
        waiting: dict[Any, _Sent] = {}
        with private_ray(ray) if ours and self._address is None else nullcontext():
            if ours:
                self._start(ray)
            try:
                yield from self._play(ray, job, groups, waiting)
            finally:
                if ours:
                    ray.shutdown()  # ends unfinished tasks, too; cancelling them first can fail a check in Ray 2.60
                else:
                    for unfinished in waiting:
                        ray.cancel(unfinished)  # not by force, which may end this process

    def _start(self, ray: Any) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # an audit tells nobody
        quiet = {"log_to_driver": False, "logging_level": "ERROR"}
        try:
            with _own_signal_handlers():
                if self._address is None:
                    ray.init("local", num_cpus=self._workers, include_dashboard=False, **quiet)
                else:
                    _knock(ray, self._address)
                    ray.init(self._address, **quiet)
        except (OSError, RuntimeError, ValueError) as error:
            raise InvalidInput(
                "address", self._address, f"a Ray cluster that answers ({' '.join(str(error).split())[:200]})",
                "ray status tells; a cluster with a token needs RAY_AUTH_MODE=token here too",
            ) from None  # fmt: skip

    def _play(self, ray: Any, job: Job, groups: Groups, waiting: dict[Any, _Sent]) -> Iterator[Played]:
        there, key = ray.put(job), job.fingerprint
        remote = ray.remote(num_cpus=1, max_retries=0)(_play_task)  # retries are ours, trial by trial
        retries: deque[Task] = deque()
        patience = Patience(job.work.safeguards)
        while True:
            while len(waiting) < _AHEAD * self._cores(ray) and (task := next_task(retries, groups)) is not None:
                limit = patience.limit(len(task.trials))
                ends_after = _GRACE * limit + _MORE
                waiting[remote.remote(there, key, task.trials, ends_after)] = _Sent(task, limit, ends_after)
            if not waiting:
                return
            (done, *_), _ = ray.wait(list(waiting), num_returns=1)
            sent = waiting.pop(done)
            try:
                played = ray.get(done)
            except ray.exceptions.RayTaskError as error:  # raised by the trial
                if isinstance(error.cause, EpsilometerError):
                    raise error.cause from None
                retries.extend(sent.task.again(f"{type(error.cause).__name__}: {error.cause}"))
            except ray.exceptions.RayError as error:  # its process or its node is gone
                retries.extend(sent.task.again(sent.end or type(error).__name__))
            else:
                patience.learn(played)
                yield played

    def _cores(self, ray: Any) -> int:
        """Of the cluster as it is now: nodes come and go."""
        cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
        return cores if self._workers is None else min(cores, self._workers)


class _Sent:
    """A task that Ray has, and what it was told: tasks may wait for a core, so only their process knows the time."""

    def __init__(self, task: Task, limit: float, ends_after: float) -> None:
        self.task = task
        self._limit, self._ends_after, self._since = limit, ends_after, time.monotonic()

    @property
    def end(self) -> str:
        """Why its process is gone, if it was given enough time to be late."""
        return exceeded(self._limit) if time.monotonic() - self._since >= self._ends_after else ""


def _play_task(job: Job, key: str, trials: Sequence[Trial], ends_after: float) -> Played:
    opened = _opened(key, job)
    with ending_this_process_after(ends_after):
        return play_group(opened, trials)


_JOBS: dict[str, Job] = {}  # of this worker process: a job is opened, and its game crafted, once


def _opened(key: str, job: Job) -> Job:
    if key not in _JOBS:
        _JOBS.clear()
        _JOBS[key] = job.opened()
    return _JOBS[key]


def _knock(ray: Any, address: str) -> None:
    """Whether anybody answers at all: Ray itself would try for minutes, or look for a cluster of yesterday."""
    if address == "auto":
        address = ray._private.services.canonicalize_bootstrap_address(address)
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()


@contextmanager
def _own_signal_handlers() -> Iterator[None]:
    """Keep the driver's: Ray puts one for SIGTERM in their place that ends the process, whatever it is doing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise InvalidInput(
            "executor", "ray", "Ray to be installed", "pip install 'epsilometer[ray]', or use --executor local"
        ) from None
    return ray
