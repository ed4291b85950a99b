"""Whoever plays the trials, and whatever happens to them meanwhile, the results are the same bit for bit."""

from __future__ import annotations

import multiprocessing
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from epsilometer.adversaries import Adversary, Game, Gradient
from epsilometer.auditing import AuditResult, Plan, run, spec_from_dict
from epsilometer.errors import InvalidInput
from epsilometer.runs import Auto, Inline, Local, OnRay, TrialsFailed, executor_named
from epsilometer.runs.executors import auto, child
from epsilometer.runs.executors.executor import Job
from epsilometer.runs.executors.patience import Patience
from epsilometer.runs.executors.worker import work
from epsilometer.runs.groups import SECONDS, Groups, Played
from epsilometer.runs.progress import Snapshot
from epsilometer.subjects import Insertion, Sees, ThreatModel
from epsilometer.training import TrainingDiverged

STEPS = {"training": {"steps": 20}, "audit": {"trials": 60}}


def plan(**sections) -> Plan:
    return spec_from_dict({**STEPS, **sections}).plan()


def assert_same(first: AuditResult, second: AuditResult) -> None:
    assert first.evidence.in_scores.tobytes() == second.evidence.in_scores.tobytes()
    assert first.evidence.out_scores.tobytes() == second.evidence.out_scores.tobytes()
    assert (first.verdict, first.lower_bound) == (second.verdict, second.lower_bound)


@pytest.fixture(scope="module")
def expected() -> AuditResult:
    return run(plan())


@pytest.mark.parametrize("workers", [1, 2])
def test_processes_give_what_this_process_gives(expected: AuditResult, workers: int) -> None:
    assert_same(run(plan(), executor=Local(workers)), expected)
    assert multiprocessing.active_children() == []


def test_auto_moves_to_processes_when_they_pay(expected: AuditResult, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto, "LOOK", 0.0)
    monkeypatch.setattr(auto, "WORTH", 0.01)
    assert_same(run(plan(), executor=Auto(2)), expected)


def test_registered_modules_and_canaries_travel() -> None:
    for adversary in ({"name": "gradient"}, {"name": "clipbkd"}):
        chosen = plan(model={"name": "cnn"}, training={"steps": 2}, audit={"trials": 2}, adversary=adversary)
        assert_same(run(chosen, executor=Local(1)), run(chosen))
    canaries = plan(adversary={"name": "canaries", "canaries": 50}, training={"steps": 3}, audit={"trials": 3})
    first, second = run(canaries), run(canaries, executor=Local(1))
    assert first.evidence.scores.tobytes() == second.evidence.scores.tobytes()


def test_torch_has_one_thread_even_where_it_was_not_yet_imported() -> None:
    """With two, sums of large batches are rounded otherwise: a worker's scores would differ from this process's."""
    fresh = (
        "import sys\n"
        "from dataclasses import replace\n"
        "from epsilometer.adversaries import Gradient\n"
        "from epsilometer.auditing import spec_from_dict\n"
        "class Shows(Gradient):\n"
        "    def show(self):\n"
        "        import torch\n"
        "        print(torch.get_num_threads())\n"
        "    def prepare(self, *arguments):\n"
        "        self.show()\n"
        "        return super().prepare(*arguments)\n"
        "    def craft(self, *arguments):\n"
        "        self.show()\n"
        "        return super().craft(*arguments)\n"
        "plan = spec_from_dict({'model': {'name': 'cnn'}, 'training': {'steps': 2}}).plan()\n"
        "plan = replace(plan, adversary=Shows())\n"
        "assert 'torch' not in sys.modules\n"
        "plan.game(plan.prepare())\n"
    )
    several = {**os.environ, "OMP_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", fresh], capture_output=True, text=True, check=True, env=several)
    assert done.stdout == "1\n1\n"


