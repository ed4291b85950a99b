"""The plan that a command is about: a spec file, or the default, with options that win over it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epsilometer.cli.groups import Key, Said, put, said
from epsilometer.cli.progress import downloads
from epsilometer.cli.schedule import BatchSize, Epochs, Records, rate_and_steps
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
DataDir = Annotated[
    Path | None, typer.Option(help="Where data files lie; else EPSILOMETER_DATA, the cache, or a download.")
]
BoundName = Annotated[
    str | None, typer.Option("--bound", help="How scores are judged: see `epsilometer list`; eprocess may stop early.")
]


@dataclass(frozen=True)
class PlanOptions:
    """Options that win over a spec. A field is all that a new one needs: its type, the key that it sets, and its help.

    They are written here and not read from the spec's sections, whose import would make `--help` slow; a test compares.
    """

    trials: Annotated[
        int | None,
        Key("audit", "trials"),
        typer.Option(
            help="Trainings in each world, such as 500, or with all canaries; chosen before anything is seen."
        ),
    ] = None
    confidence: Annotated[
        float | None,
        Key("audit", "confidence"),
        typer.Option(help="Of the lower bound and of a violation, such as 0.95."),
    ] = None
    seed: Annotated[int | None, Key("audit", "seed"), typer.Option(help="Every trial follows from it.")] = None
    data: Annotated[
        Path | None,
        Key("data", "path"),
        typer.Option("--data", help="Records of your own: .npz (x, y), .csv or .parquet (a column label)."),
    ] = None
    epsilon: Annotated[
        float | None,
        Key("claim", "epsilon"),
        typer.Option(help="The claimed ε; the noise is calibrated to it, whatever the spec says."),
    ] = None
    delta: Annotated[float | None, Key("claim", "delta"), typer.Option(help="The claimed δ.")] = None
    unit: Annotated[
        str | None,
        Key("claim", "unit"),
        typer.Option(
            help="For a training of your own: what a row of the data is and ε protects, if not a record: user, say."
        ),
    ] = None
    adversary: Annotated[
        str | None,
        Key("adversary", "name"),
        typer.Option("--adversary", help="Who attacks: see `epsilometer list`."),
    ] = None
    record: Annotated[
        str | None,
        Key("adversary", "record"),
        typer.Option(
            help="Which record is attacked, by api (the usual adversary then) or learned: a row number of the data, "
            "or a file with one of your own (.npz, .csv, .parquet), which comes to the data."
        ),
    ] = None
    bound: Annotated[BoundName, Key("audit", "bound")] = None
    noise_scale: Annotated[
        float | None,
        Key("faults", "noise_scale"),
        typer.Option(help="A FAULT TO INJECT: multiply the noise that is really added."),
    ] = None
    sample_rate: Annotated[
        float | None,
        Key("subject", "sample_rate"),
        typer.Option(help="What a training of your own says it does, if it is DP-SGD: claims its curve."),
    ] = None
    noise_multiplier: Annotated[
        float | None, Key("subject", "noise_multiplier"), typer.Option(help="The same: its noise, in clip norms.")
    ] = None
    steps: Annotated[int | None, Key("subject", "steps"), typer.Option(help="The same: its steps.")] = None
    epochs: Epochs = None
    batch_size: BatchSize = None
    records: Records = None
    score: Annotated[
        str | None,
        Key("subject", "score"),
        typer.Option(help="For a training of your own: mymodule:score, of (model, (x, y)); higher is member."),
    ] = None
    isolation: Annotated[
        str | None,
        Key("subject", "isolation"),
        typer.Option(help="For a training of your own: none, process (each has its own), or here (this one)."),
    ] = None
    time_limit: Annotated[
        float | None,
        Key("subject", "time_limit"),
        typer.Option(help="Seconds that one training of your own may take."),
    ] = None
    deterministic: Annotated[
        bool | None,
        Key("subject", "deterministic"),
        typer.Option(
            "--deterministic/--not-deterministic", help="Whether a training of your own follows from its seed."
        ),
    ] = None
    data_dir: DataDir = None

    def settled(self) -> PlanOptions:
        """With sample rate and steps, however they were said."""
        rate, steps = rate_and_steps(self.sample_rate, self.steps, self.epochs, self.batch_size, self.records)
        return replace(self, sample_rate=rate, steps=steps)


@dataclass(frozen=True)
class Chosen:
    """The plan, all adversaries of its spec (a pilot decides between several), and that spec."""

    plan: Plan
    adversaries: tuple[Adversary, ...]
    spec: Spec


def chosen_plan(spec: str | Path | None, options: PlanOptions, *, quiet: bool = True, own_bound: bool = True) -> Chosen:
    """What spec and options ask for; errors name what the user wrote, an option or a key.

    Without its `own_bound`, what the spec says of bounds does not count, nor a number of trials that is not of worlds.
    """
    from epsilometer.auditing import spec_from_dict

    options = options.settled()
    wishes = [_row_or_file(one) for one in said(options)]
    training = _training(spec)
    if training is not None:
        wishes.append(Said("subject", "train", "TRAINING", training))
    stated = _stated(None if training is not None else spec, training, options)
    values = _values(stated, options, own_bound)
    names = put(values, wishes)
    if training is not None:  # what was left out has no other name either
        names |= {one.key: one.option for one in wishes}
    if options.data_dir is not None:
        names["data.directory"] = "--data-dir"
    try:
        chosen = spec_from_dict(values)
        return Chosen(chosen.plan(options.data_dir, downloads(quiet)), chosen.adversaries(), chosen)
    except InvalidInput as error:
        name = names.get(error.argument, error.argument)
        raise InvalidInput(name, error.value, error.expected, error.remedy or _remedy(error, name)) from None


def _training(spec: str | Path | None) -> str | None:
    """The name of a training, if that is what was given in place of a spec file."""
    text = str(spec) if spec is not None else ""
    if text.endswith(".py"):
        remedy = f"did you mean {text}:train? An Opacus script: epsilometer watch -- python {text}"
        raise InvalidInput("TRAINING", text, "a spec, or a function after a colon", remedy)
    named = ":" in text and not Path(text).exists()
    return text if named else None


def _row_or_file(one: Said) -> Said:
    """What --record says: a row number, if it is one. Other options are as they are."""
    if one.option != "--record" or one.value is None or not one.value.isdecimal():
        return one
    try:
        return replace(one, value=int(one.value))
    except ValueError:  # thousands of digits
        raise InvalidInput("--record", "thousands of digits", "a row number, or a file") from None


def _stated(spec: str | Path | None, training: str | None, options: PlanOptions) -> Spec:
    """The spec file, or the default. A training of the user's own has no records unless somebody names them."""
    from epsilometer.auditing import Spec, read_spec

    if training is not None and options.data is None:
        raise InvalidInput("--data", None, "the records to train on", "name a file: .npz (x, y), .csv or .parquet")
    stated = read_spec(Path(spec)) if spec is not None else Spec()
    if stated.kind.needs_data and "data" not in stated.model_fields_set and options.data is None:
        remedy = "name a file in [data]: .npz (x, y), .csv or .parquet"
        raise InvalidInput("data.path", None, "the records to train on", remedy)
    return stated


