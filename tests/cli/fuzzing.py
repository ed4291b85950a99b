"""Command lines and specs that nobody would write, from a seed: the same in every run."""

from __future__ import annotations

import faulthandler
import itertools
import random
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

_Sections = Mapping[str, Mapping[str, str]]  # of a spec

WORDS = (
    "", "0", "1", "-1", "2", "7", "0.5", "1e-5", "1e-300", "1e-400", "1e400", "1e6", "-0", "nan", "inf", "-inf", "1_0",
    "0x10", "9" * 30, "9" * 5000, "true", "ε", "\x1b[31m", "a\nb", "\x07", "[/b]", "%s", "--", "-", "/", ".", "~", "*",
    "/dev/null", "/proc/self/mem", "missing", "missing/also", "scores.csv", "canaries.csv", "spec.toml", "odd.csv",
    "higher", "lower", "either", "replace", "zero-out", "add-remove", "pld", "rdp", "moments", "all", "exact-rank",
    "eprocess", "clopper-pearson", "fixed", "best-on-same", "one-run-point", "one-run", "gradient", "canaries",
    "digits", "own.py:train", "own:score", "own.py", "own:nosuch", "nosuch:train", "broken.py:train", "my.npz",
    "odd.npz", "one.npz", "my.csv", "none", "process", "clipbkd", "api", "learned", "local", "inline", "auto",
    "jagielski-table2", "C=1", "=", "laplace", "gaussian", "own.py:release", "[1, 2]", "[1]", "[[", "null", "as-reals",
    "l2", "consistent", "passed", "sampler", "extra", "model", "run", "watched", "damaged", "127.0.0.1", "::1",
    "0.0.0.0", "99999", "training.steps=20,21", "training.steps=", "model.hidden=[3],[4]", "claim.epsilon=nan", "a.b=1",
    "tiny.toml", "given.toml", "rows.txt", "lira", "rmia", "label-only", "white-box", "loss", "sum", "mean",
    "individual", "dangling", "loop", "ink", "sex", "record", "user", "participant", "sums", "layer", "network",
)  # fmt: skip
SMALL = tuple(word for word in WORDS if not (word.isdecimal() and int(word[:9]) > 20))  # nothing that trains for long
PLACES = (  # where results may be asked for: never where a fuzz must not write
    "", ".", "out", "missing/also", "/dev/null", "/proc/self/mem", "spec.toml", "\x1b[31m", "a\nb", "9" * 5000,
    "[/b]", "~", "out.html", "out.svg", "out.csv", "out.parquet", "out.md", "dangling", "loop",
)  # fmt: skip
FLAGS = (  # no word belongs to them
    "--in-order", "--deterministic", "--not-deterministic", "--quiet", "--help", "--curve", "--stop-when-known",
    "--second-run", "--allow-remote", "--verbose", "--last-layer", "--flips", "--no-flips", "--control", "--no-control",
)  # fmt: skip
WRITES = (  # --json is a file of `inspect` only
    "--out", "--json", "--scores", "--summary", "--junit", "--model-card", "--export",
)  # fmt: skip
NEVER = ("--open", "--help")  # a browser; and what is the same for all
WATCHES = ("watch", "inspect")
_PLANNED = ("--trials", "--confidence", "--seed", "--epsilon", "--noise-scale", "--data-dir")
_OWN = (
    "--data", "--delta", "--score", "--isolation", "--time-limit", "--deterministic", "--not-deterministic",
    "--sample-rate", "--noise-multiplier", "--steps", "--adversary", "--bound", "--record", "--epochs", "--batch-size",
    "--records", "--unit",
)  # fmt: skip
_PLAYED = ("--executor", "--address", "--workers", "--out", "--quiet")
_TOLD = ("--require", "--summary", "--junit", "--model-card", "--mlflow")
_EPOCHS = ("--epochs", "--batch-size", "--records")
_MECHANISM = (
    "--epsilon", "--delta", "--curve", "--sensitivity", "--norm", "--relation", "--unit", "--entries", "--runs",
    "--learning", "--score", "--confidence", "--bound", "--seed", "--deterministic", "--not-deterministic",
    "--neighbours", "--executor", "--workers", "--out", "--quiet",
)  # fmt: skip
_MEMBERSHIP = ("--attack", "--references", "--targets", "--seed", "--data-dir", "--scores", *_PLAYED)
_PROPERTY = (
    "--data", "--property", "--feature", "--rounds", "--batch", "--rehearsals", "--level", "--noise-multiplier",
    "--clip-norm", "--trials", "--control", "--no-control", "--delta", "--confidence", "--seed", "--data-dir", *_PLAYED,
)  # fmt: skip
_RECONSTRUCT = (
    "--data", "--attack", "--noise-multiplier", "--records", "--clip-norm", "--in-sum", "--releases", "--delta",
    "--confidence", "--seed", "--data-dir", *_PLAYED,
)  # fmt: skip
OPTIONS = {
    "account": (
        "--sample-rate", "--steps", "--delta", "--noise-multiplier", "--epsilon", "--accountant", "--relation",
        "--also-noise", "--unit", *_EPOCHS,
    ),
    "bound": (
        "--one-run", "--delta", "--confidence", "--method", "--threshold", "--guesses", "--direction", "--group-size",
        "--relation", "--claim", "--seed", "--in-order", "--counts", "--sample-rate", "--noise-multiplier", "--steps",
        "--unit", *_TOLD,
    ),
    "bound a curve": (
        "--delta", "--relation", "--claim", "--sample-rate", "--noise-multiplier", "--steps", "--method", "--unit",
        *_EPOCHS,
    ),
    "compare": (
        "--one-run", "--delta", "--confidence", "--threshold", "--guesses", "--direction", "--seed", "--counts",
        "--group-size", "--in-order", "--relation", "--unit",
    ),
    "power": ("--epsilon", "--delta", "--confidence", "--true-epsilon", "--probability"),
    "preview": (*_PLANNED, "--adversary", "--bound"),
    "preview own": (*_PLANNED, *_OWN),
    "coverage": ("--repetitions", "--trials", "--confidence", "--bound", "--seed", "--out"),
    "ladder": (*_PLANNED, *_PLAYED),
    "reproduce": ("--trials", "--only", "--seed", "--data-dir", *_PLAYED),
    "audit own": (*_PLANNED, *_OWN, *_PLAYED),
    "init": ("--template",),
    "runs": ("--export", "--nothing"),
    "list": (),
    "audit": (*_PLANNED, *_PLAYED, *_TOLD),
    "mechanism": _MECHANISM,
    "mechanism own": _MECHANISM,
    "watch": (
        "--canaries", "--number", "--confidence", "--require", "--out", "--stop-when-known", "--seed", "--ignore",
        "--delta", "--again", "--assume", "--junit", "--summary", "--neighbours", "--noise-multiplier", "--sample-rate",
        "--clip-norm", "--verbose",
    ),
    "inspect": ("--second-run", "--require", "--confidence", "--ignore", "--assume", "--json"),
    "sweep": ("--vary", "--trials", "--confidence", "--seed", "--data-dir", *_PLAYED),
    "membership": _MEMBERSHIP,
    "membership given": _MEMBERSHIP,
    "instances": (
        "--records", "--rule", "--trainings", "--every", "--order", "--p", "--draws", "--tuples", "--last-layer",
        "--against", "--measure", "--trials", "--confidence", "--seed", "--epsilon", "--data-dir", *_PLAYED,
    ),
    "property": _PROPERTY,
    "reconstruct": _RECONSTRUCT,
    "extractor": (
        "--out", "--data", "--channels", "--strides", "--epochs", "--batch", "--learning-rate", "--per-class",
        "--flips", "--no-flips", "--probe", "--seed", "--data-dir", "--quiet",
    ),
    "report": ("--nothing",),  # --open would
    "diff": ("--out",),
    "serve": ("--address", "--port", "--allow-remote"),
    "": ("--version", "--nothing"),
}  # fmt: skip
GOOD = {
    "account": ["account", "--sample-rate", "0.1", "--steps", "10", "--noise-multiplier", "1.5"],
    "bound": ["bound", "scores.csv"],
    "compare": ["compare", "scores.csv"],
    "power": ["power", "--epsilon", "4"],
    "preview": ["preview", "spec.toml"],
    "init": ["init", "-"],
    "runs": ["runs", "."],
    "list": ["list"],
    "audit": ["audit", "spec.toml"],
    "": [],
    "bound a curve": ["bound", "scores.csv", "--sample-rate", "0.1", "--noise-multiplier", "1.4", "--steps", "100"],
    "preview own": ["preview", "own.py:train", "--data", "my.npz", "--epsilon", "3"],
    "audit own": ["audit", "own.py:train", "--data", "my.npz", "--epsilon", "3"],
    "ladder": ["ladder", "spec.toml"],
    "reproduce": [
        "reproduce",
        "jagielski-table2",
        "--only",
        "C=1",
        "--only",
        "init=fixed",
        "--trials",
        "20",
        "--out",
        "out",
    ],
    "coverage": ["coverage", "--repetitions", "2", "--trials", "20", "--bound", "union-bound"],
    "mechanism": ["mechanism", "laplace", "--epsilon", "1", "--runs", "200"],
    "mechanism own": ["mechanism", "own.py:release", "--epsilon", "1", "--neighbours", "[1, 2]", "[1]"],
    "watch": ["watch"],
    "inspect": ["inspect"],
    "sweep": ["sweep", "spec.toml", "--vary", "training.steps=20,21"],
    "membership": ["membership", "tiny.toml", "--references", "4"],
    "membership given": ["membership", "given.toml"],
    "instances": ["instances", "tiny.toml", "--records", "4", "--trainings", "2"],
    "property": ["property", "shared.toml", "--trials", "4"],
    "reconstruct": ["reconstruct", "rebuilt.toml", "--records", "2"],
    "extractor": ["extractor", "--data", "digits", "--channels", "2", "--strides", "1", "--out", "small.npz"],
    "report": ["report", "run"],
    "diff": ["diff", "run", "watched"],
    "serve": ["serve", "."],
}
TRAIN = (
    "audit",
    "preview",
    "extractor",
    "instances",
    "ladder",
    "mechanism",
    "membership",
    "property",
    "reconstruct",
    "reproduce",
    "sweep",
)  # commands that would, if nobody stopped them
STAY = ("serve",)  # does not end by itself


