"""One answer from a process of its own: foreign code cannot end the driver, or leave anything behind in it."""

from __future__ import annotations

import logging
import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from epsilometer.errors import EpsilometerError
from epsilometer.isolation import LATE, Isolation
from epsilometer.runs.executors.executor import TrialsFailed
from epsilometer.runs.executors.local import UNGUARDED, refuse_to_start_again
from epsilometer.runs.executors.worker import told
from epsilometer.runs.trials import one_thread

Answer = TypeVar("Answer")

_LOG = logging.getLogger("epsilometer")
_SILENCE = 60.0  # seconds after which whoever waits is told for what


def isolated(safeguards: Isolation, what: str, function: Callable[..., Answer], *arguments: Any) -> Answer:
    """What `function(*arguments)` gives: here, or in a process of its own where foreign code is played that travels."""
    if safeguards.foreign and safeguards.travels:
        return in_child(what, function, *arguments)
    return function(*arguments)


def in_child(what: str, function: Callable[..., Answer], *arguments: Any) -> Answer:
    """What `function(*arguments)` gives in a fresh process; errors are those that it raised there."""
    refuse_to_start_again()
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    child = context.Process(target=_answer, args=(there, function, arguments), daemon=True)
    child.start()
    there.close()
    try:
        if not here.poll(_SILENCE):
            _LOG.warning("%s has taken %.3g s so far; what hangs is ended by a `time_limit`", what, _SILENCE)
        answer = here.recv()
    except EOFError:
        child.join(5)
        if child.exitcode == UNGUARDED:
            raise TrialsFailed(
                "another process imports your script, which would start the audit again: call it under "
                "if __name__ == '__main__':"
            ) from None
        if child.exitcode == LATE:
            raise TrialsFailed(f"{what} took more than its time; `time_limit` of the subject allows for more") from None
        raise TrialsFailed(f"{what} ended its process (exit code {child.exitcode}) before it was finished") from None
    finally:
        child.kill()
        child.join()
        here.close()
    if isinstance(answer, EpsilometerError):
        raise answer
    if isinstance(answer, Exception):
        raise TrialsFailed(f"{what} failed ({answer})")
    result: Answer = answer
    return result


def _answer(connection: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        with one_thread():
            answer = function(*arguments)
    except Exception as error:
        answer = told(error)
    connection.send(answer)
