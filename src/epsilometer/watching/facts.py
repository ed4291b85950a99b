"""What hooks tell of a training when it ends: plain data, by part. Checks are functions of these, wherever they are.

A framework fills the parts that it knows. `troubles` says of a part that it should have and has not, why.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from epsilometer.watching.facts_together import Ranks, Spent, Together


@dataclass(frozen=True)
class Sampling:
    """How batches came to be, and how large they were."""

    poisson: bool  # as was asked for, or by a sampler that is known to
    records: int | None  # in the data set
    loader_rate: float | None  # of the loader that was made, if it says one
    loader_batches: int | None
    sizes: list[int]
    divisor: float | None  # of noisy sums, where they are divided
    own: str = ""  # a sampler of the script's own, of which nobody knows how it draws
    by_hand: bool = False  # nobody was asked for Poisson sampling


@dataclass(frozen=True)
class Batches:
    """Which records were in batches: of how many steps that is known, how many physical batches Poisson sampling drew,
    and how many something else; the batches from the first on without a record that came before, and the logarithm of
    the chance of that, were they drawn independently; two steps with the same batch, and of that."""

    known: int
    poisson: int
    other: int
    apart: int
    log_chance: float
    same: list[float]  # the steps and the logarithm; empty if there are none
    fewer: int  # physical batches with fewer gradients than records, and
    more: int  # with more
    plain: int = 0  # of `other`, batches of gradients that torch's own samplers drew, shuffled or in order
    times: int = 0  # so many gradients for every record, in all of them; 0 if there is no such number


@dataclass(frozen=True)
class Copies:
    """Of a data set that was put together: different records, those that are in it several times, and how often."""

    records: int
    several: int
    most: int


@dataclass(frozen=True)
class Accounted:
    """What an accountant was told: runs of steps as [noise multiplier, sample rate, number], in order."""

    history: list[list[float]]
    total: int | None  # steps that it has of this training by the end; none if it keeps no history
    accountant: str  # the name of its class
    mechanism: str | None  # what it computes, if it says so
    asked: float | None  # the noise multiplier that was asked for
    adaptive: bool  # clipping that adapts, and pays for its counts
    final: list[list[float]] = field(default_factory=list)  # the history as the accountant has it in the end, if known

    @property
    def steps(self) -> int:
        return sum(int(number) for *_, number in self.history)


@dataclass(frozen=True)
class Target:
    """An ε that was asked for, and what is spent of it by the script's own accountant."""

    epsilon: float
    delta: float
    spent: float


@dataclass(frozen=True)
class Steps:
    """Private steps: those that were noised, those that came to their end."""

    taken: int
    followed: int


@dataclass(frozen=True)
class WeighedNoise:
    """One parameter's noise, in units of what it should be."""

    name: str
    size: int
    steps: int
    squares: float  # of all steps
    least: float  # sum of squares of the step that has least
    missing: int  # steps without any


@dataclass(frozen=True)
class Comparison:
    """The two pieces of noise that are least like independent ones, among `tests` of them. What was measured: a
    `cosine` in n coordinates, a `square` sum of n, too `little` of one, or a `sum` with variance and a typical one."""

    measure: str
    values: list[float]
    tests: int
    what: str
    same: bool  # all of it is repeated, not a part


@dataclass(frozen=True)
class Noise:
    """The noise of a training as it was added."""

    silent: int  # steps in which none was asked for
    coarse: str  # a type of number too coarse to weigh noise in
    least_drawn: float  # noise multiplier while it was drawn, over the accounted one: the least of all steps
    parameters: list[WeighedNoise]
    comparisons: list[Comparison]


@dataclass(frozen=True)
class Seeds:
    """What is known of where noise comes from; `first` are some values of the first steps, in units of deviations."""

    guessed: int | None  # a seed with which a new generator gives the first step's noise
    each_step: bool  # and the second step's as well
    seed: int | None  # of the generator, as it says itself
    own_generator: bool
    first: list[list[float]]
    again: list[list[int]] = field(default_factory=list)  # [step, seed] of a generator that was seeded in the training
    back: list[int] = field(default_factory=list)  # a step, and that at which its generator had been before


@dataclass(frozen=True)
class Kept:
    """Steps whose gradients were compared, and in how many of them each parameter's was another one."""

    steps: int
    changed: dict[str, int]


