import pickle
from pathlib import Path

import numpy as np
import pytest

from epsilometer.adversaries import feature_poison
from epsilometer.data import Dataset, Extractor, FeatureDataset, load
from epsilometer.errors import InvalidInput

RNG = np.random.default_rng(2)
SHAPES = ((32, 3, 3, 3), (64, 32, 3, 3), (128, 64, 3, 3))


def weights() -> dict[str, np.ndarray]:
    made = {"mean": RNG.uniform(100, 150, (3, 32, 32)).astype(np.float32)}
    for number, shape in enumerate(SHAPES, start=1):
        made[f"augmented.conv{number}.weight"] = RNG.normal(0, 0.05, shape).astype(np.float32)
        made[f"augmented.conv{number}.bias"] = RNG.normal(0, 0.05, shape[0]).astype(np.float32)
    return made


@pytest.fixture(scope="module")
def extractor(tmp_path_factory: pytest.TempPathFactory) -> Extractor:
    path = tmp_path_factory.mktemp("weights") / "cifar100_smallcnn.npz"
    np.savez(path, **weights())
    return Extractor.from_npz(path, "augmented")


def plain_features(extractor: Extractor, image: np.ndarray) -> np.ndarray:
    """The same network by loops over output pixels, in double precision."""
    values = image.reshape(3, 32, 32).astype(np.float64) * 255 - extractor.mean
    for stride, (weight, bias) in zip((1, 2, 2), extractor.layers, strict=True):
        padded = np.pad(values, ((0, 0), (1, 1), (1, 1)))
        side = values.shape[1] // stride
        out = np.empty((len(bias), side, side))
        for i in range(side):
            for j in range(side):
                window = padded[:, i * stride : i * stride + 3, j * stride : j * stride + 3]
                out[:, i, j] = np.tensordot(weight, window, 3) + bias
        values = np.maximum(out, 0)
    return values.mean((1, 2))


def featured(extractor: Extractor) -> FeatureDataset:
    x = RNG.random((8, 3072)).astype(np.float32)
    raw = Dataset("made", x, np.arange(8) % 4, 4, tuple("abcd"), (3, 32, 32))
    return FeatureDataset("f", extractor.features(x), raw.y, 4, raw.class_names, raw=raw, extractor=extractor)


def test_features_are_those_of_the_network_written_out(extractor: Extractor) -> None:
    images = RNG.random((2, 3072))
    expected = np.stack([plain_features(extractor, image) for image in images])
    found = extractor.features(images)
    assert (found.dtype, found.shape) == (np.float32, (2, 128))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_an_attacker_can_differentiate_through_the_module_but_not_change_it(extractor: Extractor) -> None:
    import torch

    module = extractor.module()
    pixels = torch.rand((2, 3072), generator=torch.Generator().manual_seed(0), requires_grad=True)
    features = module(pixels)
    features.sum().backward()
    assert pixels.grad is not None
    assert pixels.grad.abs().max() > 0
    assert not any(parameter.requires_grad for parameter in module.parameters())
    np.testing.assert_allclose(features.detach().numpy(), extractor.features(pixels.detach()), rtol=1e-5, atol=1e-5)


def test_a_subset_has_the_same_records_of_features_and_images(extractor: Extractor) -> None:
    data = featured(extractor)
    part = data.subset(["d", "a"], 1)
    assert isinstance(part, FeatureDataset)
    np.testing.assert_array_equal(part.x, data.x[[0, 3]])
    np.testing.assert_array_equal(part.raw.x, data.raw.x[[0, 3]])
    assert part.y.tolist() == part.raw.y.tolist() == [1, 0]
    assert part.class_names == ("d", "a")


def test_a_neighbour_in_feature_space_is_plain_data(extractor: Extractor) -> None:
    data = featured(extractor)
    for other in (data.plus(np.ones(128), 1), data.with_rows([0], np.ones(128), 1)):
        assert type(other) is Dataset
        assert other.class_names == data.class_names
    assert repr(data).startswith("FeatureDataset(f: 8 records")
    assert pickle.loads(pickle.dumps(data)).fingerprint() == data.fingerprint()


def test_bad_features_are_refused_in_words(extractor: Extractor, folder: Path) -> None:
    data = featured(extractor)
    with pytest.raises(InvalidInput, match="images of the same records"):
        FeatureDataset("f", data.x, 3 - data.y, 4, raw=data.raw, extractor=extractor)
    with pytest.raises(InvalidInput, match="rows of 3072 pixels"):
        extractor.features(np.zeros((2, 784)))
    np.savez(folder / "cifar100_smallcnn.npz", **(weights() | {"mean": np.zeros(3)}))
    with pytest.raises(InvalidInput, match="convolutions over images, each fitting the one before"):
        load("cifar10-features", directory=folder)


def test_without_weights_the_error_says_which_file_to_put_where(cache: Path) -> None:
    with pytest.raises(InvalidInput, match=r"cifar100_smallcnn\.npz in .*epsilometer/cifar10-features or in"):
        load("cifar10-features")


