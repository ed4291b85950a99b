"""Trainings that misbehave, for test_foreign_code.py; each is played by processes that import this file by name."""

import os
import sys
import time

import numpy as np

CALLS = [0]


def _model(data, seed, shift=0.0):
    weights = data.x[:, :3].sum(axis=0) + 5 * np.random.default_rng(seed).normal(size=(2, 3))
    weights[1] += shift
    return lambda x: np.asarray(x)[:, :3] @ weights.T


def good(data, seed):
    return _model(data, seed)


def raises_late(data, seed):
    with open("calls", "a+") as calls:  # of all processes
        calls.write(".")
        calls.flush()
        if calls.tell() > 40:
            raise ValueError("bad\nluck \x1b[31m")
    return _model(data, seed)


def hangs(data, seed):
    time.sleep(1000)


def hangs_in_c(data, seed):
    import signal

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    time.sleep(1000)


def hangs_late_and_hears_nothing(data, seed):
    with open("calls", "a+") as calls:  # of all processes
        calls.write(".")
        calls.flush()
        if calls.tell() > 40:
            import ctypes
            import signal

            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
            ctypes.PyDLL(None).sleep(1000)  # no other thread of Python goes on meanwhile
    return _model(data, seed)


def not_a_number(data, seed):
    return lambda x: np.full((len(x), 2), np.nan)


def ignores_its_seed(data, seed):
    return _model(data, 0)


def keeps_state(data, seed):
    CALLS[0] += 1
    return _model(data, seed, shift=0.3 * CALLS[0])


def prints(data, seed):
    print("hello")
    os.write(1, b"raw\n")
    return _model(data, seed)


def ends_its_process(data, seed):
    os._exit(0)


def exits(data, seed):
    sys.exit(1)


def returns_nothing(data, seed):
    pass


def returns_an_object(data, seed):
    return object()


def score(model, record):
    x, y = record
    return float(model(x[None])[0, y])


not_a_function = 3