def test_an_early_stop_is_at_the_same_pair_whoever_plays() -> None:
    chosen = plan(training={"steps": 20}, audit={"trials": 400, "bound": "eprocess"}, faults={"noise_scale": 0.3})
    alone, together = run(chosen), run(chosen, executor=Local(2))
    assert alone.stopped_early
    assert_same(together, alone)


def test_groups_take_about_half_a_second() -> None:
    groups = Groups([(0, i) for i in range(10_000)])
    sizes = []
    for trials in groups:
        sizes.append(len(trials))
        groups.learn(Played(trials, [], 0.01 * len(trials) + (5.0 if len(sizes) == 1 else 0.0)))
    assert sizes[0] == 2
    assert sizes[-2] == SECONDS / 0.01
    assert sum(sizes) == 10_000


# ----------------------------------------------------------------------------------------------- what goes wrong
def test_killed_workers_change_nothing() -> None:
    """SIGKILL while trials come in; the driver replaces the worker and plays its trials again."""
    chosen = plan(training={"steps": 300}, audit={"trials": 150})
    killed: list[int | None] = []

    def kill(_: Snapshot) -> None:
        children = sorted(multiprocessing.active_children(), key=lambda child: child.pid or 0)
        if children and len(killed) < 3:
            children[0].kill()  # the eldest: one that has not yet started would be a failed start
            killed.append(children[0].pid)

    found = run(chosen, kill, executor=Local(2))
    assert len(killed) == 3
    assert_same(found, run(chosen))


def test_a_stopped_worker_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """SIGSTOP, as a debugger or a person sends it. Time is out for that worker alone, however slow the machine is."""
    chosen = plan(training={"steps": 20}, audit={"trials": 60})
    stopped: list[int] = []

    def is_there() -> bool:
        return any(child.pid in stopped for child in multiprocessing.active_children())

    def stop(_: Snapshot) -> None:
        children = multiprocessing.active_children()
        if children and not stopped:
            pid = children[0].pid
            assert pid is not None
            stopped.append(pid)
            os.kill(pid, signal.SIGSTOP)
            rescue.start()

    def go_on() -> None:
        if is_there():
            os.kill(stopped[0], signal.SIGCONT)

    rescue = threading.Timer(60.0, go_on)  # a test that fails must end as well
    monkeypatch.setattr(Patience, "limit", lambda *_: 0.0 if is_there() else 1e9)
    found = run(chosen, stop, executor=Local(1))
    rescue.cancel()
    assert len(stopped) == 1
    assert "a worker is replaced, and its trials are played again: it took more than 0 s" in caplog.text
    assert_same(found, run(chosen))


@dataclass(frozen=True)
class Deadly(Adversary):
    """Ends the process that plays one of its trials."""

    how: str = "exit"
    name: ClassVar[str] = "deadly"
    summary: ClassVar[str] = "for tests"
    threat: ClassVar[ThreatModel] = ThreatModel(Sees.FINAL_MODEL, (), "its way")

    def prepare(self, subject, relation, seed):
        return Gradient(coordinates=3).prepare(subject, relation, seed)

    def craft(self, subject, relation, prepared) -> Game:
        game = Gradient(coordinates=3).craft(subject, relation, prepared)

        def insert(world: int, seed: np.random.SeedSequence) -> Insertion:
            if multiprocessing.parent_process() is not None and world == 1:
                if self.how == "exit":
                    os.kill(os.getpid(), signal.SIGSEGV)
                raise {"error": ZeroDivisionError("oops"), "diverged": TrainingDiverged("it diverged")}[self.how]
            return game.insert(world, seed)

        return replace(game, insert=insert)


