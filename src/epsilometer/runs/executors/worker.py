"""What a worker process of the local executor does; it knows its driver by a pipe."""

from __future__ import annotations

import os
import pickle
import threading
import traceback
from contextlib import suppress
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from typing import Any

from epsilometer.errors import EpsilometerError
from epsilometer.runs.executors.executor import play_group

STARTED, READY = "started", "ready"


def work(connection: Connection) -> None:
    """Ask for the job, then play groups until the driver is gone, which is no error of ours however it ended."""
    threading.Thread(target=_end_with_driver, daemon=True).start()
    with suppress(EOFError, ConnectionError):
        _work(connection)


def _work(connection: Connection) -> None:
    connection.send(STARTED)
    job = connection.recv_bytes()
    try:
        opened = pickle.loads(job).opened()  # from the driver's own pipe, never from a disk
    except Exception as error:
        connection.send(told(error))
        return
    connection.send(READY)
    while True:
        trials = connection.recv()
        try:
            outcome: Any = play_group(opened, trials)
        except Exception as error:
            outcome = told(error)
        connection.send(outcome)


def told(error: Exception) -> Exception:
    """An error that the driver can read: its own kind, or what was wrong and where."""
    if isinstance(error, EpsilometerError):
        return error
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return RuntimeError(f"{type(error).__name__}: {error}, {os.path.basename(frame.filename)} line {frame.lineno}")


def _end_with_driver() -> None:
    """A driver that was killed cannot stop its workers, which may be in the middle of a long training."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
