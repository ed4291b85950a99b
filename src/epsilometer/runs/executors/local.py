"""Trials in processes on this machine. One that dies is replaced, and what it was doing is done again."""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, ClassVar, cast

from epsilometer import validate
from epsilometer.errors import EpsilometerError, InvalidInput
from epsilometer.isolation import Isolation
from epsilometer.runs.executors.executor import TRIES, Job, Task, TrialsFailed, available_cores, next_task
from epsilometer.runs.executors.patience import Patience, exceeded
from epsilometer.runs.executors.worker import READY, STARTED, work
from epsilometer.runs.groups import Groups, Played

UNGUARDED = 71  # exit code of a worker whose script has no guard
_LOOK = 1.0  # seconds between looks at the clock
_LOG = logging.getLogger("epsilometer")


class Local:
    """Spawned processes, one thread each, as many as there are cores unless `workers` says otherwise."""

    name: ClassVar[str] = "local"

    def __init__(self, workers: int | None = None) -> None:
        self.workers = available_cores() if workers is None else validate.whole("workers", workers, least=1, most=1024)

    def play(self, job: Job, groups: Groups) -> Generator[Played]:
        refuse_to_start_again()
        pool = _Pool(packed(job), self.workers, groups, job.work.safeguards)
        try:
            yield from pool.play()
        finally:
            pool.stop()


def refuse_to_start_again() -> None:
    """End a worker that imports the driver's script, and would start the audit once more."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        os._exit(UNGUARDED)


class _Worker:
    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.process: SpawnProcess = context.Process(target=work, args=(other,), daemon=True)
        try:
            with _without_interrupts():
                self.process.start()
        except KeyboardInterrupt:
            self.stop()
            raise
        other.close()
        self.ready = False
        self.task: Task | None = None
        self.since = time.monotonic()  # it was given something to do, or started

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()

    @property
    def end(self) -> str:
        """How the process ended."""
        self.process.join(5)
        code = self.process.exitcode
        if code is not None and code < 0:
            with suppress(ValueError):
                return f"its process was ended by {signal.Signals(-code).name}"
        return f"its process ended with code {code}"


class _Pool:
    """Workers and what they are doing."""

    def __init__(self, job: bytes, workers: int, groups: Groups, safeguards: Isolation) -> None:
        self._job, self._groups, self._safeguards = job, groups, safeguards
        self._patience = Patience(safeguards)
        self._retries: deque[Task] = deque()
        self._failed_starts = 0
        self._task = next_task(self._retries, self._groups)  # before any process is started: there may be nothing to do
        self._wanted = workers if self._task else 0
        self._workers: list[_Worker] = []

    def play(self) -> Iterator[Played]:
        while len(self._workers) < self._wanted:
            self._workers.append(_Worker())
        while self._hand_out():
            self._end_late_ones()
            for connection in wait([worker.connection for worker in self._workers], timeout=_LOOK):
                worker = next(w for w in self._workers if w.connection is connection)
                message = _received(worker.connection)
                if message is None:
                    self._replace(worker)
                    continue
                played = self._understand(worker, message)
                if played is not None:
                    self._patience.learn(played)
                    if self._safeguards.fresh_process:
                        self._exchange(worker)
                    self._hand_out()  # the worker goes on while its results are stored
                    yield played

    def stop(self) -> None:
        for worker in self._workers:
            worker.stop()

    def _hand_out(self) -> bool:
        """Give idle workers something to do; whether anything is being done or waits."""
        for worker in self._workers:
            if worker.ready and worker.task is None and self._task is not None:
                try:
                    worker.connection.send(self._task.trials)
                except OSError:  # it died while idle, as `play` will find out
                    continue
                worker.task, self._task = self._task, next_task(self._retries, self._groups)
                worker.since = time.monotonic()
        return self._task is not None or any(worker.task is not None for worker in self._workers)

    def _understand(self, worker: _Worker, message: Any) -> Played | None:
        if message == STARTED:  # not before: a job of any size would wait in the pipe of a process that never reads it
            with suppress(OSError):
                worker.connection.send_bytes(self._job)
            return None
        if message == READY:
            worker.ready, self._failed_starts = True, 0
            return None
        if isinstance(message, EpsilometerError):  # such as a training that diverges: it would do so again
            raise message
        if not worker.ready:
            raise _cannot_send(message)
        task, worker.task = worker.task, None
        assert task is not None
        if isinstance(message, Exception):
            self._retry(task, str(message))
            return None
        return cast(Played, message)

    def _end_late_ones(self) -> None:
        """A training that hangs, or a process that somebody stopped, is not waited for without end."""
        for worker in list(self._workers):
            if worker.task is None:
                continue
            limit = self._patience.limit(len(worker.task.trials))
            if time.monotonic() - worker.since > limit:
                self._replace(worker, exceeded(limit))

    def _exchange(self, worker: _Worker) -> None:
        worker.stop()
        self._workers[self._workers.index(worker)] = _Worker()

    def _replace(self, worker: _Worker, why: str | None = None) -> None:
        end = worker.end if why is None else why
        worker.stop()
        if worker.task is not None:
            _LOG.warning("a worker is replaced, and its trials are played again: %s", end)
            self._retry(worker.task, end)
        elif not worker.ready:
            self._failed_starts += 1
            if worker.process.exitcode == UNGUARDED:
                raise TrialsFailed(
                    "worker processes import your script, which would start the audit again: call run(…) under "
                    "if __name__ == '__main__':, or use the inline executor"
                )
            if self._failed_starts >= TRIES:
                raise TrialsFailed(f"worker processes cannot be started ({end}); use the inline executor")
        self._workers[self._workers.index(worker)] = _Worker()

    def _retry(self, task: Task, why: str) -> None:
        self._retries.extend(task.again(why))
        if self._task is None:
            self._task = next_task(self._retries, self._groups)


def _received(connection: Connection) -> Any:
    """What a worker says, or nothing if it is gone."""
    with suppress(EOFError, OSError):
        return connection.recv()
    return None


def packed(job: Job) -> bytes:
    """The job in the form that a pipe carries; nothing of this kind is ever read from a disk."""
    try:
        return pickle.dumps(job)
    except Exception as error:
        raise _cannot_send(error) from None


def _cannot_send(error: Exception) -> InvalidInput:
    return InvalidInput(
        "executor", "local", f"a plan that can be sent to another process ({error})",
        "define its model and adversary in a module that can be imported, or use the inline executor",
    )  # fmt: skip


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Children that start here never see Ctrl-C: it goes to every process of a terminal, and the driver decides.

    A blocked signal stays blocked in a child. In this process another thread may get it; then it is kept for later, so
    that no child is left half started. So is SIGTERM, where it has a handler; workers may well be ended by it.
    """
    if not hasattr(signal, "pthread_sigmask") or threading.current_thread() is not threading.main_thread():
        yield
        return
    resource_tracker.ensure_running()  # which every start asks for, and which unblocks the signal
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number, handler in before.items():
        if callable(handler):
            signal.signal(number, lambda number, _: came.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        signal.raise_signal(came[0])
