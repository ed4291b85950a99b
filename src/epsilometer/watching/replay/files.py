"""Checkpoints that runs have written, compared: what is released depends on the data through noisy gradients only."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

SUFFIXES = (".pt", ".pth", ".ckpt", ".bin", ".npy", ".npz", ".safetensors")
_MOST = 1 << 30  # bytes of a file that is looked into
_TOLERANCE = 1e-6  # of the larger number


class Written:
    """Checkpoints of a run's directory: those that were not there when it began, or are others now."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._before = dict(self._all())

    def now(self) -> dict[str, Path]:
        """By name."""
        return {
            name: self._directory / name
            for name, stamp in self._all()
            if self._before.get(name) != stamp and stamp[1] <= _MOST
        }

    def _all(self) -> Iterator[tuple[str, tuple[int, int]]]:
        for path in sorted(self._directory.rglob("*")):
            if path.suffix in SUFFIXES and path.is_file() and not path.is_symlink():
                found = path.stat()
                yield str(path.relative_to(self._directory)), (found.st_mtime_ns, found.st_size)


def unlike(one: Path, other: Path) -> str | None:
    """Where two checkpoints have other arrays: a name; empty if they have the same, none if that cannot be told."""
    if one.read_bytes() == other.read_bytes():
        return ""
    first, second = _arrays(one), _arrays(other)
    if first is None or second is None:
        return None
    for name in first.keys() | second.keys():
        if name not in first or name not in second or not _same(first[name], second[name]):
            return name
    return ""


def _same(one: Any, other: Any) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype.kind not in "fc":
        return bool((one == other).all())
    scale = max(float(np.abs(one).max(initial=0.0)), float(np.abs(other).max(initial=0.0)))
    return bool(np.allclose(one, other, rtol=0.0, atol=_TOLERANCE * scale, equal_nan=True))


def _arrays(path: Path) -> dict[str, Any] | None:
    """Those of a file, by name; none of one that cannot be read without running what it holds."""
    with suppress(Exception):
        if path.suffix == ".npy":
            return {"array": np.load(path, allow_pickle=False)}
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as found:
                return {name: found[name] for name in found.files}
        if path.suffix != ".safetensors" and zipfile.is_zipfile(path):
            import torch

            return dict(tensors_of(torch.load(path, map_location="cpu", weights_only=True), ""))
    return None


def tensors_of(found: Any, name: str) -> Iterator[tuple[str, Any]]:
    """All arrays in it, by name. Scalars are figures for people, such as the last loss: no part of a model."""
    import torch

    if isinstance(found, torch.nn.Module):
        for part, tensor in (*found.named_parameters(), *found.named_buffers()):
            yield from tensors_of(tensor, f"{name}.{part}" if name else part)
    elif isinstance(found, torch.Tensor):
        along = {f"{name}.{key}": value for key, value in vars(found).items() if isinstance(value, torch.Tensor)}
        for full, tensor in {name: found, **along}.items():
            wide = torch.float64 if tensor.is_floating_point() else tensor.dtype
            yield full, tensor.detach().cpu().to(wide).numpy()
    elif isinstance(found, Mapping):
        for key, value in found.items():
            yield from tensors_of(value, f"{name}.{key}" if name else str(key))
    elif isinstance(found, list | tuple):
        for at, value in enumerate(found):
            yield from tensors_of(value, f"{name}[{at}]")
