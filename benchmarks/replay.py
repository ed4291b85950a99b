"""Replayed neighbours: what k runs in lockstep cost beside k runs of the script alone, all at once as well: processor
time (which is dearer where processors share what they have), time by the clock, memory."""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "tests" / "watching" / "scripts" / "digits.py"
SCRIPTS = {
    "64-32-10": ("--steps", "200"),
    "10 million parameters": ("--steps", "200", "--hidden", "3100", "3100", "--batch", "16"),
}
OTHERS = 4  # runs beside the neighbours


class Memory:
    """The most that a process and all that it starts have together, each shared page counted once."""

    def __init__(self, process: int) -> None:
        self.most = 0
        self._process, self._over = process, threading.Event()
        self._thread = threading.Thread(target=self._follow)
        self._thread.start()

    def end(self) -> int:
        self._over.set()
        self._thread.join()
        return self.most

    def _follow(self) -> None:
        while not self._over.wait(0.1):
            self.most = max(self.most, sum(map(proportional, descendants(self._process))))


def descendants(process: int) -> list[int]:
    """Of a process, and itself."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            parents.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found = [process]
    for one in found:
        found += parents.get(one, [])
    return found


def proportional(process: int) -> int:
    """Bytes, with its share of what is shared."""
    with suppress(OSError):
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    return 0


def run(command: list[str], times: int) -> tuple[float, float, int]:
    """Seconds of processor time and by the clock, and bytes at most, of a command that is run so many times at once."""
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as place:
        processes = [
            subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, cwd=place)
            for _ in range(times)
        ]
        memory = Memory(os.getpid())
        codes = [process.wait() for process in processes]
        if any(codes):
            raise SystemExit(f"{command} failed")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, time.perf_counter() - started, memory.end()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="pairs of k runs alone and k in lockstep")
    parser.add_argument("--neighbours", type=int, default=1)
    parser.add_argument("--script", choices=SCRIPTS, action="append")
    options = parser.parse_args()
    k = options.neighbours + OTHERS
    print(f"| script | processor time of {k} in lockstep / {k} alone | by the clock | GB more |")
    print("|---|---|---|---|")
    for name in options.script or SCRIPTS:
        rows = []
        for seed in range(options.rounds):
            plain = [sys.executable, "-W", "ignore", str(SCRIPT), "--seed", str(seed), *SCRIPTS[name]]
            alone = run(plain, k)
            watch = [sys.executable, "-m", "epsilometer", "watch", "--neighbours", str(options.neighbours), "--"]
            replayed = run([*watch, *plain], 1)
            rows.append((replayed[0] / alone[0], replayed[1] / alone[1], (replayed[2] - alone[2]) / 2**30))
        print(f"| {name} |", " | ".join(f"{statistics.median(one):.2f}" for one in zip(*rows, strict=True)), "|")


if __name__ == "__main__":
    main()
