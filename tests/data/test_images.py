"""MNIST, Fashion-MNIST and CIFAR-10 from small files of the official formats."""

import gzip
import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

from epsilometer.data import load
from epsilometer.data.cifar10 import CLASS_NAMES
from epsilometer.errors import InvalidInput

RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (30, 28, 28), dtype=np.uint8)
LABELS = np.arange(30, dtype=np.uint8) % 10
COLOURS = RNG.integers(0, 256, (50, 3, 32, 32), dtype=np.uint8)
COLOUR_LABELS = np.arange(50, dtype=np.uint8) % 10


def idx(values: np.ndarray) -> bytes:
    return bytes([0, 0, 8, values.ndim]) + np.array(values.shape, ">u4").tobytes() + values.tobytes()


def write_idx(folder: Path, part: str = "train", images: bytes = idx(PIXELS), labels: bytes = idx(LABELS)) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(images))
    (folder / f"{part}-labels-idx1-ubyte").write_bytes(labels)


def batches() -> dict[str, bytes]:
    table = np.concatenate([COLOUR_LABELS[:, None], COLOURS.reshape(50, -1)], axis=1)
    train = {f"data_batch_{i + 1}.bin": table[i * 10 : i * 10 + 10].tobytes() for i in range(5)}
    return train | {"test_batch.bin": table[:20].tobytes()}


def write_archive(path: Path, contents: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, data in reversed(contents.items()):  # the order in an archive is not the order of the records
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def write_extract(path: Path, rows: np.ndarray) -> None:
    """Rows of the official training part, out of order."""
    values = {
        f"{field}_{part}": array
        for part in ("train", "test")
        for field, array in (("x", COLOURS[rows].transpose(0, 2, 3, 1)), ("y", COLOUR_LABELS[rows]), ("index", rows))
    }
    np.savez(path, **values)


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
@pytest.mark.parametrize("part", ["train", "test"])
def test_idx_files_are_scaled_images(folder: Path, name: str, part: str) -> None:
    write_idx(folder / name, {"train": "train", "test": "t10k"}[part])
    data = load(name, part=part, directory=folder, download=False)
    np.testing.assert_array_equal(data.x, (PIXELS.reshape(30, -1) / 255).astype(np.float32))
    assert data.y.tolist() == LABELS.tolist()
    assert (data.classes, len(data.class_names), data.shape) == (10, 10, (28, 28))


def test_classes_and_records_are_chosen(folder: Path) -> None:
    write_idx(folder)
    data = load("fashion-mnist", classes=["Bag", 1], per_class=2, directory=folder)
    assert data.class_names == ("Bag", "Trouser")
    assert data.y.tolist() == [1, 0, 1, 0]
    np.testing.assert_array_equal(data.x, load("fashion-mnist", directory=folder).x[[1, 8, 11, 18]])


def test_the_directory_comes_before_the_variable_before_the_cache(
    folder: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = tmp_path / "variable"
    cache.mkdir(parents=True)
    monkeypatch.setenv("EPSILOMETER_DATA", str(variable))
    for place, pixel in ((cache / "mnist", 1), (variable, 2), (folder, 3)):
        write_idx(place, images=idx(np.full_like(PIXELS, pixel)))
    seen = []
    for _ in range(2):
        seen.append(round(float(load("mnist", directory=folder).x[0, 0] * 255)))
        (folder / "train-labels-idx1-ubyte").unlink(missing_ok=True)  # half of the files are none
    monkeypatch.delenv("EPSILOMETER_DATA")
    assert [*seen, round(float(load("mnist").x[0, 0] * 255))] == [3, 2, 1]


def test_an_npz_of_mnist_is_as_good(folder: Path) -> None:
    np.savez(folder / "mnist.npz", x_train=PIXELS, y_train=LABELS, x_test=PIXELS[:10], y_test=LABELS[:10])
    assert len(load("mnist", directory=folder)) == 30
    assert len(load("mnist", part="test", directory=folder)) == 10


def test_the_cifar_archive_and_its_loose_files_are_the_same_data(folder: Path) -> None:
    write_archive(folder / "cifar-10-binary.tar.gz", batches())
    packed = load("cifar10", directory=folder)
    np.testing.assert_array_equal(packed.x, (COLOURS.reshape(50, -1) / 255).astype(np.float32))
    assert packed.y.tolist() == COLOUR_LABELS.tolist()
    assert (packed.class_names, packed.shape) == (CLASS_NAMES, (3, 32, 32))
    assert len(load("cifar10", part="test", directory=folder)) == 20
    (folder / "cifar-10-binary.tar.gz").unlink()
    for name, data in batches().items():
        (folder / name).write_bytes(data)
    assert load("cifar10", directory=folder).fingerprint() == packed.fingerprint()


def test_an_extract_serves_only_what_it_has_all_of(folder: Path) -> None:
    write_archive(folder / "cifar-10-binary.tar.gz", batches())
    wanted = {"classes": ["automobile", "airplane"], "per_class": 2, "directory": folder, "download": False}
    official = load("cifar10", **wanted)
    (folder / "cifar-10-binary.tar.gz").unlink()
    write_extract(folder / "cifar10_small.npz", np.array([21, 20, 11, 10, 1, 0]))
    assert load("cifar10", **wanted).fingerprint() == official.fingerprint()
    for more in ({"per_class": 4}, {"per_class": None}, {"classes": ["cat", "dog"]}):
        with pytest.raises(InvalidInput, match=r"cifar-10-binary\.tar\.gz in"):
            load("cifar10", **(wanted | more))


def _truncated(path: Path) -> None:
    path.write_bytes(gzip.compress(idx(PIXELS))[:-100])


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda f: write_idx(f, images=b"\0\0\x0d\x03" + idx(PIXELS)[4:]), "magic number 00000d03"),
        (lambda f: write_idx(f, images=idx(PIXELS)[:-1]), "23519 bytes for shape"),
        (lambda f: write_idx(f, images=b""), "magic number"),
        (lambda f: write_idx(f, labels=idx(LABELS[:-1])), "as many labels"),
        (lambda f: write_idx(f, labels=idx(LABELS + 1)), "labels from 0 to 9"),
        (lambda f: (write_idx(f), _truncated(f / "train-images-idx3-ubyte.gz")), "Compressed file ended"),
        (lambda f: np.savez(f / "mnist.npz", x_train=PIXELS), "an npz file with x_train, y_train"),
        (lambda f: np.savez(f / "mnist.npz", x_train=np.array([{}]), y_train=LABELS), "allow_pickle"),
        (lambda f: np.savez(f / "mnist.npz", x_train=PIXELS / 255, y_train=LABELS), "float64 images"),
        (lambda f: (f / "mnist.npz").write_bytes(b"PK nothing"), "an npz file with"),
    ],
)
def test_broken_files_are_named_in_one_line(folder: Path, spoil, words: str) -> None:
    spoil(folder)
    with pytest.raises(InvalidInput, match=words) as caught:
        load("mnist", directory=folder, download=False)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda f: write_archive(f / "cifar-10-binary.tar.gz", {"test_batch.bin": b""}), "no data_batch_1.bin"),
        (lambda f: (f / "cifar-10-binary.tar.gz").write_bytes(b"nothing"), "an archive with data_batch_1.bin"),
        (lambda f: [(f / name).write_bytes(b"12345") for name in batches()], "records of 3073 bytes"),
        (lambda f: np.savez(f / "cifar10_small.npz", x_train=COLOURS), "an npz file with"),
    ],
)
def test_broken_cifar_files_are_named_in_one_line(folder: Path, spoil, words: str) -> None:
    spoil(folder)
    with pytest.raises(InvalidInput, match=words) as caught:
        load("cifar10", directory=folder, download=False)
    assert "\n" not in str(caught.value)