@pytest.mark.parametrize(
    ("how", "error", "words"),
    [
        ("exit", TrialsFailed, "trial 0 of world 1 failed 3 times .*SIGSEGV"),
        ("error", TrialsFailed, "trial 0 of world 1 failed 3 times .*ZeroDivisionError: oops"),
        ("diverged", TrainingDiverged, "it diverged"),
    ],
)
def test_a_poisoned_trial_is_reported_by_name(how: str, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        run(replace(plan(), adversary=Deadly(how)), executor=Local(1))
    assert multiprocessing.active_children() == []


def test_a_plan_that_cannot_travel_is_refused() -> None:
    from dataclasses import make_dataclass

    hidden = make_dataclass("Hidden", [], bases=(Gradient,), frozen=True)
    with pytest.raises(InvalidInput, match="can be sent to another process"):
        run(replace(plan(), adversary=hidden()), executor=Local(1))


def test_a_script_without_a_guard_is_told(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from epsilometer.auditing import run, spec_from_dict\nfrom epsilometer.runs import Local\n"
        "run(spec_from_dict({'training': {'steps': 2}, 'audit': {'trials': 5}}).plan(), executor=Local(1))\n"
    )
    shown = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False)
    assert shown.returncode == 1
    assert "if __name__ == '__main__':" in shown.stderr.splitlines()[-1]
    assert shown.stderr.count("Traceback") == 1  # workers add none of their own


def test_workers_end_with_a_killed_driver(tmp_path: Path) -> None:
    """Also in the middle of a long training, of which nobody would ever want the result."""
    script = tmp_path / "driver.py"
    script.write_text(
        "import multiprocessing\n"
        "from epsilometer.auditing import run, spec_from_dict\nfrom epsilometer.runs import Local\n"
        "if __name__ == '__main__':\n"
        "    spec = {'training': {'steps': 1_000_000}, 'audit': {'trials': 5}}\n"
        "    spec['claim'], spec['training']['noise_multiplier'] = {'epsilon': 4.0}, 30.0\n"
        "    spec['adversary'] = {'direction': 'random'}  # which no training prepares: workers start at once\n"
        "    import threading\n"
        "    show = lambda: print(*[p.pid for p in multiprocessing.active_children()], flush=True)\n"
        "    threading.Timer(6.0, show).start()\n"
        "    run(spec_from_dict(spec).plan(), executor=Local(2))\n"
    )
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as driver:
        workers = [int(word) for word in driver.stdout.readline().split()]
        driver.kill()
    assert len(workers) == 2
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]


def test_a_worker_whose_driver_is_gone_ends_without_a_word() -> None:
    connection, drivers = multiprocessing.Pipe()
    drivers.close()
    work(connection)  # no BrokenPipeError, no ConnectionResetError


