"""Compiled code is kept where only this user can write, and damage to it costs time, nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from epsilometer.training import kernels

PROGRAM = """
from epsilometer.training.kernels import cache_directory, kernel

@kernel
def twice(x):
    return 2 * x

print(twice(21), cache_directory(), sum(twice.stats.cache_hits.values()))
"""


def run(folder: Path, **environment: str) -> list[str]:
    script = folder / "program.py"
    if not script.exists():
        script.write_text(PROGRAM)
    known = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    done = subprocess.run(
        [sys.executable, script], env=known | environment, capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout.split()


def test_compiled_code_is_kept_and_used_again(tmp_path: Path) -> None:
    place = tmp_path / "cache"
    assert run(tmp_path, NUMBA_CACHE_DIR=str(place)) == ["42", str(place), "0"]
    assert run(tmp_path, NUMBA_CACHE_DIR=str(place)) == ["42", str(place), "1"]
    assert place.stat().st_mode & 0o077 == 0


def test_what_is_inlined_from_another_file_counts_too(tmp_path: Path) -> None:
    """Numba looks at the kernel's own file only: a change elsewhere left an old kernel in use."""
    place = tmp_path / "cache"
    run(tmp_path, NUMBA_CACHE_DIR=str(place))
    changed = "from epsilometer.training import kernels\nkernels._sources = lambda: 'changed'\n"
    script, other = tmp_path / "program.py", tmp_path / "other.py"
    other.write_text(f"{changed}exec(compile(open({str(script)!r}).read(), {str(script)!r}, 'exec'))\n")
    done = subprocess.run(
        [sys.executable, other], env=os.environ | {"NUMBA_CACHE_DIR": str(place)}, capture_output=True, text=True,
        check=True, timeout=120,
    )  # fmt: skip
    assert done.stdout.split() == ["42", str(place), "0"]
    assert run(tmp_path, NUMBA_CACHE_DIR=str(place))[2] == "0"  # and back
    assert run(tmp_path, NUMBA_CACHE_DIR=str(place))[2] == "1"


@pytest.mark.parametrize("damage", [b"", b"\x80\x05", b"not pickle at all"])
@pytest.mark.parametrize("kind", ["*.nbi", "*.nbc"])
def test_damaged_files_are_compiled_anew(tmp_path: Path, kind: str, damage: bytes) -> None:
    """Empty ones ended an audit as "interrupted", truncated ones with an internal error."""
    place = tmp_path / "cache"
    run(tmp_path, NUMBA_CACHE_DIR=str(place))
    (file,) = place.rglob(kind)
    file.write_bytes(damage)
    assert run(tmp_path, NUMBA_CACHE_DIR=str(place)) == ["42", str(place), "0"]
    assert run(tmp_path, NUMBA_CACHE_DIR=str(place)) == ["42", str(place), "1"]


def test_a_place_that_others_can_write_to_is_not_used(tmp_path: Path) -> None:
    for mode in (0o777, 0o770, 0o720):
        open_to_others = tmp_path / f"{mode:o}"
        open_to_others.mkdir()
        open_to_others.chmod(mode)
        assert run(tmp_path, NUMBA_CACHE_DIR=str(open_to_others)) == ["42", "None", "0"]
        assert not list(open_to_others.iterdir())
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    assert run(tmp_path, NUMBA_CACHE_DIR=str(link))[1] == "None"


def test_a_place_of_somebody_else_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kernels._is_ours_alone(tmp_path / "mine")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert not kernels._is_ours_alone(tmp_path / "mine")


def test_without_any_place_everything_is_compiled(tmp_path: Path) -> None:
    """As in a container with a read-only package and home: "no locator available" ended every audit there."""
    (tmp_path / "file").write_text("")
    assert run(tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "file" / "below")) == ["42", "None", "0"]


def test_other_libraries_keep_their_own_place(tmp_path: Path) -> None:
    import numba

    before = numba.config.CACHE_DIR
    kernels.kernel(lambda x: x)
    assert before == numba.config.CACHE_DIR
