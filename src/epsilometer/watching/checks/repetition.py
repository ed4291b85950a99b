"""Noise that somebody can compute again: the same in a second run, or of a seed that is easily guessed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from epsilometer.watching.checks.check import CHANCE, Check, Finding, Status, failed, not_applicable
from epsilometer.watching.checks.correlation import chance_of

if TYPE_CHECKING:  # the one who compares two runs need not have torch at hand
    from epsilometer.watching.checks.seen import SeenTraining

NAME = "fresh-noise"
_STEPS = 4
_GUESSES = (*range(1001), 1234, 1337, 2020, 2021, 2022, 2023, 2024, 2025, 2026, 4321, 12345, 31337, 54321, 123456,
            1234567, 123456789, 0xDEADBEEF)  # fmt: skip
_REMEDY = "take the noise of released models from secure_mode=True or a generator that is never seeded"


@dataclass(frozen=True)
class NoiseDigest:
    """The first noise of a training, in units of σ·C: enough to say whether two runs share it."""

    values: tuple[tuple[float, ...], ...]

    @classmethod
    def of(cls, seen: SeenTraining) -> NoiseDigest:
        return cls(tuple(tuple(float(x) for x in step) for step in seen.noise.joint[:_STEPS]))

    @classmethod
    def of_values(cls, values: Sequence[Sequence[float]]) -> NoiseDigest:
        return cls(tuple(tuple(step) for step in values))


def compare_runs(first: Sequence[NoiseDigest], second: Sequence[NoiseDigest]) -> Check:
    """Two runs of one script, the second with other seeds: no step may have the same noise in both."""
    pairs = [(a, b) for a, b in zip(first, second, strict=False) if a.values and b.values]
    if not pairs:
        return Check(NAME, Status.NOT_APPLICABLE, "no noise was seen in both runs")
    for number, (a, b) in enumerate(pairs, start=1):
        for step, (x, y) in enumerate(zip(a.values, b.values, strict=False), start=1):
            if _same(np.array(x), np.array(y)):
                where = f"step {step}" + (f" of training {number}" if len(pairs) > 1 else "")
                finding = failed(
                    f"{where} has the same noise in a second run, although torch.manual_seed got another seed",
                    "noise that nobody can compute again", f"its generator has a fixed seed of its own; {_REMEDY}",
                )  # fmt: skip
                return Check(NAME, finding.status, finding.reason)
    return Check(NAME, Status.PASSED, "a second run with other seeds has other noise")


def fresh_noise(seen: SeenTraining) -> Finding:
    """What one run can say of it."""
    if not seen.noise.loud:
        return not_applicable("noise multiplier 0" if seen.steps else "no private step was taken")
    guessed = _guessed(seen)
    if guessed is not None and _fresh_each_step(seen, guessed):
        return failed(
            f"every step draws its noise from a new generator with seed {guessed}",
            "noise that nobody can compute again", _REMEDY,
        )  # fmt: skip
    needed = "needs a second run: epsilometer inspect --second-run"
    if guessed is not None:
        return not_applicable(
            f"{needed}; before a release: the noise is that of a generator with seed {guessed}, which anybody can "
            f"take off; {_REMEDY}"
        )
    if seen.seed is not None and seen.seed < 2**32:
        whose = "the noise generator's" if seen.own_generator else "torch's"
        return not_applicable(
            f"{needed}; before a release: {whose} seed {seen.seed} can be guessed, and with it the noise; {_REMEDY}"
        )
    return not_applicable(needed)


def _guessed(seen: SeenTraining) -> int | None:
    """A seed with which a new generator gives the first step's noise."""
    first = seen.noise.prefixes[0][0]
    return next((seed for seed in _GUESSES if _same(first, _drawn(seed, seen))), None) if seen.noise.on_cpu else None


def _fresh_each_step(seen: SeenTraining, seed: int) -> bool:
    return len(seen.noise.prefixes) > 1 and _same(seen.noise.prefixes[1][0], _drawn(seed, seen))


def _drawn(seed: int, seen: SeenTraining) -> np.ndarray[Any, np.dtype[np.float64]]:
    import torch

    # Torch fills 16 numbers or more in another way than fewer, and the first 32 are the same however many follow.
    size, used = seen.noise.parameters[0].size, len(seen.noise.prefixes[0][0])
    many = used if size == used else used + 16
    drawn = torch.empty(many).normal_(generator=torch.Generator().manual_seed(seed))
    return drawn[:used].double().numpy()


def _same(a: Any, b: Any) -> bool:
    n = min(len(a), len(b))
    length = float(np.linalg.norm(a[:n]) * np.linalg.norm(b[:n]))
    if n < 2 or not length:
        return False
    cosine = np.array(float(np.dot(a[:n], b[:n])) / length)
    return bool(chance_of(cosine, n) < CHANCE / len(_GUESSES))