def test_whoever_waits_is_told_for_what(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(child, "_SILENCE", 0.01)
    assert child.in_child("the training", time.sleep, 0.1) is None
    assert "the training has taken 0.01 s so far; what hangs is ended by a `time_limit`" in caplog.text


def test_executors_have_names() -> None:
    assert isinstance(executor_named("inline"), Inline)
    assert isinstance(executor_named("ray", address="host:1"), OnRay)
    for name, settings in (
        ("locl", {}),
        ("local", {"workers": 0}),
        ("local", {"address": "x"}),
        ("inline", {"workers": 2}),
    ):
        with pytest.raises(InvalidInput):
            executor_named(name, **settings)


# ---------------------------------------------------------------------------------------------------------- Ray
def free_port(address: str) -> int:
    with socket.socket() as sock:
        sock.bind((address, 0))
        return int(sock.getsockname()[1])


HEAD, OTHER = "127.0.0.2", "127.0.0.3"


@pytest.fixture(scope="module")
def cluster():
    """Two nodes on one machine, each with a loopback address and one core of its own."""
    pytest.importorskip("ray", reason="RAY IS NOT INSTALLED: nothing is known about clusters (pip install ray)")
    settings = {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_OVERRIDE_NODE_IP_ADDRESS": HEAD,
        # A lost node is noticed after a second, and not after a quarter of a minute.
        "RAY_health_check_initial_delay_ms": "0",
        "RAY_health_check_period_ms": "500",
        "RAY_health_check_timeout_ms": "5000",
        "RAY_health_check_failure_threshold": "2",
        "RAY_worker_niceness": "0",  # 15 by default: beside other tests they would take minutes
    }
    address = f"{HEAD}:{free_port(HEAD)}"
    ray = str(Path(sys.executable).parent / "ray")

    def start(host: str, *options: str) -> None:
        command = [ray, "start", "--num-cpus=1", f"--node-ip-address={host}", "--disable-usage-stats", *options]
        environment = {**os.environ, **settings, "RAY_OVERRIDE_NODE_IP_ADDRESS": host}
        # Not a pipe: the node's processes would keep it open for ever.
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    start(HEAD, "--head", f"--port={address.rpartition(':')[2]}", "--include-dashboard=false")
    start(OTHER, f"--address={address}")
    yield address, settings
    for pid in ray_processes(settings):
        os.kill(pid, signal.SIGKILL)


def ray_processes(settings: dict[str, str], *words: str) -> list[int]:
    """Processes of our own cluster: they have its token."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            environment, command = ((entry / name).read_text(errors="replace") for name in ("environ", "cmdline"))
        except OSError:
            continue
        if settings["RAY_AUTH_TOKEN"] in environment and all(word in command for word in words):
            found.append(int(entry.name))
    return found


def test_a_cluster_that_loses_a_node_gives_what_this_process_gives(cluster, tmp_path: Path) -> None:
    address, settings = cluster
    spec = tmp_path / "spec.toml"
    spec.write_text("[training]\nsteps = 400\n[audit]\ntrials = 150\n")
    command = [sys.executable, "-m", "epsilometer", "audit", "spec.toml", "--out", "run"]
    options = ["--executor", "ray", "--address", address]
    with subprocess.Popen(
        command + options, cwd=tmp_path, env={**os.environ, **settings}, stdout=-1, stderr=subprocess.PIPE, text=True
    ) as driver:
        lines = [driver.stderr.readline()]
        while lines[-1] and not lines[-1].startswith("gradient:"):
            lines.append(driver.stderr.readline())
        assert int(lines[-1].split()[1]) < 300, "".join(lines)
        (raylet,) = ray_processes(settings, f"--node_ip_address={OTHER}", "raylet/raylet")
        os.kill(raylet, signal.SIGKILL)
        _, rest = driver.communicate(timeout=200)
    assert driver.returncode == 0, rest
    (tmp_path / "alone").mkdir()
    subprocess.run([*command[:-1], "alone/run", "--executor", "inline"], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "run" / "scores.csv").read_bytes() == (tmp_path / "alone" / "run" / "scores.csv").read_bytes()


@pytest.fixture
def deaf(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray itself must not be asked: it would answer the same, minutes later."""
    ray = pytest.importorskip("ray", reason="RAY IS NOT INSTALLED")

    def never(*_: object, **__: object) -> None:
        raise AssertionError("Ray was asked")

    monkeypatch.setattr(ray, "init", never)


@pytest.mark.usefixtures("deaf")
def test_no_cluster_at_the_address() -> None:
    with pytest.raises(InvalidInput, match="a Ray cluster that answers"):
        run(plan(), executor=OnRay(f"127.0.0.4:{free_port('127.0.0.4')}"))


@pytest.mark.usefixtures("deaf")
def test_no_cluster_where_auto_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray would try for minutes at the address that a cluster of yesterday, or the environment, has left behind."""
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.4:{free_port('127.0.0.4')}")
    with pytest.raises(InvalidInput, match="address = 'auto': expected a Ray cluster that answers"):
        run(plan(), executor=OnRay("auto"))


def test_without_ray_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InvalidInput, match=r"pip install 'epsilometer\[ray\]'"):
        run(plan(), executor=OnRay())


def test_results_do_not_depend_on_the_order_in_which_they_come(expected: AuditResult) -> None:
    class Backwards:
        name: ClassVar[str] = "backwards"

        def play(self, job: Job, groups: Groups):
            yield from reversed(list(Inline().play(job, groups)))

    assert_same(run(plan(), executor=Backwards()), expected)
    assert np.isfinite(expected.evidence.in_scores).all()