def command_line(seed: int, commands: Sequence[str] = tuple(GOOD), words: Sequence[str] = WORDS) -> list[str]:
    """A command that would work, with words put in, changed and taken away."""
    rng = random.Random(seed)
    command = rng.choice(commands)
    line = list(GOOD[command])
    for _ in range(rng.randint(0, 4)):
        what = rng.random()
        at = rng.randint(min(1, len(line)), len(line))
        if what < 0.6 and OPTIONS[command]:
            option = rng.choice(OPTIONS[command])
            value = rng.choice(words)
            if option in FLAGS and rng.random() < 0.7:
                line.append(option)
            else:
                line[len(line) :] = [f"{option}={value}"] if rng.random() < 0.2 else [option, value]
        elif what < 0.75:
            line.insert(at, rng.choice(words))
        elif what < 0.9 and 1 <= at < len(line):
            line[at] = rng.choice(words)
        elif len(line) > 1:
            del line[at - 1 if at == len(line) else at]
    if rng.random() < 0.2:
        line.append("--json")
    return _in_its_place([word.replace("\0", "") for word in line], rng)


def _in_its_place(line: list[str], rng: random.Random) -> list[str]:
    """The same, with nothing written where a fuzz must not, and nothing run but `true`."""
    for at, word in enumerate(line):
        option, equals, _ = word.partition("=")
        if word in WRITES and at + 1 < len(line):
            line[at + 1] = line[at + 1] if line[at + 1].startswith("--") else rng.choice(PLACES)
        elif option in WRITES and equals:
            line[at] = f"{option}={rng.choice(PLACES)}"
    if not set(line) & set(WATCHES):
        return line
    own = line[: line.index("--")] if "--" in line else line
    given = [word for last, word in itertools.pairwise(own) if word.startswith("--") or _takes_a_word(last)]
    return [own[0], *given, "--", "true"] if rng.random() < 0.9 else [own[0], *given]