@dataclass(frozen=True)
class Clipping:
    """Crafted records through the script's own clipping."""

    limit: float
    huge: float  # the norm of a record's gradient, and
    added: float  # what it adds, in all parameters or in any
    alone: list[float]  # to each parameter, where its gradient is there only; empty if that is not known
    not_finite: list[str]  # of NaN and infinity, those that make the sum no number
    idle: float = 0.0  # what comes of a record without a gradient
    # By how much one of several records moves the sum: [times the clip norm that its gradient has, how far].
    ladder: list[list[float]] = field(default_factory=list)


@dataclass(frozen=True)
class Shares:
    """What single records added to the sums of a training: how many sums were looked at, of how many of them it is not
    known, and the part that was longest beside the norm for which its noise was made."""

    looked: int
    unexplained: int
    moved: float
    norm: float  # of that record's gradient
    limit: float
    step: int
    not_finite: int  # records with NaN or infinity in the first step that had any
    not_finite_step: int


@dataclass(frozen=True)
class GhostNorms:
    """[clipped at, noise is made for], all pairs that occurred."""

    pairs: list[list[float]]


@dataclass(frozen=True)
class LayerNorms:
    """Norms of single records for each kind of layer: the share of the true one that was found, of the smallest."""

    found: dict[str, float]  # "name.parameter (kind)" → share
    kinds: list[str]
    unknown: list[str]


@dataclass(frozen=True)
class Size:
    """Batches, and the divisor if there is one, with as many records as there are, one more and one less."""

    records: int
    batches: list[int]  # with records, records + 1, records − 1
    divisors: list[int] | None  # none if set by hand, or nothing is divided
    rate_by_hand: bool


@dataclass(frozen=True)
class Mixing:
    """Layers of batch normalisation, and by how much a record's output changes with another record."""

    batch_norms: list[str]
    influence: float | None
    unknown: str  # why it is not known


@dataclass(frozen=True)
class Divisors:
    """Of some steps: [records in the batch, what the noisy sum was divided by, the learning rate]."""

    steps: list[list[float]]


@dataclass(frozen=True)
class Between:
    """Between two private steps: how often weights were compared, after which step something had moved first, and what;
    and where the code of the optimizer within reads sums before noise."""

    compared: int
    step: int
    moved: str
    reads: str


@dataclass(frozen=True)
class Moved:
    """What moved between beginning and end."""

    private: int  # parameters of the private optimizer
    moved: int
    unprotected: int  # trainable ones that it does not have
    unprotected_moved: list[str]
    buffers: int
    buffers_moved: list[str]


@dataclass(frozen=True)
class OtherSteps:
    """Steps of optimizers on the model's parameters that were not private: [kind, is it the inner one, how many]; and
    how many were private ones of other trainings."""

    found: list[list[Any]]
    private: int = 0


@dataclass(frozen=True)
class Keys:
    """Random keys of a state: whether one of the first is that of seed 0, and how many steps had a key once more."""

    first_is_zero: bool | None
    repeated: int
    same_noise: int  # steps with the noise of the step before
    same_leaf: int  # steps in which two leaves had the same noise
    remade: int = 0  # new states with the same keys, each after one step with the last


@dataclass(frozen=True)
class Leaves:
    """Leaves of gradients that were looked at for noise, and those without any, though what comes in goes out."""

    number: int
    silent: list[str]


@dataclass(frozen=True)
class Rows:
    """Numbers of records that came into a transformation which divides by them."""

    sizes: list[int]


@dataclass(frozen=True)
class MovedSums:
    """How far one kind of changed record moved the sums of steps that it was in, in clip norms: the largest, where, and
    in how many steps by more than the `bound`."""

    kind: str
    steps: int  # in which it moved the sum at all
    bound: float
    most: float
    step: int | None
    tensor: str
    over: int


@dataclass(frozen=True)
class Unlike:
    """Something that a changed record has changed beside the sums that it was in, without noise: what, by how much of
    its size (sums: in clip norms), first at which step, and in how many."""

    what: str
    name: str
    step: int
    size: float
    steps: int
    neighbour: str


@dataclass(frozen=True)
class Replay:
    """Runs of the same command with one record changed and the same noisy gradients (`watching.replay`)."""

    steps: int  # of the reference
    neighbours: list[str]
    records: int  # that were changed
    compared: int  # steps of neighbours
    sums: list[MovedSums]
    absent: int  # steps of neighbours without a changed record
    others: Unlike | None  # sums of such steps
    states: list[Unlike]
    ends: list[str]  # neighbours that took another number of steps
    files: list[str]  # that are others in neighbours
    files_compared: int
    tolerance: float  # what differs without any change of a record, times ten; sums, in clip norms
    untested: list[str]  # what was not compared, and why
    before: bool = False  # was a record changed before the training began, too?
    chosen: Unlike | None = None  # of the records that were drawn, a step was taken on others
    figures: list[str] = field(default_factory=list)  # for people, such as a loss, that are others in what was saved
    mixed: Unlike | None = None  # gradients of other records: of how many, by which kind of change


