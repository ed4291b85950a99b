"""Whoever reaches a Ray can run code as its user: one that we start is for nobody else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}

# Starts Ray twice, with a token each. Tells who listens, and what clients get that have no token or a false one.
DRIVER = """
import os, subprocess, sys
from pathlib import Path

import ray
from epsilometer.runs.executors.executor import Job
from epsilometer.auditing import spec_from_dict
from epsilometer.runs import OnRay
from epsilometer.runs.groups import Groups

plan = spec_from_dict({"training": {"steps": 5}, "audit": {"trials": 4}}).plan()
before = dict(os.environ)

def family():
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found

def opened(pid):
    for link in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            yield os.readlink(link)
        except OSError:
            continue

def look(address):
    sockets = {name for pid in family() for name in opened(pid)}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in sockets:
                print("listens", words[1].rpartition(":")[0])
    client = f"import ray; ray.init({address!r}); print('GOT', ray.get(ray.remote(lambda: 1).remote()))"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH")}
    tokens = {"RAY_AUTH_MODE": "disabled"}, {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64}
    clients = [
        subprocess.Popen([sys.executable, "-c", client], env=clean | token, stdout=-1, stderr=-1, text=True)
        for token in tokens
    ]
    for shown, told in [one.communicate() for one in clients]:  # Ray's clients try for 20 seconds
        print("client", "GOT" in shown, "InvalidAuthToken" in told)

for first in (True, False):
    playing = OnRay(workers=1).play(Job.of(plan), Groups([(0, 0), (1, 0)]))
    next(playing)
    if first:
        look(ray.get_runtime_context().gcs_address)
    playing.close()
names = {name for name in before | os.environ if name.startswith("RAY_") and name != "RAY_USAGE_STATS_ENABLED"}
print("left", [name for name in names if before.get(name) != os.environ.get(name)])
"""


@pytest.mark.full
def test_ray_of_our_own_is_for_nobody_else(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="RAY IS NOT INSTALLED: nothing is known about who may reach it")
    home = {**os.environ, "HOME": str(tmp_path)}  # where no token may be left
    command = [sys.executable, "-c", DRIVER]
    done = subprocess.run(command, env=home, capture_output=True, text=True, timeout=200, check=False)
    lines = done.stdout.splitlines()
    listening = {line.split()[1] for line in lines if line.startswith("listens")}
    assert listening, done.stderr
    assert listening <= LOOPBACK
    assert lines.count("client False True") == 2, done.stdout
    assert lines[-1] == "left []", done.stdout + done.stderr
    assert not (tmp_path / ".ray").exists()