def _takes_a_word(word: str) -> bool:
    return word.startswith("--") and "=" not in word and word not in FLAGS


VALUES = (
    "0", "1", "-1", "2", "100", "1000000", "100000000", "9" * 25, "9" * 5000, "0.0", "0.5", "1.0", "1e-5", "1e-300",
    "1e400", "1e-400", "-0.0", "nan", "inf", "-inf", "1e308", "true", '""', '"x"', '"\\u001b[31m"', '"replace"',
    '"add-remove"', '"point"', '"curve"', '"mlp"', '"cnn"', '"logistic"', '"adam"', '"shuffle"', '"full"', '"rdp"',
    '"eprocess"', '"gradient"', '"canaries"', '"clipbkd"', '"membership"', '"float64"', "[]", "[1]", "[0.5, 2]",
    '["x"]', "[[1]]", "{a = 1}", "1979-05-27", "07:32:00", "0x1F",
)  # fmt: skip
KEYS = {
    "claim": ("epsilon", "delta", "relation", "form", "unit"),
    "data": ("name", "classes", "per_class", "held_out", "path"),
    "model": (
        "name", "hidden", "activation", "loss", "initialisation", "init_scale", "init_seed", "precision",
    ),
    "training": (
        "sample_rate", "steps", "learning_rate", "clip_norm", "noise_multiplier", "sampling", "clipping", "optimizer",
        "momentum", "weight_decay", "schedule",
    ),
    "adversary": ("name", "copies", "canaries", "direction", "coordinates", "record"),
    "audit": ("trials", "confidence", "seed", "bound", "threshold", "target", "accountant"),
    "access": ("sees", "controls"),
    "faults": ("noise_scale",),
    "subject": (
        "train", "score", "arguments", "isolation", "time_limit", "deterministic", "sample_rate", "noise_multiplier",
        "steps", "name", "regularisation", "records", "calibration",
    ),
}  # fmt: skip
_REALS = ("0.0", "-0.0", "1e-9", "0.1", "0.5", "1.0", "3.0", "1e6", "1e308", "-1.0", "inf", "nan")
_WHOLES = ("0", "1", "2", "3", "50", "1000", "1000000", "-1")
LIKELY = {
    **dict.fromkeys(
        ("epsilon", "delta", "init_scale", "sample_rate", "learning_rate", "clip_norm", "confidence"), _REALS
    ),
    **dict.fromkeys(
        ("noise_multiplier", "momentum", "weight_decay", "noise_scale", "threshold", "target", "time_limit"), _REALS
    ),
    **dict.fromkeys(
        ("steps", "trials", "seed", "init_seed", "per_class", "held_out", "copies", "canaries", "coordinates"), _WHOLES
    ),
    "hidden": ("[1]", "[3, 4]", "[1000000]", "[]"),
    "unit": ('"record"', '"user"', '"a user"', '"user\\n"', '"USER"'),
    "relation": ('"replace"', '"zero-out"', '"add-remove"'),
    "sampling": ('"poisson"', '"full"', '"shuffle"', '"fixed"'),
    "accountant": ('"pld"', '"rdp"', '"basic"'),
    "train": ('"own.py:train"', '"own:train"', '"own:nosuch"', '"own"', '"broken:train"', '"os:getpid"', '":"'),
    "score": ('"own.py:score"', '"own:nosuch"', '"own:train"'),
    "path": ('"my.npz"', '"numbers.npz"', '"my.csv"', '"odd.npz"', '"missing.npz"', '"scores.csv"'),
    "arguments": ("{}", "{scale = 2}", "{nosuch = 1}", '{data = "x"}', "{seed = 3}"),
    "isolation": ('"none"', '"process"', '"x"'),
    "controls": ("[]", '["gradients"]', '["x"]'),
}
PLAIN = {  # a point, and noise: nothing has to be calibrated
    "claim": {"epsilon": "4.0"}, "training": {"noise_multiplier": "1.5", "steps": "20"}, "audit": {"trials": "20"},
}  # fmt: skip
RIDGE = {"claim": {"epsilon": "4.0"}, "subject": {"name": '"private-ridge"'}, "audit": {"trials": "20"}}
FOREIGN = {
    "claim": {"epsilon": "4.0"}, "subject": {"train": '"own.py:train"'}, "data": {"path": '"my.npz"'},
    "audit": {"trials": "20"},
}  # fmt: skip
MEMBERSHIP_KEYS = {
    **{name: KEYS[name] for name in ("data", "model", "training", "subject")},
    "defence": (
        "name", "hidden", "activation", "epochs", "batch", "learning_rate", "l2", "label_smoothing", "adversarial",
        "patience", "held_out",
    ),
    "target": ("predict", "members", "others", "outputs"),
    "membership": (
        "records", "population", "targets", "references", "attacks", "copies", "noise", "subgroup", "delta",
        "confidence", "seed",
    ),
    "settings.lira": ("augmentations", "variance", "x"),
    "settings.x": ("x",),
}  # fmt: skip
LIKELY |= {
    **dict.fromkeys(("targets", "references", "records", "population", "subgroup", "epochs", "batch"), _WHOLES),
    **dict.fromkeys(("noise", "l2", "label_smoothing", "adversarial"), _REALS),
    "patience": _WHOLES,
    "attacks": (
        '["lira"]',
        '["rmia", "loss"]',
        '["label-only"]',
        '["white-box"]',
        "[]",
        '["lyra"]',
        '["lira", "lira"]',
    ),
    "predict": ('"own.py:predict"', '"own:predict"', '"own:nosuch"', '"own"', '"os:getpid"', '"broken:train"'),
    **dict.fromkeys(("members", "others"), ('"my.npz"', '"one.npz"', '"odd.npz"', '"my.csv"', '"loop"', '"."')),
    "outputs": ('"probabilities"', '"logits"', '"x"'),
}
ATTACKED: _Sections = {
    "data": {"name": '"digits"', "classes": "[0, 1]", "per_class": "30"}, "training": {"steps": "5"},
    "membership": {"references": "4"},
}  # fmt: skip
GIVEN: _Sections = {
    "target": {"predict": '"own.py:predict"', "members": '"my.npz"', "others": '"my.npz"'},
    "membership": {"references": "0"},
}


