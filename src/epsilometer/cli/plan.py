"""The plan that a command is about: a spec file, or the default, with options that win over it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epsilometer.cli.progress import downloads
from epsilometer.cli.schedule import rate_and_steps
from epsilometer.errors import InvalidInput

if TYPE_CHECKING:
    from epsilometer.adversaries import Adversary
    from epsilometer.auditing import Plan, Spec

SpecFile = Annotated[Path | None, typer.Argument(help="A TOML file; without it, the embedded default.")]
SpecOrTraining = Annotated[
    str | None,
    typer.Argument(
        metavar="[SPEC|TRAINING]",
        help="A TOML file, or a training of your own: mymodule:train or file.py:train. If none, the embedded default.",
    ),
]
DataFile = Annotated[
    Path | None, typer.Option("--data", help="Records of your own: .npz (x, y), .csv or .parquet (a column label).")
]
Delta = Annotated[float | None, typer.Option(help="The claimed δ.")]
Score = Annotated[
    str | None,
    typer.Option(help="For a training of your own: mymodule:score, of (model, (x, y)); higher is member."),
]
Isolation = Annotated[
    str | None, typer.Option(help="For a training of your own: none, process (each has its own), or here (this one).")
]
SampleRate = Annotated[
    float | None, typer.Option(help="What a training of your own says it does, if it is DP-SGD: claims its curve.")
]
NoiseMultiplier = Annotated[float | None, typer.Option(help="The same: its noise, in clip norms.")]
Steps = Annotated[int | None, typer.Option(help="The same: its steps.")]
Deterministic = Annotated[
    bool | None,
    typer.Option("--deterministic/--not-deterministic", help="Whether a training of your own follows from its seed."),
]
TimeLimit = Annotated[float | None, typer.Option(help="Seconds that one training of your own may take.")]
TrialCount = Annotated[
    int | None,
    typer.Option(help="Trainings in each world, such as 500, or with all canaries; chosen before anything is seen."),
]
Confidence = Annotated[float | None, typer.Option(help="Of the lower bound and of a violation, such as 0.95.")]
Seed = Annotated[int | None, typer.Option(help="Every trial follows from it.")]
Epsilon = Annotated[
    float | None, typer.Option(help="The claimed ε; the noise is calibrated to it, whatever the spec says.")
]
AdversaryName = Annotated[str | None, typer.Option("--adversary", help="Who attacks: see `epsilometer list`.")]
Record = Annotated[
    str | None,
    typer.Option(
        help="Which record is attacked, by api (the usual adversary then) or learned: a row number of the data, or a "
        "file with one of your own (.npz, .csv, .parquet), which comes to the data."
    ),
]
BoundName = Annotated[
    str | None, typer.Option("--bound", help="How scores are judged: see `epsilometer list`; eprocess may stop early.")
]
DataDir = Annotated[
    Path | None, typer.Option(help="Where data files lie; else EPSILOMETER_DATA, the cache, or a download.")
]
ExecutorName = Annotated[
    str, typer.Option("--executor", help="Who plays trials: auto, inline, local or ray. Results are the same.")
]
Workers = Annotated[int | None, typer.Option(help="Processes; without it, one for each core.")]
Address = Annotated[str | None, typer.Option(help="Of a Ray cluster; without it, Ray on this machine.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
NoiseScale = Annotated[float | None, typer.Option(help="A FAULT TO INJECT: multiply the noise that is really added.")]


_OWN = {  # options of a training of the user's own, and their keys in a spec
    "data": ("data", "path"),
    "delta": ("claim", "delta"),
    "score": ("subject", "score"),
    "isolation": ("subject", "isolation"),
    "time_limit": ("subject", "time_limit"),
    "deterministic": ("subject", "deterministic"),
    "sample_rate": ("subject", "sample_rate"),
    "noise_multiplier": ("subject", "noise_multiplier"),
    "steps": ("subject", "steps"),
    "record": ("adversary", "record"),
}


def _training(spec: str | Path | None) -> str | None:
    """The name of a training, if that is what was given in place of a spec file."""
    text = str(spec) if spec is not None else ""
    if text.endswith(".py"):
        remedy = f"did you mean {text}:train? An Opacus script: epsilometer watch -- python {text}"
        raise InvalidInput("TRAINING", text, "a spec, or a function after a colon", remedy)
    named = ":" in text and not Path(text).exists()
    return text if named else None


def _row_or_file(record: object) -> object:
    """What --record says: a row number, if it is one."""
    try:
        return int(record) if isinstance(record, str) and record.isdecimal() else record
    except ValueError:  # thousands of digits
        raise InvalidInput("--record", "thousands of digits", "a row number, or a file") from None


def _remedy(error: InvalidInput, name: str) -> str:
    """What helps where the spec itself knows no remedy."""
    from epsilometer.membership.catalogue import ATTACKS

    if error.argument == "adversary.name" and error.value in ATTACKS:
        return f"{error.value} is an attack of 'epsilometer membership'"
    return "'epsilometer init' writes all keys" if "." in name else ""


def _schedule(own_training: dict[str, Any]) -> tuple[float | None, int | None]:
    names = ("sample_rate", "steps", "epochs", "batch_size", "records")
    return rate_and_steps(*(own_training.get(name) for name in names))


def chosen_plan(
    spec: str | Path | None,
    trials: int | None,
    confidence: float | None,
    seed: int | None,
    epsilon: float | None,
    adversary: str | None,
    bound: str | None,
    noise_scale: float | None,
    data_dir: Path | None = None,
    quiet: bool = True,
    own_bound: bool = True,
    **own_training: Any,
) -> tuple[Plan, tuple[Adversary, ...], Spec]:
    """The plan, all adversaries of its spec, and that spec; errors name what the user wrote, an option or a key.

    Without its `own_bound`, what the spec says of bounds does not count, nor a number of trials that is not of worlds.
    `own_training` has the options of a training of the user's own (`_OWN`), and epochs, batch size and records in place
    of its rate and steps.
    """
    from epsilometer.auditing import Spec, read_spec, spec_from_dict

    own_training |= dict(zip(("sample_rate", "steps"), _schedule(own_training), strict=True))
    options: dict[tuple[str, str], tuple[str, Any]] = {
        ("audit", "trials"): ("--trials", trials),
        ("audit", "confidence"): ("--confidence", confidence),
        ("audit", "seed"): ("--seed", seed),
        ("audit", "bound"): ("--bound", bound),
        ("claim", "epsilon"): ("--epsilon", epsilon),
        ("adversary", "name"): ("--adversary", adversary),
        ("faults", "noise_scale"): ("--noise-scale", noise_scale),
        **{key: (f"--{name.replace('_', '-')}", own_training.get(name)) for name, key in _OWN.items()},
    }
    options["adversary", "record"] = ("--record", _row_or_file(own_training.get("record")))
    training = _training(spec)
    if training is not None:
        options["subject", "train"] = ("TRAINING", training)
        spec = None
        if own_training.get("data") is None:
            raise InvalidInput("--data", None, "the records to train on", "name a file: .npz (x, y), .csv or .parquet")
    stated = read_spec(Path(spec)) if spec is not None else Spec()
    if stated.subject.train is not None and "data" not in stated.model_fields_set and own_training.get("data") is None:
        remedy = "name a file in [data]: .npz (x, y), .csv or .parquet"
        raise InvalidInput("data.path", None, "the records to train on", remedy)
    values = stated.model_dump(exclude_none=True)
    if epsilon is not None:
        values["training"].pop("noise_multiplier", None)
    if not own_bound:
        from epsilometer.adversaries import ADVERSARIES

        own = ADVERSARIES.get(values["adversary"].get("name", ""))
        of_worlds = own is None or own.evidence_type.independent
        for key in ("bound", "threshold", "target", *(() if of_worlds else ("trials",))):
            values["audit"].pop(key, None)
    if adversary is not None and adversary != values["adversary"].get("name"):
        values["adversary"] = {}  # another adversary has other settings
    if own_training.get("record") is not None:
        values["adversary"].setdefault("name", "api")  # whom the option is for
    given = {"data.directory": "--data-dir"} if data_dir is not None else {}
    for (section, key), (option, value) in options.items():
        if value is not None:
            values[section][key] = str(value) if isinstance(value, Path) else value
        if value is not None or training is not None:  # what was left out has no other name either
            given[f"{section}.{key}"] = option
    try:
        chosen = spec_from_dict(values)
        return chosen.plan(data_dir, downloads(quiet)), chosen.adversaries(), chosen
    except InvalidInput as error:
        name = given.get(error.argument, error.argument)
        raise InvalidInput(name, error.value, error.expected, error.remedy or _remedy(error, name)) from None
