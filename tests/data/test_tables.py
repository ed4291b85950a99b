"""Purchase-100, Texas-100, Location-30, Adult and the stand-in from small files of the official formats."""

import gzip
import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

from epsilometer.data import load
from epsilometer.errors import InvalidInput

RNG = np.random.default_rng(1)
ROW = "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, {}, 0, 40, {}, {}"


def bits(records: int, features: int) -> np.ndarray:
    return RNG.integers(0, 2, (records, features))


def lines(x: np.ndarray, labels: list[str] | None = None) -> bytes:
    rows = [",".join(map(str, row)) for row in x.tolist()]
    rows = rows if labels is None else [f"{label},{row}" for label, row in zip(labels, rows, strict=True)]
    return "".join(row + "\n" for row in rows).encode()


def write_archive(path: Path, **contents: bytes) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, data in contents.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def test_purchase_is_split_into_two_parts_without_common_records(folder: Path) -> None:
    x, y = bits(41, 600), np.arange(41) % 100
    write_archive(folder / "dataset_purchase.tgz", dataset_purchase=lines(x, [str(label + 1) for label in y]))
    parts = [load("purchase100", part=part, directory=folder) for part in ("train", "test")]
    assert [len(part) for part in parts] == [20, 20]
    assert [part.classes for part in parts] == [100, 100]
    rows = [int(label) for part in parts for label in part.y]  # here a record's label is its row
    assert len(set(rows)) == 40
    np.testing.assert_array_equal(np.concatenate([part.x for part in parts]), x[rows])
    assert load("purchase100", directory=folder).fingerprint() == parts[0].fingerprint()


def test_texas_has_features_and_labels_in_two_files(folder: Path) -> None:
    x = bits(12, 6169)
    labels = "".join(f"{label}\n" for label in range(1, 13)).encode()
    write_archive(folder / "dataset_texas.tgz", **{"texas/100/labels": labels, "texas/100/feats": lines(x)})
    data = load("texas100", directory=folder)
    assert (len(data), data.classes) == (6, 100)
    np.testing.assert_array_equal(data.x, x[data.y])


def test_location_is_whole_in_either_form(folder: Path) -> None:
    x, y = bits(30, 446), np.arange(30)[::-1]
    write_archive(folder / "dataset_location.tgz", bangkok=lines(x, [f'"{label + 1}"' for label in y]))
    data = load("location30", directory=folder)
    np.testing.assert_array_equal(data.x, x)
    assert data.y.tolist() == y.tolist()
    (folder / "dataset_location.tgz").unlink()
    np.savez(folder / "location30.npz", x_packed=np.packbits(x.astype(np.uint8), axis=1), n_features=446, y=y)
    assert load("location30", directory=folder).fingerprint() == data.fingerprint()


def write_adult(folder: Path) -> None:
    train = [ROW.format(2000, "Peru", "<=50K"), ROW.format(1000, "?", ">50K"), ROW.format(0, "Cuba", "<=50K"), ""]
    test = ["|1x3 Cross validator", ROW.format(4000, "?", ">50K."), ROW.format(500, "Mars", "<=50K."), ""]
    (folder / "adult.data.gz").write_bytes(gzip.compress("\n".join(train).encode()))
    (folder / "adult.test").write_text("\n".join(test))


def test_adult_is_scaled_by_its_training_part(folder: Path) -> None:
    write_adult(folder)
    train, test = (load("adult", part=part, directory=folder) for part in ("train", "test"))
    assert train.x.shape == (3, 6 + 7 + 3)  # seven columns of one category, and three countries
    assert train.x[:, 3].tolist() == [1, 0.5, 0]  # capital gain
    assert train.x[:, -3:].tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]  # ?, Cuba, Peru
    assert train.y.tolist() == [0, 1, 0]
    assert test.x[:, 3].tolist() == [1, 0.25]
    assert test.x[:, -3:].tolist() == [[1, 0, 0], [0, 0, 0]]
    assert test.y.tolist() == [1, 0]
    assert train.class_names == test.class_names == ("<=50K", ">50K")