def test_features_are_computed_once(folder: Path, cache: Path) -> None:
    np.savez(folder / "cifar100_smallcnn.npz", **weights())
    table = RNG.integers(0, 256, (4, 3073), dtype=np.uint8)
    table[:, 0] = [0, 1, 0, 1]
    for name in (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"):
        (folder / name).write_bytes(table.tobytes())
    wanted = {"classes": ["automobile", "airplane"], "per_class": 3, "directory": folder}
    data = load("cifar10-features", **wanted)
    assert isinstance(data, FeatureDataset)
    assert data.x.shape == (6, 128)
    assert data.raw.fingerprint() == load("cifar10", **wanted).fingerprint()
    (kept,) = (cache / "cifar10-features").iterdir()
    written = kept.stat().st_mtime_ns
    assert load("cifar10-features", **wanted).fingerprint() == data.fingerprint()
    assert kept.stat().st_mtime_ns == written


def other_shape() -> Extractor:
    """Grey images, kernels of 5, 3 and 1, four layers with strides of their own."""
    sizes = ((4, 1, 5), (6, 4, 3), (5, 6, 1), (7, 5, 3))
    layers = tuple(
        (RNG.normal(0, 0.1, (out, inner, size, size)).astype(np.float32), RNG.normal(0, 0.1, out).astype(np.float32))
        for out, inner, size in sizes
    )
    return Extractor("own", RNG.uniform(100, 150, (1, 9, 12)).astype(np.float32), layers, (1, 2, 1, 3))


def test_any_shape_is_read_from_its_file(folder: Path) -> None:
    made = other_shape()
    np.savez(folder / "own.npz", **made.to_arrays())
    again = Extractor.from_npz(folder / "own.npz", "own")
    images = RNG.random((3, 108)).astype(np.float32)
    np.testing.assert_array_equal(made.features(images), again.features(images))
    assert made.features(images).shape == (3, 7)
    assert again.strides == (1, 2, 1, 3)
    assert again.fingerprint() == made.fingerprint()


def test_strides_are_part_of_what_a_network_is(extractor: Extractor) -> None:
    other = Extractor(extractor.name, extractor.mean, extractor.layers, (2, 2, 1))
    assert other.fingerprint() != extractor.fingerprint()
    image = RNG.random((1, 3072))
    assert np.abs(other.features(image) - extractor.features(image)).max() > 1e-3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"augmented.strides": np.array([1, 2])}, r"strides \(1, 2\)"),
        ({"augmented.strides": np.array([1, 2, 0])}, r"strides \(1, 2, 0\)"),
        ({"augmented.strides": np.array(["a", "b", "c"])}, "weights of a network"),
        ({"augmented.conv3.weight": np.zeros((128, 60, 3, 3), np.float32)}, "fitting the one before"),
        ({"augmented.conv2.weight": np.zeros((64, 32, 2, 2), np.float32)}, "fitting the one before"),
        ({"augmented.conv4.weight": np.zeros((9, 128, 3, 3)), "augmented.conv4.bias": np.zeros(9)}, "strides"),
        ({"mean": np.zeros((3, 16, 16), np.float32)}, r"images of 3 × 32 × 32 \(its are \(3, 16, 16\)\)"),
    ],
)
def test_networks_that_do_not_fit_are_refused(folder: Path, change: dict[str, np.ndarray], words: str) -> None:
    np.savez(folder / "cifar100_smallcnn.npz", **(weights() | change))
    with pytest.raises(InvalidInput, match=words) as caught:
        load("cifar10-features", directory=folder)
    assert "\n" not in str(caught.value)


def test_a_file_without_the_network_says_which_it_has(folder: Path) -> None:
    np.savez(folder / "cifar100_smallcnn.npz", **{"mean": np.zeros(3), "plain.conv1.weight": np.zeros(3)})
    with pytest.raises(InvalidInput, match=r"a network 'augmented' \(it has plain\)"):
        load("cifar10-features", directory=folder)
    with (folder / "cifar100_smallcnn.npz").open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(InvalidInput, match="an npz file"):
        load("cifar10-features", directory=folder)


def test_a_poison_is_the_best_of_several_starts(extractor: Extractor, monkeypatch: pytest.MonkeyPatch) -> None:
    """From some natural images the descent ends far above where it ends from others."""
    monkeypatch.setattr(feature_poison, "STEPS", 20)
    data = featured(extractor)
    _, _, directions = np.linalg.svd(data.x, full_matrices=False)
    signs = np.where(np.arange(len(directions)) < round(len(directions) * 0.1), 1.0, -1.0)

    def height(starts: int, seed: int) -> float:
        monkeypatch.setattr(feature_poison, "STARTS", starts)
        image = feature_poison.image_along(data, np.random.SeedSequence(seed))
        assert 0 <= image.min() <= image.max() <= 1
        found = data.extractor.features(image[None])[0]
        return float((np.abs(directions @ found) * signs).sum() / np.linalg.norm(found))

    single = [height(1, seed) for seed in range(4)]
    lowest = height(8, 1)  # from all natural images, whatever the seed
    np.testing.assert_allclose(height(8, 2), lowest, atol=1e-3)
    assert lowest < min(single) + 1e-3
    assert lowest < max(single) - 0.01


def test_a_start_without_features_is_not_the_best(extractor: Extractor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its height is 0/0, which a search for the lowest takes for the lowest."""
    import torch

    monkeypatch.setattr(feature_poison, "STEPS", 1)
    monkeypatch.setattr(feature_poison, "STARTS", 8)
    data, calls = featured(extractor), extractor.module()

    class Blind(torch.nn.Module):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            seen = torch.ones(len(images), 1)
            seen[3] = 0.0  # of one start nothing is seen
            return calls(images) * seen

    monkeypatch.setattr(Extractor, "module", lambda _: Blind())
    found = feature_poison.image_along(data, np.random.SeedSequence(0))
    assert np.isfinite(found).all()
