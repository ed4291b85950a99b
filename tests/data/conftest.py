"""No test sees the machine's own data or cache, except those that ask for real data."""

import os
from pathlib import Path

import pytest

_GIVEN = os.environ.get("EPSILOMETER_DATA")
_BESIDE = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache directory."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("EPSILOMETER_DATA", raising=False)
    return tmp_path / "cache" / "epsilometer"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory for the test's own files."""
    path = tmp_path / "files"
    path.mkdir()
    return path


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch):
    """real("a.npz") makes EPSILOMETER_DATA name the directory that has these files, or skips the test."""

    def find(*names: str) -> Path:
        place = Path(_GIVEN) if _GIVEN else _BESIDE
        missing = [name for name in names if not (place / name).is_file()]
        if missing:
            pytest.skip(f"NOT TESTED ON REAL DATA: {', '.join(missing)} NOT IN {place}; SET EPSILOMETER_DATA")
        monkeypatch.setenv("EPSILOMETER_DATA", str(place))
        return place

    return find
