"""`epsilometer extractor`."""

from __future__ import annotations

import io
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epsilometer.cli.manner import AsJson, Quiet
from epsilometer.cli.output import emit_json, say
from epsilometer.cli.plan import DataDir
from epsilometer.cli.progress import downloads
from epsilometer.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from epsilometer.data import Dataset, Extractor
    from epsilometer.training import Pretrained

_PROBED = {
    "test": 200,
    "train": 1000,
}  # records a class that a probe is judged by and learns from, if there are so many


def extractor(
    out: Annotated[Path, typer.Option(help="A new file for the weights, .npz.")],
    data: Annotated[str, typer.Option(help="Images to train on, see `epsilometer list datasets`.")] = "cifar100",
    channels: Annotated[str, typer.Option(help="Of each convolution, separated by commas.")] = "32,64,128",
    strides: Annotated[str, typer.Option(help="As many as there are channels.")] = "1,2,2",
    epochs: Annotated[int, typer.Option(help="How often every image is seen; 0 gives random weights.")] = 20,
    batch: Annotated[int, typer.Option(help="Images in a step.")] = 128,
    learning_rate: Annotated[float, typer.Option(help="The highest of its cycle.")] = 3e-3,
    per_class: Annotated[int | None, typer.Option(help="Only the first images of each class.")] = None,
    flips: Annotated[bool, typer.Option(help="Left and right are the same; not for letters or digits.")] = True,
    probe: Annotated[
        str | None, typer.Option(help="Images on which a linear classifier tells how good the features are.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Weights, order and variations follow from it.")] = 0,
    data_dir: DataDir = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Pre-train a feature extractor on public images, for trainings on frozen features.

    A few convolutions and a global average. Named `cifar100_smallcnn.npz`, in a directory for data, its file serves
    `data.name = "cifar10-features"`. Which shape it has is read from the file.

    Examples:

    - `epsilometer extractor --out cifar100_smallcnn.npz --probe cifar10` gets CIFAR-100 if it is not there.

    - `epsilometer extractor --channels 16,32 --strides 2,2 --epochs 5 --per-class 100 --out small.npz`
    """
    from epsilometer import validate
    from epsilometer.seeds import Stream, seed_of
    from epsilometer.training import Pretraining, pretrain

    _require_new(out)  # fail before the training, not after it
    settings = Pretraining(
        _numbers("channels", channels), _numbers("strides", strides), epochs, batch, learning_rate, flips
    )
    start = seed_of(validate.seed("seed", seed), Stream.PRETRAINING, 0)
    load = _loader(data_dir, quiet)
    images = load("data", data, "train", per_class)
    probed = None if probe is None else _to_probe(load, probe)
    if probed is not None and probed[0].shape != images.shape:
        shape = " × ".join(str(one) for one in images.shape)
        raise InvalidInput("--probe", probe, f"images of {shape}, as {images.name} has")
    begun = time.monotonic()
    made = pretrain(images, settings, start, None if quiet else _told(epochs, begun))
    found: dict[str, Any] = {
        "data": images.name,
        "records": len(images),
        "classes": images.classes,
        "channels": list(settings.channels),
        "strides": list(settings.strides),
        "epochs": epochs,
        "seed": seed,
        "train_accuracy": made.accuracy(images),
        "test_accuracy": _test_accuracy(made, data, data_dir),
        "seconds": round(time.monotonic() - begun, 1),
    }
    if probed is not None:
        random = pretrain(images, Pretraining(settings.channels, settings.strides, epochs=0), start)
        accuracies = {
            name: _probed(one, *probed) for name, one in (("features", made.extractor), ("random", random.extractor))
        }
        found["probe"] = {"data": probed[0].name, "records": len(probed[0]), **accuracies}
    _write(out, made.extractor)
    found |= {"sha256": made.extractor.fingerprint(), "file": str(out)}
    if as_json:
        emit_json(found)
    else:
        print(_summary(found))
    say(f"wrote {out}")


def _require_new(path: Path) -> None:
    if path.suffix != ".npz":
        raise InvalidInput("--out", str(path), "a name that ends in .npz")
    if os.path.lexists(path):
        raise InvalidInput("--out", str(path), "a file that does not exist yet", "name another")
    if not path.parent.is_dir():
        raise InvalidInput("--out", str(path), "a file in an existing directory", f"make {path.parent} first")


def _numbers(option: str, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(word) for word in text.split(","))
    except ValueError:
        raise InvalidInput(option, text, "whole numbers separated by commas", "such as 32,64,128") from None


def _loader(data_dir: Path | None, quiet: bool) -> Callable[[str, str, str, int | None], Dataset]:
    from epsilometer.data import load

    def get(option: str, name: str, part: str, per_class: int | None) -> Dataset:
        names = {"data.directory": "--data-dir", "data.per_class": "--per-class", "data.name": f"--{option}"}
        try:
            found = load(name, part=part, per_class=per_class, directory=data_dir, progress=downloads(quiet))
        except InvalidInput as error:
            if error.argument == "data.part":
                raise InvalidInput(f"--{option}", name, "a data set with a test part") from None
            raise error.renamed(names[error.argument]) if error.argument in names else error from None
        if len(found.shape) not in (2, 3):
            raise InvalidInput(f"--{option}", name, "images", "such as cifar100 or cifar10")
        return found

    return get


def _to_probe(load: Callable[[str, str, str, int | None], Dataset], name: str) -> tuple[Dataset, Dataset]:
    found = {}
    for part, limit in _PROBED.items():
        try:
            found[part] = load("probe", name, part, limit)
        except InvalidInput as error:
            if error.argument != "--per-class":
                raise
            found[part] = load("probe", name, part, None)  # it has fewer
    return found["train"], found["test"]


def _told(epochs: int, begun: float) -> Callable[[int, float], None]:
    def told(done: int, loss: float) -> None:
        left = (time.monotonic() - begun) * (epochs - done) / done
        say(f"epoch {done} of {epochs}: loss {loss:.3f}, {left:.0f} s left")

    return told


def _test_accuracy(made: Pretrained, name: str, data_dir: Path | None) -> float | None:
    """On the official test part, or on what an extract has of it; nothing is downloaded for that."""
    from epsilometer.data import load

    for limit in (None, _PROBED["test"]):
        with suppress(InvalidInput):
            return made.accuracy(load(name, part="test", per_class=limit, directory=data_dir, download=False))
    return None


def _probed(extractor: Extractor, train: Dataset, test: Dataset) -> float:
    from epsilometer.training import linear_probe

    return linear_probe(extractor.features(train.x), train.y, extractor.features(test.x), test.y)


def _write(path: Path, extractor: Extractor) -> None:
    import numpy as np

    from epsilometer.runs.atomic_files import write_whole

    content = io.BytesIO()
    np.savez(content, **extractor.to_arrays())  # type: ignore[arg-type]
    write_whole(path, content.getvalue())


def _summary(found: dict[str, Any]) -> str:
    test = "" if found["test_accuracy"] is None else f", {100 * found['test_accuracy']:.1f} % of its test images"
    lines = [
        f"{found['channels'][-1]} features from convolutions of {found['channels']} channels, strides "
        f"{found['strides']}, trained on {found['data']} ({found['records']} images, {found['epochs']} epochs, "
        f"{found['seconds']:.0f} s)",
        f"right: {100 * found['train_accuracy']:.1f} % of these images{test}",
    ]
    if "probe" in found:
        probe = found["probe"]
        lines.append(
            f"a linear classifier on {probe['data']}: {100 * probe['features']:.1f} % with these features, "
            f"{100 * probe['random']:.1f} % with random weights"
        )
    return "\n".join(lines)
