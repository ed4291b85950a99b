"""Archives of a few kilobytes that unpack to gigabytes, and archives that hold something else than arrays."""

import functools
import gzip
import io
import tarfile
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from epsilometer.data import load
from epsilometer.data.download import Remote, fetch
from epsilometer.data.features import Extractor
from epsilometer.errors import InvalidInput

MEGABYTE = bytes(1 << 20)
PACKED = gzip.compress(MEGABYTE, 1)  # gzipped files may follow each other in one


def gzip_bomb(folder: Path) -> None:
    (folder / "train-images-idx3-ubyte.gz").write_bytes(PACKED * 1100)
    (folder / "train-labels-idx1-ubyte").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 1, 5]))


def npz_bomb(folder: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": (1100 << 20, 1, 1)})
    with zipfile.ZipFile(folder / "mnist.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open("x_train.npy", "w", force_zip64=True) as member:
            member.write(header.getvalue())
            for _ in range(1100):
                member.write(MEGABYTE)
        archive.writestr("y_train.npy", b"")


def tar_bomb(
    folder: Path, name: str = "data_batch_1.bin", megabytes: int = 1100, kind: bytes = tarfile.REGTYPE
) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.type = megabytes << 20, kind
    header = info.tobuf(tarfile.GNU_FORMAT)
    (folder / "cifar-10-binary.tar.gz").write_bytes(gzip.compress(header) + PACKED * megabytes)


@pytest.mark.parametrize(
    ("name", "bomb"),
    [
        ("mnist", gzip_bomb),
        ("mnist", npz_bomb),
        ("cifar10", tar_bomb),
        ("cifar10", functools.partial(tar_bomb, name="skipped", megabytes=4100)),
        ("cifar10", functools.partial(tar_bomb, kind=tarfile.XHDTYPE)),  # a header of a gigabyte
    ],
)
def test_what_unpacks_to_gigabytes_is_refused(folder: Path, name: str, bomb) -> None:
    bomb(folder)
    tracemalloc.start()
    with pytest.raises(InvalidInput, match=r"it unpacks to more than [14],...,...,... bytes") as caught:
        load(name, directory=folder, download=False)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "\n" not in str(caught.value)
    assert peak < 1.1 * 2**30


def test_a_download_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "source").write_bytes(bytes(3 << 20))
    monkeypatch.setattr("epsilometer.data.download.LARGEST_DOWNLOAD", 2 << 20)
    with pytest.raises(InvalidInput, match="more than 2,097,152 bytes"):
        fetch(Remote("a.bin", (tmp_path / "source").as_uri(), "md5:0"), tmp_path / "kept")
    assert not list((tmp_path / "kept").iterdir())


def archive_of(path: Path, **members: bytes) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


@pytest.mark.parametrize("as_npy", [True, False])
def test_members_that_are_no_arrays(folder: Path, as_npy: bool) -> None:
    """numpy gives their bytes, whatever they are called."""
    archive_of(folder / "mnist.npz", **{f"{name}{'.npy' * as_npy}": b"text" for name in ("x_train", "y_train")})
    with pytest.raises(InvalidInput, match="x_train is no array"):
        load("mnist", directory=folder, download=False)


@pytest.mark.parametrize(
    ("name", "arrays", "words"),
    [
        ("mnist.npz", {"x_train": np.uint8(3), "y_train": np.uint8(3)}, "images as bytes"),
        ("mnist.npz", {"x_train": np.zeros((0, 28, 28), np.uint8), "y_train": np.zeros(0, np.uint8)}, "shape (0, 28"),
        ("mnist.npz", {"x_train": np.zeros((2, 2, 2), np.uint8), "y_train": np.array(["a", "b"])}, "labels of type"),
        ("location30.npz", {"x_packed": np.zeros((2, 56)), "n_features": [446, 1], "y": [0, 1]}, "446 bits"),
        ("location30.npz", {"x_packed": np.zeros((1, 56)), "n_features": 446, "y": 0}, "446 bits"),
    ],
)
def test_arrays_of_another_kind(folder: Path, name: str, arrays, words: str) -> None:
    np.savez(folder / name, **arrays)
    with pytest.raises(InvalidInput) as caught:
        load(name.partition(".")[0], directory=folder, download=False)
    assert words in str(caught.value)


def test_weights_that_are_no_numbers(folder: Path) -> None:
    names = ["mean", *(f"net.conv{i}.{kind}" for i in (1, 2, 3) for kind in ("weight", "bias"))]
    np.savez(folder / "weights.npz", **{name: np.array(["x"]) for name in names})
    with pytest.raises(InvalidInput, match="could not convert"):
        Extractor.from_npz(folder / "weights.npz", "net")


def test_idx_files_without_images(folder: Path) -> None:
    (folder / "train-images-idx3-ubyte").write_bytes(bytes([0, 0, 8, 3, *[0] * 4, 0, 0, 0, 28, 0, 0, 0, 28]))
    (folder / "train-labels-idx1-ubyte").write_bytes(bytes([0, 0, 8, 1, *[0] * 4]))
    with pytest.raises(InvalidInput, match=r"it is empty: shape \(0, 28, 28\)"):
        load("mnist", directory=folder, download=False)
