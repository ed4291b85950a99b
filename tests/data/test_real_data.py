"""The loaders on the real files, where these are at hand."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from epsilometer.data import load
from epsilometer.errors import InvalidInput

DEBIAN = Path("/usr/share/datasets/fashion-mnist")


def idx_md5(values: np.ndarray) -> str:
    header = bytes([0, 0, 8, values.ndim]) + np.array(values.shape, ">u4").tobytes()
    return hashlib.md5(header + values.astype(np.uint8).tobytes()).hexdigest()


def test_digits_have_not_changed() -> None:
    assert load("digits").fingerprint() == "0cb585554ee92307a7af9bb1884e1d1cdfcf51d4e62127c7a42b234f8198a4c7"


def test_mnist_has_the_published_checksums(real) -> None:
    real("mnist.npz")
    data = load("mnist", part="test", download=False)
    assert idx_md5((data.x * 255).round().reshape(-1, 28, 28)) == "2646ac647ad5339dbf082846283269ea"
    assert idx_md5(data.y) == "27ae3e4e09519cfbb04c329615203637"
    train = load("mnist", classes=["3", "8"], download=False)
    assert np.bincount(train.y).tolist() == [6131, 5851]


def test_fashion_mnist_is_found_where_debian_puts_it() -> None:
    if not DEBIAN.is_dir():
        pytest.skip("FASHION-MNIST NOT TESTED: INSTALL DEBIAN'S PACKAGE dataset-fashion-mnist")
    data = load("fashion-mnist", part="test", download=False)
    assert np.bincount(data.y).tolist() == [1000] * 10
    assert data.class_names[int(data.y[0])] == "Ankle boot"


def test_mnist_and_fashion_mnist_are_not_confused(folder: Path) -> None:
    if not DEBIAN.is_dir():
        pytest.skip("CONFUSION WITH MNIST NOT TESTED: INSTALL DEBIAN'S PACKAGE dataset-fashion-mnist")
    for path in DEBIAN.glob("t10k-*"):
        (folder / path.name).symlink_to(path)
    with pytest.raises(InvalidInput, match="put fashion-mnist's files in a folder fashion-mnist"):
        load("mnist", part="test", directory=folder, download=False)


def test_extracts_of_cifar_agree(real, folder: Path) -> None:
    place = real("cifar10_airplane_automobile.npz", "cifar10_small.npz")
    wanted = {"classes": ["automobile", "airplane"], "part": "test", "per_class": 200, "download": False}
    larger = load("cifar10", **wanted)
    (folder / "cifar10_small.npz").symlink_to(place / "cifar10_small.npz")
    assert load("cifar10", directory=folder, **wanted).fingerprint() == larger.fingerprint()
    assert len(load("cifar10", part="test", per_class=100, download=False)) == 1000
    assert len(load("cifar10", part="test", classes=[0, 1], download=False)) == 2000


def test_location_has_every_record(real) -> None:
    real("location30.npz")
    data = load("location30", download=False)
    assert data.x.shape == (5010, 446)
    assert np.bincount(data.y).min() == 97
    assert data.x[0, :5].tolist() == [0, 1, 0, 1, 0]  # as the archive's first line, "13",0,1,0,1,0,…
    assert data.y[0] == 12


def test_adult_has_every_record_and_category(real) -> None:
    real("adult.data.gz", "adult.test.gz")
    train, test = (load("adult", part=part, download=False) for part in ("train", "test"))
    assert train.x.shape == (32561, 108)
    assert test.x.shape == (16281, 108)
    assert np.bincount(train.y).tolist() == [24720, 7841]
    assert np.bincount(test.y).tolist() == [12435, 3846]
    for data in (train, test):
        assert 0 <= data.x.min() <= data.x.max() <= 1
        assert (data.x[:, 6:].sum(axis=1) == 8).all()  # one category in each of eight columns


def test_baskets_stand_in_for_purchases(real) -> None:
    real("retail_fimi.npz")
    train, test = (load("retail", part=part, download=False) for part in ("train", "test"))
    assert train.x.shape == test.x.shape == (10000, 600)
    assert np.bincount(train.y, minlength=100).min() >= 5
    from sklearn.linear_model import SGDClassifier

    model = SGDClassifier(random_state=0, max_iter=5, tol=None).fit(train.x[:3000], train.y[:3000])
    assert model.score(test.x, test.y) > 0.5  # the clusters can be learnt


def test_a_linear_probe_on_frozen_features_is_as_good_as_stated(real) -> None:
    """92 % for airplane against automobile: stated by those who trained the network."""
    real("cifar100_smallcnn.npz", "cifar10_airplane_automobile.npz")
    from sklearn.linear_model import LogisticRegression

    classes = ["airplane", "automobile"]
    train = load("cifar10-features", classes=classes, per_class=1000, download=False)
    test = load("cifar10-features", part="test", classes=classes, per_class=500, download=False)
    accuracy = LogisticRegression(max_iter=2000).fit(train.x, train.y).score(test.x, test.y)
    assert 0.90 <= accuracy <= 0.95
