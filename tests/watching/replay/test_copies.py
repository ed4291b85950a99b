"""Every run has a place of its own, and nothing of it is left."""

import stat
from pathlib import Path

import numpy as np
import pytest

from epsilometer.errors import InvalidInput
from epsilometer.watching.replay import copies
from epsilometer.watching.replay.files import Written, unlike
from epsilometer.watching.replay.runs import lockstep
from epsilometer.watching.settings import Settings


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "place"
    for name in ("data", ".venv/bin", "out"):
        (place / name).mkdir(parents=True)
    (place / "data" / "a.csv").write_text("1")
    (place / ".venv" / "pyvenv.cfg").write_text("")
    (place / "link").symlink_to("data/a.csv")
    (place / "train.py").write_text("")
    cache = tmp_path / "cache" / "torch" / "hub"
    cache.mkdir(parents=True)
    (cache / "weights").write_text("public")
    (tmp_path / "tmp").mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    return place


def test_a_working_directory_in_which_the_places_are_is_copied_without_them(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(place))
    before = {entry.name for entry in place.iterdir()} - {"out"}
    with lockstep(["python"], 1, Settings(), place / "out") as runs:
        assert runs is not None
        for one in runs._runs:
            assert {entry.name for entry in (one.place / "work").iterdir()} == before


def test_runs_and_their_places(place: Path, tmp_path: Path) -> None:
    command = ["python", str(place / "train.py"), "--data", "data-{neighbour}.csv"]
    with lockstep(command, 2, Settings(), place / "out") as runs:
        assert runs is not None
        assert [one.replaying.role for one in runs._runs] == [
            "reference", "noise", "rotating", "others", "placeholder", "placeholder",
        ]  # fmt: skip
        assert [one.command[-1] for one in runs._runs] == [f"data-{n}.csv" for n in (0, 0, 0, 0, 1, 2)]
        assert len({one.replaying.salt for one in runs._runs}) == 1
        meeting = Path(runs.reference.replaying.meeting)
        assert stat.S_IMODE(meeting.stat().st_mode) == 0o700
        for one in runs._runs:
            work = one.place / "work"
            assert stat.S_IMODE(one.place.stat().st_mode) == 0o700
            assert one.command[1] == str(work / "train.py")
            assert sorted(entry.name for entry in work.iterdir()) == [".venv", "data", "link", "train.py"]
            assert (work / ".venv").is_symlink()
            assert not (work / "data").is_symlink()
            (work / "data" / "a.csv").write_text("2")
            assert one.environment["WANDB_MODE"] == "disabled"
            hub = Path(one.environment["TORCH_HOME"]) / "hub"
            assert (hub / "weights").read_text() == "public"
            (hub / "new").write_text("its own")
            assert one.environment["PYTHONHASHSEED"] == runs.reference.environment["PYTHONHASHSEED"]
    assert not meeting.exists()
    assert not list((tmp_path / "tmp").iterdir())
    assert (place / "data" / "a.csv").read_text() == "1"
    assert [one.name for one in (tmp_path / "cache" / "torch" / "hub").iterdir()] == ["weights"]


def test_no_neighbours_no_runs(place: Path) -> None:
    with lockstep(["true"], 0, Settings(), None) as runs:
        assert runs is None


def test_a_directory_that_is_too_large(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "MOST", 10)
    (place / "data" / "large").write_bytes(bytes(100))
    with pytest.raises(InvalidInput, match="in a directory of its own"), lockstep(["true"], 1, Settings(), None):
        pass
    assert not list((tmp_path / "tmp").iterdir())


def test_checkpoints(tmp_path: Path) -> None:
    import torch

    (tmp_path / "old.pt").write_bytes(b"old")
    written = Written(tmp_path)
    torch.save({"model": {"w": torch.ones(3)}, "loss": 1.0}, tmp_path / "a.pt")
    torch.save({"model": {"w": torch.ones(3)}, "loss": 2.0}, tmp_path / "b.pt")
    torch.save({"model": {"w": torch.ones(3) * 1.001}, "loss": 1.0}, tmp_path / "c.pt")
    np.savez(tmp_path / "d.npz", x=np.ones(2))
    (tmp_path / "log.txt").write_text("a line")
    assert sorted(written.now()) == ["a.pt", "b.pt", "c.pt", "d.npz"]
    path = tmp_path.joinpath
    assert unlike(path("a.pt"), path("a.pt")) == ""
    assert unlike(path("a.pt"), path("b.pt")) == ""  # a figure for people
    assert unlike(path("a.pt"), path("c.pt")) == "model.w"
    assert unlike(path("a.pt"), path("d.npz")) is not None
    assert unlike(path("a.pt"), path("old.pt")) is None