@dataclass(frozen=True)
class Effective:
    """What a loop by hand makes of one record and of random numbers (`watching.replay.effective`): the noise multiplier
    that its steps have at most, by the records that were tried, under replacement counted as twice the clip norm."""

    stated: float
    clip_norm: float | None  # as declared, and
    rate: float | None
    steps: int
    compared: int  # steps that a changed record reached, of all runs
    kinds: dict[str, float]  # of how a record was changed: the multiplier at most
    kind: str  # of the smallest, and
    step: int | None
    silent: list[str]  # tensors that a changed record reached and no random number did
    silent_steps: int
    silent_step: int | None  # the first of these
    whole: bool  # is there no noise in any tensor of these steps?
    clipping: str  # why clipping is to blame for a multiplier that is too small; empty if noise is
    normal: float  # share of the variance that comes of normal numbers which are drawn after a model saw the batch
    repeated: int  # steps with the noise of the step before
    sizes: list[int]  # of batches from the data set that noise protects, where they are known
    records: int | None  # that it has
    loaded: bool  # by a loader, so that batches are what it gave
    untested: list[str]  # what says nothing, and why


@dataclass(frozen=True)
class Facts:
    """All of them, of one training."""

    several_processes: bool = False
    another_mechanism: str = ""  # why it may be right though it is not what accountants of the framework count
    own_optimizer: bool = False  # a class of the script's own
    steps: Steps | None = None
    sampling: Sampling | None = None
    batches: Batches | None = None
    copies: Copies | None = None
    accounted: Accounted | None = None
    target: Target | None = None
    together: Together | None = None
    spent: Spent | None = None
    ranks: Ranks | None = None
    noise: Noise | None = None
    seeds: Seeds | None = None
    kept: Kept | None = None
    clipping: Clipping | None = None
    shares: Shares | None = None
    ghost: GhostNorms | None = None
    layers: LayerNorms | None = None
    size: Size | None = None
    mixing: Mixing | None = None
    divisors: Divisors | None = None
    between: Between | None = None
    moved: Moved | None = None
    others: OtherSteps | None = None
    keys: Keys | None = None
    leaves: Leaves | None = None
    rows: Rows | None = None
    replay: Replay | None = None
    effective: Effective | None = None
    troubles: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """What is known, as JSON has it."""
        return {name: value for name, value in dataclasses.asdict(self).items() if value is not None}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Facts:
        """The same facts; TypeError or KeyError if these are none."""
        return cls(**{name: _read(name, value) for name, value in content.items()})


_PARTS: dict[str, type] = {
    "steps": Steps,
    "sampling": Sampling,
    "batches": Batches,
    "copies": Copies,
    "accounted": Accounted,
    "target": Target,
    "together": Together,
    "spent": Spent,
    "ranks": Ranks,
    "noise": Noise,
    "seeds": Seeds,
    "kept": Kept,
    "clipping": Clipping,
    "shares": Shares,
    "ghost": GhostNorms,
    "layers": LayerNorms,
    "size": Size,
    "mixing": Mixing,
    "divisors": Divisors,
    "between": Between,
    "moved": Moved,
    "others": OtherSteps,
    "keys": Keys,
    "leaves": Leaves,
    "rows": Rows,
    "replay": Replay,
    "effective": Effective,
}
PARTS = tuple(_PARTS)


def _read(name: str, value: Any) -> Any:
    if name not in _PARTS:
        return value
    if name == "noise":
        value = {
            **value,
            "parameters": [WeighedNoise(**one) for one in value["parameters"]],
            "comparisons": [Comparison(**one) for one in value["comparisons"]],
        }
    if name == "replay":
        found = {name: value.get(name) for name in ("others", "chosen", "mixed")}
        value = {
            **value,
            "sums": [MovedSums(**one) for one in value["sums"]],
            "states": [Unlike(**one) for one in value["states"]],
            **{name: None if one is None else Unlike(**one) for name, one in found.items()},
        }
    return _PARTS[name](**value)
