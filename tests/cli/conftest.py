"""The program in an empty place: no network, no data files, no cache."""

import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from program import Shown

from epsilometer.cli.app import run


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty working directory on a machine without network, without data files, and with an empty cache.

    Modules that were imported from there are forgotten: the next test may have another of the same name.
    """
    for name in ("work", "data", "cache"):
        (tmp_path / name).mkdir()
    nowhere = "http://127.0.0.1:9"
    environment = {"https_proxy": nowhere, "http_proxy": nowhere, "no_proxy": "", "COLUMNS": "200"}
    # Fonts are looked for once, and not in every empty place anew.
    environment["MPLCONFIGDIR"] = str(Path(tempfile.gettempdir()) / "epsilometer-tests-matplotlib")
    environment |= {"XDG_CACHE_HOME": str(tmp_path / "cache"), "EPSILOMETER_DATA": str(tmp_path / "data")}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path / "work")
    yield tmp_path / "work"
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def here(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Shown]:
    """The program without a process of its own: many mistakes in little time."""

    def epsilometer(*arguments: str) -> Shown:
        monkeypatch.setattr(sys, "argv", ["epsilometer", *arguments])
        capsys.readouterr()
        code = run()
        return Shown(code, *capsys.readouterr())

    return epsilometer
