"""Tensors that all runs share: the reference publishes what a step was, and waits until the others have compared it."""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from epsilometer.watching.replay.control import (
    BLOCK_ID,
    ENDED,
    PUBLISHED,
    REQUESTED,
    RUNNING,
    TAKEN,
    Control,
    Gone,
)

BLOCK = "block"
_ALIGNED = 64
_TAKER = 1  # the run that takes requests up
_NONE_WAITED_FOR = 1 << 62


class Block:
    """Tensors of one layout, in a file of their own that is mapped by all."""

    def __init__(self, path: Path, layout: list[list[Any]], size: int) -> None:
        with open(path, "r+b") as file:
            self._memory = mmap.mmap(file.fileno(), max(size, 1))
        self.tensors: dict[str, torch.Tensor] = {}
        for name, dtype, shape, at in layout:
            kind = getattr(torch, dtype)
            number = int(np.prod(shape, dtype=np.int64))
            empty = torch.empty(shape, dtype=kind)
            self.tensors[name] = (
                torch.frombuffer(self._memory, dtype=kind, count=number, offset=at).view(shape) if number else empty
            )


def _layout(tensors: Mapping[str, torch.Tensor]) -> tuple[list[list[Any]], int]:
    rows, at = [], 0
    for name, tensor in tensors.items():
        rows.append([name, str(tensor.dtype).removeprefix("torch."), list(tensor.shape), at])
        at += -(-tensor.numel() * tensor.element_size() // _ALIGNED) * _ALIGNED
    return rows, at


class Lead:
    """The reference's side."""

    def __init__(self, directory: Path, runs: int) -> None:
        self.control, self.runs = Control(directory), runs
        self._block: Block | None = None
        self._rows: list[list[Any]] = []
        self._blocks = 0
        self.published = self.requests = 0
        self.control.set_status(0, RUNNING)

    def wait(self) -> None:
        """Until all others have compared what was published last; those that do not move are let go."""
        for run in range(1, self.runs):
            try:
                with suppress(Gone):
                    self.control.wait(partial(self._compared, run), partial(self._gone, run))
            except TimeoutError:
                self.control.set_status(run, ENDED)

    def alone(self) -> bool:
        return all(self._gone(run) for run in range(1, self.runs))

    def _compared(self, run: int) -> bool:
        return self.control.compared(run) >= self.published

    def _gone(self, run: int) -> bool:
        return self.control.status(run) == ENDED

    def publish(self, tensors: Mapping[str, torch.Tensor], text: Any) -> None:
        """After `wait`: what a step was."""
        rows, size = _layout(tensors)
        if self._block is None or rows != self._rows:
            self._make(rows, size)
        assert self._block is not None
        for name, tensor in tensors.items():
            self._block.tensors[name].copy_(tensor.detach())
        self.control.set_text(0, {**text, "requests": self.requests})
        if self.control.read(TAKEN) == _NONE_WAITED_FOR:  # it waits for this, and takes requests up afterwards
            self.control.write(TAKEN, self.requests)
        self.published += 1
        self.control.write(PUBLISHED, self.published)

    def request(self, text: Any) -> None:
        """The next batch is asked for."""
        with suppress(Gone, TimeoutError):
            self.control.wait(lambda: self.control.read(TAKEN) >= self.requests, partial(self._gone, _TAKER))
        self.control.set_text(1, text)
        self.requests += 1
        self.control.write(REQUESTED, self.requests)

    def end(self) -> None:
        self.control.set_status(0, ENDED)

    def _make(self, rows: list[list[Any]], size: int) -> None:
        old = self.control.directory / f"{BLOCK}-{self._blocks}"
        self._blocks += 1
        path = self.control.directory / f"{BLOCK}-{self._blocks}"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, max(size, 1))  # else a full disk would end the script by SIGBUS
        finally:
            os.close(descriptor)
        path.with_suffix(".json").write_text(json.dumps({"rows": rows, "size": size}))
        self._block, self._rows = Block(path, rows, size), rows
        self.control.write(BLOCK_ID, self._blocks)
        old.unlink(missing_ok=True)


class Follow:
    """Another run's side."""

    def __init__(self, directory: Path, run: int) -> None:
        self.control, self.run = Control(directory), run
        self._block: Block | None = None
        self._id = 0
        self.compared = self.requests = 0
        self.control.set_status(run, RUNNING)

    def step(self) -> tuple[dict[str, torch.Tensor], Any]:
        """What the reference's next step was; Gone if it has taken no more."""
        if self.run == _TAKER and self.control.read(PUBLISHED) == self.compared:
            self.control.write(TAKEN, _NONE_WAITED_FOR)
        self.control.wait(lambda: self.control.read(PUBLISHED) > self.compared, self._lead_gone)
        which = self.control.read(BLOCK_ID)
        if self._block is None or which != self._id:
            path = self.control.directory / f"{BLOCK}-{which}"
            layout = json.loads(path.with_suffix(".json").read_text())
            self._block, self._id = Block(path, layout["rows"], layout["size"]), which
        text = self.control.text(0)
        self.requests = text["requests"]
        return self._block.tensors, text

    def done(self) -> None:
        """It is compared: the next one may come."""
        if self.run == _TAKER:
            self.control.write(TAKEN, self.requests)
        self.compared += 1
        self.control.set_compared(self.run, self.compared)

    def request(self) -> Any:
        """What the reference had when it asked for its next batch; Gone if it did not."""
        self.requests += 1
        self.control.wait(
            lambda: self.control.read(REQUESTED) >= self.requests,
            lambda: self._lead_gone() or self.control.read(PUBLISHED) > self.compared,
        )
        text = self.control.text(1)
        self.control.write(TAKEN, self.requests)
        return text

    def end(self) -> None:
        self.control.set_status(self.run, ENDED)

    def _lead_gone(self) -> bool:
        return self.control.status(0) == ENDED or self.control.status(self.run) == ENDED
