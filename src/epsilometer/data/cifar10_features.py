"""CIFAR-10 as a small network sees it that was trained on CIFAR-100 only: 128 features, or as many as it has."""

from __future__ import annotations

import hashlib

import numpy as np

from epsilometer.data.cached import cached
from epsilometer.data.cifar10 import cifar10
from epsilometer.data.features import Extractor, FeatureDataset
from epsilometer.data.files import VARIABLE, cache_directory
from epsilometer.data.request import Request
from epsilometer.data.untrusted_files import broken
from epsilometer.errors import InvalidInput

NAME, WEIGHTS, NET = "cifar10-features", "cifar100_smallcnn.npz", "augmented"
IMAGE = (3, 32, 32)


def cifar10_features(request: Request) -> FeatureDataset:
    """The features of the images asked for; computed once, as ten thousand take ten seconds or more."""
    path = request.files.first(NAME, WEIGHTS)
    if path is None:
        raise InvalidInput(
            "data.name", NAME, f"{WEIGHTS} in {cache_directory() / NAME} or in the directory that {VARIABLE} names",
            f"no address has them: 'epsilometer extractor --out {WEIGHTS}' makes some from CIFAR-100",
        )  # fmt: skip
    extractor = Extractor.from_npz(path, NET)
    if extractor.mean.shape != IMAGE:
        raise broken(path, "a network for images of 3 × 32 × 32", f"its are {extractor.mean.shape}")
    raw = cifar10(request)
    key = hashlib.sha256(f"{raw.fingerprint()} {extractor.fingerprint()}".encode()).hexdigest()
    x = cached(NAME, key, lambda: {"x": extractor.features(raw.x)})["x"].astype(np.float32)
    return FeatureDataset(NAME, x, raw.y, raw.classes, raw.class_names, raw=raw, extractor=extractor)