def test_a_truncated_archive_is_an_error(folder: Path) -> None:
    path = folder / "cifar-10-binary.tar.gz"
    write_archive(path, batches())
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(InvalidInput, match="an archive with"):
        load("cifar10", directory=folder, download=False)


def cifar100_files(names: int = 100) -> dict[str, bytes]:
    fine = np.arange(50, dtype=np.uint8) * 2
    table = np.concatenate([fine[:, None] // 5, fine[:, None], COLOURS.reshape(50, -1)], axis=1)
    words = "".join(f"class_{number}\n" for number in range(names)).encode()
    return {"train.bin": table.tobytes(), "test.bin": table[:20].tobytes(), "fine_label_names.txt": words}


def test_cifar100_has_fine_classes_packed_or_not(folder: Path) -> None:
    write_archive(folder / "cifar-100-binary.tar.gz", cifar100_files())
    train, test = (load("cifar100", part=part, directory=folder, download=False) for part in ("train", "test"))
    assert (len(train), len(test), train.classes, train.shape) == (50, 20, 100, (3, 32, 32))
    assert np.array_equal(train.x, COLOURS.reshape(50, -1).astype(np.float32) / 255)
    assert train.y.tolist() == list(range(0, 100, 2))
    assert train.class_names[98] == "class_98"
    (folder / "cifar-100-binary.tar.gz").unlink()
    for name, data in cifar100_files().items():
        (folder / name).write_bytes(data)
    assert load("cifar100", directory=folder, download=False).fingerprint() == train.fingerprint()


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (cifar100_files() | {"train.bin": b"123"}, "records of 3074 bytes"),
        (cifar100_files(99), "100 names of classes .99 different names"),
        ({"train.bin": b""}, "no fine_label_names.txt in it"),
    ],
)
def test_broken_files_of_cifar100_are_named_in_one_line(folder: Path, files: dict[str, bytes], words: str) -> None:
    write_archive(folder / "cifar-100-binary.tar.gz", files)
    with pytest.raises(InvalidInput, match=words):
        load("cifar100", directory=folder, download=False)
    (folder / "cifar-100-binary.tar.gz").unlink()
    with pytest.raises(InvalidInput, match=r"cifar-100-binary\.tar\.gz in"):
        load("cifar100", directory=folder, download=False)