PROPERTY_KEYS = {
    "data": KEYS["data"],
    "collaboration": (
        "hidden", "rounds", "batch", "learning_rate", "rehearsals", "level", "noise_multiplier", "clip_norm",
    ),
    "property": ("name", "feature", "threshold", "trials", "control", "delta", "confidence", "seed"),
}  # fmt: skip
RECONSTRUCTION_KEYS = {
    "data": KEYS["data"],
    "reconstruction": (
        "attack", "noises", "records", "hidden", "clip_norm", "in_sum", "releases", "delta", "confidence", "seed",
    ),
}  # fmt: skip
LIKELY |= {
    **dict.fromkeys(("rounds", "rehearsals", "feature", "in_sum", "releases"), _WHOLES),
    "level": ('"none"', '"record"', '"participant"', '"user"'),
    "attack": ('"sums"', '"layer"', '"network"', '"gradient"'),
    "noises": ("[]", "[0]", "[0.5, 2]", "[1, 1]", "[-1.0]", "[inf]", "[nan]", '["x"]'),
    "control": ("true", "false", "1"),
}
SHARED: _Sections = {
    "data": {"name": '"digits"', "classes": "[0, 1]", "per_class": "30"}, "collaboration": {"rounds": "8"},
    "property": {"trials": "4"},
}  # fmt: skip
REBUILT: _Sections = {"data": {"name": '"digits"', "per_class": "10"}, "reconstruction": {"records": "2"}}


