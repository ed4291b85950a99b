"""How long a report takes, and how large it is: an audit of 100,000 trials, judged before.

.venv/bin/python benchmarks/report.py
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from epsilometer.auditing import spec_from_dict
from epsilometer.auditing.runner import judge
from epsilometer.evidence import PairedRuns
from epsilometer.report import to_json, write_results

TRIALS = 50_000  # of each world


def main() -> None:
    rng = np.random.default_rng(0)
    plan = spec_from_dict({"audit": {"trials": TRIALS}}).plan()
    result = judge(plan, PairedRuns(rng.normal(size=TRIALS), rng.normal(0.4, size=TRIALS)))
    start = time.perf_counter()
    document = to_json(result)
    figures = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as place:
        out = Path(place)
        write_results(out, result)
        (out / "report.html").unlink()
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "epsilometer", "report", str(out)], check=True, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - start
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor = used.ru_utime + used.ru_stime
        size = (out / "report.html").stat().st_size
    kilobytes = len(json.dumps(document)) / 1e3
    print(f"{2 * TRIALS} trials: numbers of all figures {figures:.2f} s, {kilobytes:.0f} kB of JSON")
    print(f"`epsilometer report DIR`: {seconds:.2f} s ({processor:.2f} s of the processor), {size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
