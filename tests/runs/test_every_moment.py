"""A store survives SIGKILL before every single call of the system that changes a file, not only at lucky moments."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

static long left = -1;  /* calls until the end; negative: for ever */
void end_before(long calls) { left = calls; }
static void count(void) { if (left > 0 && --left == 0) kill(getpid(), SIGKILL); }
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
ssize_t write(int f, const void *b, size_t n) { count(); return REAL(write)(f, b, n); }
ssize_t pwrite64(int f, const void *b, size_t n, off64_t o) { count(); return REAL(pwrite64)(f, b, n, o); }
int fsync(int f) { count(); return REAL(fsync)(f); }
int fdatasync(int f) { count(); return REAL(fdatasync)(f); }
int ftruncate64(int f, off64_t n) { count(); return REAL(ftruncate64)(f, n); }
int unlink(const char *p) { count(); return REAL(unlink)(p); }
int rename(const char *a, const char *b);
int rename(const char *a, const char *b) { count(); return REAL(rename)(a, b); }
"""

GROUPS = [{(world, i): np.array([i + world / 2]) for world in (0, 1)} for i in range(3)]


def session(directory: Path, plan) -> None:
    """Continue, store what is missing, conclude, close."""
    from epsilometer.runs import run_directory

    key = plan.fingerprint()
    with run_directory(directory, plan) as store:
        have = store.results(key)
        for i, group in enumerate(GROUPS):
            if not group.keys() <= have.keys():
                store.add(key, group, 0.1)
                os.write(3, bytes([i]))  # told to the parent: this one is finished
        store.conclude(key, {"verdict": "a verdict"})


def kill_at_every_call() -> None:
    """Runs under the shim. Each child ends before its n-th call; then everything that it finished must be there."""
    from epsilometer.auditing import spec_from_dict
    from epsilometer.runs import STORE, SqliteStore

    shim = ctypes.CDLL(os.environ["LD_PRELOAD"])
    plan = spec_from_dict({"training": {"steps": 3}, "audit": {"trials": 25}}).plan()
    directory, moments = Path("store"), 0
    for n in range(1, 1000):
        shutil.rmtree(directory, ignore_errors=True)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.dup2(writing, 3)
            shim.end_before(ctypes.c_long(n))
            session(directory, plan)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        os.close(writing)
        finished = [trial for i in os.read(reading, 100) for trial in GROUPS[i]]
        os.close(reading)
        if os.WIFEXITED(status):
            break
        moments += 1
        if (directory / STORE).exists():
            with SqliteStore.reading(directory / STORE) as store:
                assert set(finished) <= store.results(plan.fingerprint()).keys(), (n, finished)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 3)
        session(directory, plan)
        with SqliteStore.reading(directory / STORE) as store:
            assert len(store.results(plan.fingerprint())) == 6, n
            assert store.runs()[0].conclusion == {"verdict": "a verdict"}
    print(moments)


def test_a_store_survives_a_kill_at_every_moment(tmp_path: Path) -> None:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("NO C COMPILER: stores were killed at random moments only, not at every one")
    (tmp_path / "shim.c").write_text(SHIM)
    shim = tmp_path / "shim.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", shim, tmp_path / "shim.c", "-ldl"], check=True)
    code = "import test_every_moment; test_every_moment.kill_at_every_call()"
    environment = {**os.environ, "LD_PRELOAD": str(shim), "PYTHONPATH": str(Path(__file__).parent)}
    shown = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert shown.returncode == 0, shown.stderr[-2000:]
    assert int(shown.stdout) > 40