def _values(stated: Spec, options: PlanOptions, own_bound: bool) -> dict[str, Any]:
    """What the spec says, without what the options make void."""
    values = stated.model_dump(exclude_none=True)
    if options.epsilon is not None:
        values["training"].pop("noise_multiplier", None)
    if not own_bound:
        _forget_bound(values)
    if options.adversary is not None and options.adversary != values["adversary"].get("name"):
        values["adversary"] = {}  # another adversary has other settings
    if options.record is not None:
        values["adversary"].setdefault("name", "api")  # whom the option is for
    return values


def _forget_bound(values: dict[str, Any]) -> None:
    """Take out what is said of bounds, and a number of trials that is not of worlds."""
    from epsilometer.adversaries import ADVERSARIES

    own = ADVERSARIES.get(values["adversary"].get("name", ""))
    of_worlds = own is None or own.evidence_type.independent
    for key in ("bound", "threshold", "target", *(() if of_worlds else ("trials",))):
        values["audit"].pop(key, None)


def _remedy(error: InvalidInput, name: str) -> str:
    """What helps where the spec itself knows no remedy."""
    from epsilometer.membership.catalogue import ATTACKS

    if error.argument == "adversary.name" and error.value in ATTACKS:
        return f"{error.value} is an attack of 'epsilometer membership'"
    return "'epsilometer init' writes all keys" if "." in name else ""
