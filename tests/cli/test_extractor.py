"""`epsilometer extractor`: from an archive of CIFAR-100's format to weights that `cifar10-features` takes."""

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from program import Shown

from epsilometer.data import Extractor, FeatureDataset, load

SMALL = ("--channels", "6,8", "--strides", "2,3", "--epochs", "2", "--batch", "64")


@pytest.fixture
def images(place: Path) -> Path:
    """100 classes of three images, each a colour of its own with noise; and CIFAR-10's files with the same."""
    rng, folder = np.random.default_rng(0), place.parent / "data"
    colours = rng.integers(40, 216, (100, 3))

    def table(labels: np.ndarray, coarse: bool) -> bytes:
        pixels = colours[labels][:, :, None] + rng.integers(-30, 30, (len(labels), 3, 1024))
        columns = [labels[:, None] // 5, labels[:, None]] if coarse else [labels[:, None]]
        return np.concatenate([*columns, pixels.reshape(len(labels), -1)], axis=1).astype(np.uint8).tobytes()

    fine = np.arange(300) % 100
    names = "".join(f"class_{number}\n" for number in range(100)).encode()
    files = {"train.bin": table(fine, True), "test.bin": table(fine[:100], True), "fine_label_names.txt": names}
    with tarfile.open(folder / "cifar-100-binary.tar.gz", "w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(f"cifar-100-binary/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    ten = np.arange(2000) % 10
    for name in (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"):
        (folder / name).write_bytes(table(ten, False))
    return folder


def test_weights_are_made_and_used(here: Callable[..., Shown], images: Path) -> None:
    out = images / "cifar100_smallcnn.npz"
    shown = here("extractor", *SMALL, "--probe", "cifar10", "--out", str(out), "--json")
    assert shown.returncode == 0, shown
    found = json.loads(shown.stdout)
    assert (found["records"], found["classes"], found["channels"], found["strides"]) == (300, 100, [6, 8], [2, 3])
    assert found["probe"]["features"] > 0.3  # colours can be told apart; chance is 0.1
    assert found["test_accuracy"] is not None
    assert "epoch 2 of 2: loss" in shown.stderr
    assert found["sha256"] == Extractor.from_npz(out, "augmented").fingerprint()
    data = load("cifar10-features", per_class=2, directory=images)
    assert isinstance(data, FeatureDataset)
    assert data.x.shape == (20, 8)


def test_the_same_command_gives_the_same_weights(here: Callable[..., Shown], images: Path) -> None:
    texts = []
    for name in ("a.npz", "b.npz"):
        shown = here("extractor", *SMALL, "--per-class", "1", "--no-flips", "--quiet", "--out", name)
        assert shown.returncode == 0, shown
        assert "8 features from convolutions of [6, 8] channels" in shown.stdout
        assert shown.stderr == f"wrote {name}\n"
        texts.append(Path(name).read_bytes())
    assert Extractor.from_npz(Path("a.npz"), "augmented").fingerprint() == (
        Extractor.from_npz(Path("b.npz"), "augmented").fingerprint()
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--out", "w.txt"), "--out = 'w.txt': expected a name that ends in .npz"),
        (("--out", "none/w.npz"), "--out = 'none/w.npz': expected a file in an existing directory; make none first"),
        (("--out", "w.npz", "--channels", "8,x"), "--channels = '8,x': expected whole numbers separated by commas"),
        (("--out", "w.npz", "--channels", "8,8"), "strides = (1, 2, 2): expected 2 numbers, one a layer"),
        (("--out", "w.npz", "--epochs", "-1"), "--epochs = -1: expected a whole number from 0 to 10,000"),
        (("--out", "w.npz", "--data", "cifar11"), "--data = 'cifar11': expected one of"),
        (
            ("--out", "w.npz", "--data", "digits", "--probe", "digits"),
            "--probe = 'digits': expected a data set with a t",
        ),
        (("--out", "w.npz", "--per-class", "0"), "--per-class = 0"),
        (("--out", "w.npz", "--seed", "-1"), "--seed = -1"),
        (("--out", "w.npz", "--data-dir", "nowhere"), "--data-dir = 'nowhere': expected an existing directory"),
        ((), "Missing option '--out'"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(
    here: Callable[..., Shown], arguments: tuple[str, ...], words: str
) -> None:
    shown = here("extractor", *arguments)
    assert shown.returncode == 2
    assert words in shown.stderr
    assert "Traceback" not in shown.stderr
    assert shown.stdout == ""
    assert not list(Path().iterdir())


def test_what_is_probed_has_the_shape_of_what_is_trained_on(here: Callable[..., Shown], images: Path) -> None:
    shown = here("extractor", "--data", "digits", "--probe", "cifar10", "--out", "w.npz")
    assert shown.returncode == 2
    assert "--probe = 'cifar10': expected images of 8 × 8, as digits has" in shown.stderr


def test_a_file_that_exists_is_kept(here: Callable[..., Shown]) -> None:
    Path("w.npz").write_text("mine")
    shown = here("extractor", *SMALL, "--out", "w.npz")
    assert shown.returncode == 2
    assert "expected a file that does not exist yet" in shown.stderr
    assert Path("w.npz").read_text() == "mine"