def write_baskets(folder: Path) -> None:
    baskets = [sorted(RNG.choice(620, 8, replace=False).tolist()) for _ in range(500)]
    baskets += [[], list(range(620))]
    text = "".join(" ".join(map(str, basket)) + " \n" for basket in baskets)
    (folder / "retail.dat.gz").write_bytes(gzip.compress(text.encode()))
    starts = np.cumsum([0, *map(len, baskets)])
    np.savez(folder / "retail_fimi.npz", indptr=starts, indices=np.concatenate(baskets).astype(np.uint16))


def test_baskets_are_clustered_once(folder: Path, cache: Path) -> None:
    write_baskets(folder)
    train, test = (load("retail", part=part, directory=folder) for part in ("train", "test"))
    assert train.x.shape == test.x.shape == (250, 600)
    assert train.classes == 100
    assert set(np.unique(train.x)) == {0, 1}
    (kept,) = (cache / "retail").iterdir()
    (folder / "retail.dat.gz").unlink()
    written = kept.stat().st_mtime_ns
    assert load("retail", directory=folder).fingerprint() == train.fingerprint()  # the same baskets in another format
    assert [one.stat().st_mtime_ns for one in (cache / "retail").iterdir()] == [written]
    few = load("retail", directory=folder, clusters=7)
    assert few.classes == 7
    assert few.fingerprint() != train.fingerprint()
    assert np.array_equal(few.x, train.x)  # the same baskets, other classes
    for wrong in (1, 101):
        with pytest.raises(InvalidInput, match=f"data.clusters = {wrong}: expected a whole number from 2 to 100"):
            load("retail", directory=folder, clusters=wrong)
    with pytest.raises(InvalidInput, match=r"data.clusters = 7: expected nothing: the classes of digits are given"):
        load("digits", clusters=7)
    kept.write_bytes(b"damaged")
    assert load("retail", directory=folder).fingerprint() == train.fingerprint()


@pytest.mark.parametrize(
    ("name", "spoil", "words"),
    [
        ("purchase100", lambda f: write_archive(f / "dataset_purchase.tgz", other=b""), "no dataset_purchase in it"),
        (
            "purchase100",
            lambda f: write_archive(f / "dataset_purchase.tgz", dataset_purchase=lines(bits(4, 599), ["1"] * 4)),
            "record 1 is not 600 values of 0 or 1",
        ),
        (
            "purchase100",
            lambda f: write_archive(f / "dataset_purchase.tgz", dataset_purchase=lines(bits(4, 600), ["0"] * 4)),
            "labels from 0 to 99",
        ),
        (
            "location30",
            lambda f: write_archive(f / "dataset_location.tgz", bangkok=lines(bits(1, 446) + 2, ["1"])),
            "446 values of 0 or 1",
        ),
        (
            "location30",
            lambda f: write_archive(f / "dataset_location.tgz", bangkok=lines(bits(1, 446), ["x"])),
            "invalid literal",
        ),
        ("location30", lambda f: write_archive(f / "dataset_location.tgz", bangkok=b""), "no records"),
        ("location30", lambda f: np.savez(f / "location30.npz", x_packed=bits(2, 56)), "n_features"),
        (
            "location30",
            lambda f: np.savez(f / "location30.npz", x_packed=bits(2, 50), n_features=446, y=[0, 1]),
            "records of 446 bits",
        ),
        (
            "texas100",
            lambda f: write_archive(
                f / "dataset_texas.tgz", **{"100/feats": lines(bits(3, 6169)), "100/labels": b"1\n2\n"}
            ),
            "3 records, 2 labels",
        ),
        ("adult", lambda f: (f / "adult.data").write_text("39, State-gov\n"), "not so in record 1"),
        ("adult", lambda f: (f / "adult.data").write_text(ROW.format("x", "Peru", ">50K")), "could not convert"),
        ("adult", lambda f: (f / "adult.data").write_text(""), "no records"),
        ("retail", lambda f: (f / "retail.dat").write_text("1 2 3\n"), "100 of 600 are needed"),
        ("retail", lambda f: (f / "retail.dat").write_text("1 two\n"), "invalid literal"),
        ("retail", lambda f: np.savez(f / "retail_fimi.npz", indptr=[0, 9], indices=[1]), "does not fit"),
    ],
)
def test_broken_tables_are_named_in_one_line(folder: Path, name: str, spoil, words: str) -> None:
    spoil(folder)
    with pytest.raises(InvalidInput, match=words) as caught:
        load(name, directory=folder, download=False)
    assert "\n" not in str(caught.value)
