"""Command lines and specs that nobody would write, from a seed: the same in every run."""

from __future__ import annotations

import random
from collections.abc import Sequence

WORDS = (
    "", "0", "1", "-1", "2", "7", "0.5", "1e-5", "1e-300", "1e-400", "1e400", "1e6", "-0", "nan", "inf", "-inf", "1_0",
    "0x10", "9" * 30, "9" * 5000, "true", "ε", "\x1b[31m", "a\nb", "\x07", "[/b]", "%s", "--", "-", "/", ".", "~", "*",
    "/dev/null", "/proc/self/mem", "missing", "missing/also", "scores.csv", "canaries.csv", "spec.toml", "odd.csv",
    "higher", "lower", "either", "replace", "zero-out", "add-remove", "pld", "rdp", "moments", "all", "exact-rank",
    "eprocess", "clopper-pearson", "fixed", "best-on-same", "one-run-point", "one-run", "gradient", "canaries",
    "digits",
)  # fmt: skip
OPTIONS = {
    "account": (
        "--sample-rate", "--steps", "--delta", "--noise-multiplier", "--epsilon", "--accountant", "--relation",
    ),
    "bound": (
        "--one-run", "--delta", "--confidence", "--method", "--threshold", "--guesses", "--direction", "--group-size",
        "--relation", "--claim", "--seed", "--in-order", "--counts",
    ),
    "compare": (
        "--one-run", "--delta", "--confidence", "--threshold", "--guesses", "--direction", "--seed", "--counts",
    ),
    "power": ("--epsilon", "--delta", "--confidence", "--true-epsilon", "--probability"),
    "check": (
        "--trials", "--confidence", "--seed", "--epsilon", "--adversary", "--bound", "--noise-scale", "--data-dir",
    ),
    "init": ("--template",),
    "runs": ("--export", "--run"),
    "list": (),
    "audit": ("--executor", "--address", "--workers", "--out"),
    "": ("--version", "--nothing"),
}  # fmt: skip
GOOD = {
    "account": ["account", "--sample-rate", "0.1", "--steps", "10", "--noise-multiplier", "1.5"],
    "bound": ["bound", "scores.csv"],
    "compare": ["compare", "scores.csv"],
    "power": ["power", "--epsilon", "4"],
    "check": ["check", "spec.toml"],
    "init": ["init", "-"],
    "runs": ["runs", "."],
    "list": ["list"],
    "audit": ["audit", "missing.toml"],  # an audit would train
    "": [],
}


def command_line(seed: int) -> list[str]:
    """A command that would work, with words put in, changed and taken away."""
    rng = random.Random(seed)
    command = rng.choice(list(GOOD))
    line = list(GOOD[command])
    for _ in range(rng.randint(0, 4)):
        what = rng.random()
        at = rng.randint(min(1, len(line)), len(line))
        if what < 0.6 and OPTIONS[command]:
            option, value = rng.choice(OPTIONS[command]), rng.choice(WORDS)
            line[len(line) :] = [f"{option}={value}"] if rng.random() < 0.2 else [option, value]
        elif what < 0.75:
            line.insert(at, rng.choice(WORDS))
        elif what < 0.9 and 1 <= at < len(line) and command != "audit":
            line[at] = rng.choice(WORDS)
        elif len(line) > 1 and command != "audit":
            del line[at - 1 if at == len(line) else at]
    if rng.random() < 0.2:
        line.append("--json")
    return [word.replace("\0", "") for word in line]


VALUES = (
    "0", "1", "-1", "2", "100", "1000000", "100000000", "9" * 25, "9" * 5000, "0.0", "0.5", "1.0", "1e-5", "1e-300",
    "1e400", "1e-400", "-0.0", "nan", "inf", "-inf", "1e308", "true", '""', '"x"', '"\\u001b[31m"', '"replace"',
    '"add-remove"', '"point"', '"curve"', '"mlp"', '"cnn"', '"logistic"', '"adam"', '"shuffle"', '"full"', '"rdp"',
    '"eprocess"', '"gradient"', '"canaries"', '"clipbkd"', '"membership"', '"float64"', "[]", "[1]", "[0.5, 2]",
    '["x"]', "[[1]]", "{a = 1}", "1979-05-27", "07:32:00", "0x1F",
)  # fmt: skip
KEYS = {
    "claim": ("epsilon", "delta", "relation", "form"),
    "data": ("name", "classes", "per_class"),
    "model": (
        "name", "hidden", "activation", "loss", "initialisation", "init_scale", "init_seed", "precision",
    ),
    "training": (
        "sample_rate", "steps", "learning_rate", "clip_norm", "noise_multiplier", "sampling", "clipping", "optimizer",
        "momentum", "weight_decay", "schedule",
    ),
    "adversary": ("name", "copies", "canaries", "direction", "coordinates"),
    "audit": ("trials", "confidence", "seed", "bound", "threshold", "target", "accountant"),
    "access": ("sees", "controls"),
    "faults": ("noise_scale",),
}  # fmt: skip
_REALS = ("0.0", "-0.0", "1e-9", "0.1", "0.5", "1.0", "3.0", "1e6", "1e308", "-1.0", "inf", "nan")
_WHOLES = ("0", "1", "2", "3", "50", "1000", "1000000", "-1")
LIKELY = {
    **dict.fromkeys(
        ("epsilon", "delta", "init_scale", "sample_rate", "learning_rate", "clip_norm", "confidence"), _REALS
    ),
    **dict.fromkeys(("noise_multiplier", "momentum", "weight_decay", "noise_scale", "threshold", "target"), _REALS),
    **dict.fromkeys(
        ("steps", "trials", "seed", "init_seed", "per_class", "copies", "canaries", "coordinates"), _WHOLES
    ),
    "hidden": ("[1]", "[3, 4]", "[1000000]", "[]"),
    "relation": ('"replace"', '"zero-out"', '"add-remove"'),
    "sampling": ('"poisson"', '"full"', '"shuffle"', '"fixed"'),
    "accountant": ('"pld"', '"rdp"', '"basic"'),
    "controls": ("[]", '["gradients"]', '["x"]'),
}
PLAIN = {  # a point, and noise: nothing has to be calibrated
    "claim": {"epsilon": "4.0"}, "training": {"noise_multiplier": "1.5", "steps": "20"}, "audit": {"trials": "20"},
}  # fmt: skip


def spec(seed: int) -> bytes:
    """A spec that would work, with values changed; now and then its text is broken."""
    rng = random.Random(seed)
    sections = {name: dict(keys) for name, keys in PLAIN.items()}
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        name = rng.choice(list(KEYS))
        key = rng.choice(KEYS[name]) if rng.random() < 0.95 else rng.choice(("nmae", "ε", '"\\u001b"', "a.b"))
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
