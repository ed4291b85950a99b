"""Processes that take the steps of one training together: one training with one verdict, and not one for each rank.

Its noise is that of the sum over all ranks, wherever it was drawn; its batches are those of all ranks; a check that
fails on one rank fails. What a rank gave to a step comes sealed (`sealed`); so a recording that is judged again has the
ranks one by one, and says that several processes share a step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.bounds import NoiseLaw
from epsilometer.noise_sample import NoiseSample
from epsilometer.watching.checks.catalogue import judge
from epsilometer.watching.checks.check import Check, Status
from epsilometer.watching.facts import Kept, Noise, Sampling, WeighedNoise
from epsilometer.watching.facts_together import Ranks, shared_records
from epsilometer.watching.recording import Shared
from epsilometer.watching.sealed import unseal
from epsilometer.watching.watched import Watched

Key = tuple[str, int]
Training = TypeVar("Training", bound=Watched)
_TOLERANCE = 1e-3  # of what is left of a reduced gradient beside the sum of what ranks gave
_COINS = 8  # steps in which batches of all ranks have the same sizes, which is no chance
_ORDER = (Status.PASSED, Status.IGNORED, Status.NOT_APPLICABLE)  # of answers that are not failures: the first is said


@dataclass(frozen=True)
class _Part:
    """What one rank gave to one step."""

    told: Shared
    total: Floats
    noisy: Floats
    arrived: Floats
    batch: frozenset[int] | None


def merged(trainings: Mapping[Key, Training]) -> dict[Key, Training]:
    """The same, with those of all ranks as one, under the key of the first. Ranks of which some are missing stay, and
    those that do not step together."""
    found = dict(trainings)
    for ranks in _groups(trainings):
        parts = [trainings[key] for key in ranks]
        steps = _steps(parts) if len(parts) == parts[0].shared[0].world else []
        if steps and _one_gradient(steps):
            _merge(parts, steps)
            for key in ranks[1:]:
                del found[key]
    return found


def _groups(trainings: Mapping[Key, Watched]) -> Iterator[list[Key]]:
    """Ranks that were started together, in order. A script may start some after others have ended."""
    found: dict[tuple[str, int], dict[int, list[Key]]] = {}
    for key, one in sorted(trainings.items(), key=lambda pair: _begun(pair[0])):
        if one.shared:
            told = one.shared[0]
            found.setdefault((told.group, told.training), {}).setdefault(told.rank, []).append(key)
    for ranks in found.values():
        for turn in range(max(map(len, ranks.values()))):
            yield [keys[turn] for _, keys in sorted(ranks.items()) if turn < len(keys)]


def _begun(key: Key) -> int:
    """When its process began to record, as the name of the file says."""
    name = key[0].rpartition("-")[2].partition(".")[0]
    return int(name) if name.isdecimal() else 0


def _steps(parts: Sequence[Watched]) -> list[list[_Part]]:
    """Of every step that all ranks have told of, what each of them gave."""
    by_rank = [{told.step: told for told in one.shared} for one in parts]
    common = sorted(set(by_rank[0]).intersection(*by_rank[1:]))
    found = []
    for step in common:
        with suppress(ValueError):  # of a damaged recording
            found.append([_opened(told[step]) for told in by_rank])
    return found


def _one_gradient(steps: list[list[_Part]]) -> bool:
    """Do all ranks step with the same, or each with its own part of it? Else each trains by itself, be it with the same
    random numbers: with what it has noised itself."""
    if steps[0][0].told.sharded:
        return True
    same = all(np.array_equal(step[0].arrived, one.arrived) for step in steps for one in step)
    return same and not all(_multiple(one.noisy, one.arrived) for step in steps for one in step)


def _multiple(given: Floats, arrived: Floats) -> bool:
    usable = given != 0
    factor = float(np.median(arrived[usable] / given[usable])) if usable.any() else 0.0
    return float(np.linalg.norm(arrived - factor * given)) <= _TOLERANCE * float(np.linalg.norm(arrived))


def _opened(told: Shared) -> _Part:
    content, size = unseal(told.once, told.sealed), sum(told.sizes)
    values = np.frombuffer(content[: 24 * size], "<f8").reshape(3, size)
    if not np.isfinite(values).all():
        raise ValueError("sealed with another key, or no numbers")
    batch = np.frombuffer(content[24 * size :], "<i8")
    total, noisy, arrived = values
    return _Part(told, total, noisy, arrived, frozenset(batch.tolist()) if told.knows_batch else None)


def _merge(parts: Sequence[Watched], steps: list[list[_Part]]) -> None:
    """Into the first of them."""
    lead, law, names = parts[0], NoiseLaw(1.0 - parts[0].levels.noise), list[str]()
    weighed: dict[str, WeighedNoise] = {}
    coarse = any(one.facts.noise is not None and one.facts.noise.coarse for one in parts)
    for step in steps:
        sample = None if coarse or not step[0].told.scale > 0 else _sample(step)
        law.add(sample)
        if sample is not None:
            names += [name for name in sample.names if name not in names]
            _weigh(weighed, sample)
    same_data, records = _data(parts)
    ranks = _ranks(steps, parts, certain=same_data)
    lead.noise_law, lead.parameters, lead.ranks = law, names, len(parts)
    noise, sampling = _noise_facts(parts, list(weighed.values())), _sampling(parts, records, ranks.same_coins)
    known = {"noise": noise, "sampling": sampling}
    facts = [
        replace(
            one.facts, several_processes=False, noise=noise, sampling=sampling, kept=_kept(steps), ranks=ranks,
            troubles={part: why for part, why in one.facts.troubles.items() if known.get(part) is None},
        )
        for one in parts
    ]  # fmt: skip
    lead.checks = _worst([judge(one) for one in facts])
    lead.facts = facts[0]
    lead.lost = any(one.lost for one in parts)
    lead.ended = all(one.ended for one in parts)


def _sample(step: list[_Part]) -> NoiseSample:
    """The noise of the reduced gradient: of all ranks together, or of each one's own part; it was read off sums in
    float32 at least, the largest of which is taken for all ranks."""
    first = step[0].told
    if first.sharded:
        noise, sums = dict[str, Floats](), dict[str, Floats]()
        for part in step:
            for into, values in ((noise, part.noisy - part.total), (sums, part.total)):
                for name, own in _by_name(part.told, values).items():
                    into[f"{name} (rank {part.told.rank})"] = own
    else:
        noise = _by_name(first, np.sum([part.noisy - part.total for part in step], axis=0))
        sums = _by_name(first, np.max([np.abs(part.total) for part in step], axis=0))
    return NoiseSample.of(noise, first.scale, {name: one.astype(np.float32) for name, one in sums.items()})


def _by_name(told: Shared, values: Floats) -> dict[str, Floats]:
    return dict(zip(told.names, np.split(values, np.cumsum(told.sizes)[:-1]), strict=True))


def _weigh(weighed: dict[str, WeighedNoise], sample: NoiseSample) -> None:
    for name, size, squares in zip(sample.names, sample.sizes, sample.squares, strict=True):
        before = weighed.get(name, WeighedNoise(name, size, 0, 0.0, float("inf"), 0))
        weighed[name] = WeighedNoise(
            name,
            size,
            before.steps + 1,
            before.squares + squares,
            min(before.least, squares),
            before.missing + (squares == 0.0),
        )


def _noise_facts(parts: Sequence[Watched], weighed: list[WeighedNoise]) -> Noise | None:
    own = [one.facts.noise for one in parts if one.facts.noise is not None]
    if not own:
        return None
    drawn = min(one.least_drawn for one in own)
    return Noise(0 if weighed else own[0].silent, own[0].coarse, drawn, weighed, own[0].comparisons)


def _kept(steps: list[list[_Part]]) -> Kept:
    """Is the gradient of the step a multiple of what ranks made of it?"""
    changed: dict[str, int] = {}
    for step in steps:
        factor = _factor(step)
        for part in step if step[0].told.sharded else step[:1]:
            given = part.noisy if part.told.sharded else np.sum([one.noisy for one in step], axis=0)
            left = _by_name(part.told, part.arrived - factor * given)
            whole = _by_name(part.told, part.arrived)
            for name, rest in left.items():
                if np.linalg.norm(rest) > _TOLERANCE * np.linalg.norm(whole[name]):
                    changed[name] = changed.get(name, 0) + 1
    return Kept(len(steps), changed)


def _factor(step: list[_Part]) -> float:
    """Between the sum of what ranks gave and the gradient of the step; that of most coordinates, if it is of all."""
    if step[0].told.sharded:
        given, arrived = (np.concatenate([getattr(part, name) for part in step]) for name in ("noisy", "arrived"))
    else:
        given, arrived = np.sum([part.noisy for part in step], axis=0), step[0].arrived
    usable = given != 0
    return float(np.median(arrived[usable] / given[usable])) if usable.any() else 0.0


def _divided(steps: list[list[_Part]]) -> float:
    """By what the gradient of a step was divided, beside what Opacus does."""
    told = [(step[0].told, _factor(step)) for step in steps]
    found = [
        1.0 / (factor * one.divisor * (one.world if one.averaged and not one.sharded else 1))
        for one, factor in told
        if factor > 0
    ]
    return float(np.median(found)) if found else 1.0


def _ranks(steps: list[list[_Part]], parts: Sequence[Watched], *, certain: bool) -> Ranks:
    known = [step for step in steps if all(part.batch is not None for part in step)]
    twice = [(step[0].told.step, _on_two(step)) for step in known]
    first = next(((at, many) for at, many in twice if many), (0, 0))
    sizes = [one.facts.sampling.sizes for one in parts if one.facts.sampling is not None]
    alike = len(sizes) > 1 and all(one == sizes[0] for one in sizes[1:])
    same = alike and len(sizes[0]) >= _COINS and len(set(sizes[0])) > 1
    world = steps[0][0].told.world
    return Ranks(world, len(steps), len(known), first[1], first[0], certain, same, _divided(steps))


def _on_two(step: list[_Part]) -> int:
    """Records that two ranks have in this step."""
    batches = [part.batch or frozenset() for part in step]
    return sum(map(len, batches)) - len(frozenset().union(*batches))


def _data(parts: Sequence[Watched]) -> tuple[bool, int]:
    """Have all ranks the same records, for certain? And how many there are."""
    spent = [one.facts.spent for one in parts]
    known = [one for one in spent if one is not None and one.sample]
    own = max((one.records for one in spent if one is not None), default=0)
    if len(known) < len(parts):
        return False, own
    first = known[0]
    shared = [shared_records(first.sample, first.records, one.sample, one.records) for one in known[1:]]
    if not any(shared):  # each rank has data of its own
        return False, sum(one.records for one in known)
    return all(one.sample == first.sample for one in known), own


def _sampling(parts: Sequence[Watched], records: int, same_coins: bool) -> Sampling | None:
    """Batches of all ranks; where these draw the same coins, of one of them, which has its share of the records."""
    own = [one.facts.sampling for one in parts if one.facts.sampling is not None]
    if not own:
        return None
    first = own[0]
    if same_coins:
        return replace(first, records=records // len(parts))
    sizes = [sum(step) for step in zip(*(one.sizes for one in own), strict=False)]
    divisor = None if first.divisor is None else first.divisor * len(parts)
    return replace(first, records=records or first.records, sizes=sizes, divisor=divisor)


def _worst(of_ranks: Iterable[list[Check]]) -> list[Check]:
    """Of each check, the answer of the rank where it failed; else of one that has an answer."""
    found: dict[str, list[tuple[int, Check]]] = {}
    for rank, checks in enumerate(of_ranks):
        for check in checks:
            found.setdefault(check.name, []).append((rank, check))
    return [_said(answers) for answers in found.values()]


def _said(answers: list[tuple[int, Check]]) -> Check:
    failures = [(rank, check) for rank, check in answers if check.status is Status.FAILED]
    if failures:
        rank, worst = min(failures, key=lambda one: one[1].basis.value == "hint")
        where = "" if len(failures) == len(answers) else f"rank {rank}: "
        return replace(worst, reason=f"{where}{worst.reason}")
    return min((check for _, check in answers), key=lambda one: _ORDER.index(one.status))
