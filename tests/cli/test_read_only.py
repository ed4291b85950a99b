"""A container: the file system is read-only, home and package too, and one temporary directory can be written."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# Everything but PLACE becomes read-only, in a mount namespace of its own; nothing of it is seen outside.
CONTAINER = """
set -eu
mount --make-rprivate /
mount -t tmpfs tmpfs "$PLACE"
cut -d' ' -f2 /proc/mounts | while read -r point; do
    case $point in /proc*|/sys*|/dev*|"$PLACE") continue;; esac
    mount -o remount,bind,ro "$point" 2>/dev/null || true
done
cd "$PLACE"
for place in "$HOME" "$PACKAGE"; do
    if touch "$place/written" 2>/dev/null; then rm "$place/written"; echo "WRITABLE $place"; exit 99; fi
done
"$@"
"""
SPEC = "[training]\\nsteps = 5\\n[audit]\\ntrials = 4\\n"
PROGRAM = f"{sys.executable} -m epsilometer"


def contained(tmp_path: Path, commands: str) -> subprocess.CompletedProcess[str]:
    place = tmp_path / "place"
    place.mkdir()
    environment = {k: v for k, v in os.environ.items() if k not in ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR")}
    environment |= {"PLACE": str(place), "TMPDIR": str(place), "HOME": str(Path.home())}
    environment["PACKAGE"] = str(Path(__import__("epsilometer").__file__).parent)
    inside = ["unshare", "--user", "--map-root-user", "--mount", "bash", "-c", CONTAINER, "container"]
    found = subprocess.run([*inside, "true"], env=environment, capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.skip(
            f"READ-ONLY CONTAINERS ARE NOT TESTED: NO NAMESPACES HERE ({(found.stdout + found.stderr).strip()})"
        )
    script = f'printf "{SPEC}" > spec.toml\n{commands}'
    return subprocess.run([*inside, "bash", "-c", script], env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(autouse=True)
def _linux() -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("READ-ONLY CONTAINERS ARE NOT TESTED: THEY NEED LINUX")


@pytest.mark.parametrize("executor", ["inline", pytest.param("local", marks=pytest.mark.full)])
def test_an_audit_needs_one_directory_only(tmp_path: Path, executor: str) -> None:
    done = contained(tmp_path, f"{PROGRAM} audit spec.toml --out run --executor {executor} --workers 1 --json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verdict"] == "inconclusive"
    assert "Traceback" not in done.stderr


@pytest.mark.full
def test_a_run_on_read_only_media(tmp_path: Path) -> None:
    """It can be looked at; to go on with it is refused in one line."""
    commands = (
        f"{PROGRAM} audit spec.toml --out run --quiet >/dev/null 2>&1\n"
        "mount --bind run run && mount -o remount,bind,ro run\n"
        f"{PROGRAM} runs . --json\n"
        f"{PROGRAM} audit spec.toml --out run --quiet; echo code $?\n"
        f"{PROGRAM} audit spec.toml --out run --seed 1 --quiet; echo code $?\n"
    )
    done = contained(tmp_path, commands)
    listed, *codes = done.stdout.splitlines()
    assert json.loads(listed)["runs"][0]["trials"]["done"] == 8, done.stderr
    assert codes == ["code 2", "code 2"], done.stdout + done.stderr
    for line in done.stderr.splitlines():
        assert line.startswith("epsilometer: "), done.stderr
    assert "Read-only file system" in done.stderr