def spec(seed: int) -> bytes:
    """A spec that would work, with values changed; now and then its text is broken."""
    return _spec(random.Random(seed), (PLAIN, PLAIN, FOREIGN, RIDGE), KEYS)


def membership_spec(seed: int) -> bytes:
    """The same of `epsilometer membership`."""
    return _spec(random.Random(seed), (ATTACKED, ATTACKED, GIVEN), MEMBERSHIP_KEYS)


def property_spec(seed: int) -> bytes:
    """The same of `epsilometer property`."""
    return _spec(random.Random(seed), (SHARED,), PROPERTY_KEYS)


def reconstruction_spec(seed: int) -> bytes:
    """The same of `epsilometer reconstruct`."""
    return _spec(random.Random(seed), (REBUILT,), RECONSTRUCTION_KEYS)


def _spec(rng: random.Random, begun: Sequence[_Sections], known: Mapping[str, Sequence[str]]) -> bytes:
    sections = {name: dict(keys) for name, keys in rng.choice(begun).items()}
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        name = rng.choice(list(known))
        key = rng.choice(known[name]) if rng.random() < 0.95 else rng.choice(("nmae", "ε", '"\\u001b"', "a.b"))
        values = LIKELY.get(key, VALUES) if rng.random() < 0.5 else VALUES  # half of them are of the right kind
        sections.setdefault(name, {})[key] = rng.choice(values)
    lines = [
        line for name, keys in sections.items() for line in (f"[{name}]", *(f"{k} = {v}" for k, v in keys.items()))
    ]
    text = bytearray("\n".join(lines).encode())
    if rng.random() < 0.15:
        _break(text, rng)
    return bytes(text)


def _break(text: bytearray, rng: random.Random) -> None:
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(text))
        if rng.random() < 0.5:
            text[at] = rng.randrange(256)
        else:
            del text[at : at + rng.randint(1, 10)]


def controls(text: str) -> Sequence[str]:
    """Characters that a terminal would obey."""
    return [c for c in text if not c.isprintable() and c not in "\n\t"]


class Hangs(BaseException):
    """Nobody answers; not an `Exception`, which the program would answer for."""


@contextmanager
def watched(seconds: float) -> Iterator[None]:
    """What waits that long, for whatever it may be, is stopped by `Hangs`. Code that hears no signal, since it never
    returns to Python, ends the whole process, with the stack of every thread on stderr."""

    def bark(*_: object) -> None:
        raise Hangs

    before = signal.signal(signal.SIGALRM, bark)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    faulthandler.dump_traceback_later(seconds + 60.0, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        faulthandler.cancel_dump_traceback_later()
