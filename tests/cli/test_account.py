"""`account`: lengths of trainings as people write them, and noise that keeps its promise when it is copied."""

import json
from dataclasses import replace

import numpy as np
import pytest

from epsilometer.accounting import DpSgd
from epsilometer.cli.plan import PlanOptions, chosen_plan


@pytest.mark.parametrize(
    "length",
    [
        ["--epochs", "15", "--batch-size", "256", "--records", "60000"],
        ["--sample-rate", "0.01", "--steps", "1000"],
    ],
)
def test_the_noise_that_is_printed_is_enough(here, length: list[str]) -> None:
    """σ = 1.38602 was printed as 1.386, whose ε is more than was asked for."""
    noise = here("account", *length, "--epsilon", "3").stdout.splitlines()[1].split("\t")[1]
    (found,) = json.loads(here("account", *length, "--noise-multiplier", noise, "--json").stdout)["bounds"]
    assert 2.99 < found["epsilon"] <= 3.0


def test_epochs_and_batches_say_what_rate_and_steps_say(here) -> None:
    def bound(*arguments: str) -> dict[str, object]:
        (found,) = json.loads(here("account", "--noise-multiplier", "1", *arguments, "--json").stdout)["bounds"]
        return found

    people = bound("--epochs", "2.5", "--batch-size", "100", "--records", "1000")
    assert people == bound("--sample-rate", "0.1", "--steps", "25")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--epochs", "3"], "--epochs = 3.0: expected --batch-size and --records beside it"),
        (["--epochs", "3", "--steps", "5", "--sample-rate", "0.1"], "expected nothing beside --steps"),
        (["--batch-size", "3", "--sample-rate", "0.1", "--steps", "3"], "expected nothing beside --sample-rate"),
        (["--batch-size", "3", "--steps", "3"], "expected both"),
        (["--batch-size", "30", "--records", "20", "--steps", "3"], "--batch-size = 30: expected a whole number"),
        (["--steps", "3"], "--sample-rate is missing"),
    ],
)
def test_what_contradicts_itself_is_one_clear_error(here, arguments: list[str], words: str) -> None:
    shown = here("account", "--noise-multiplier", "1", *arguments)
    assert (shown.returncode, shown.stderr.count("\n")) == (2, 1)
    assert words in shown.stderr


def test_one_kind_of_things_is_listed(here) -> None:
    assert list(json.loads(here("list", "bounds", "--json").stdout)) == ["schema", "bounds"]
    assert {line.split("\t")[0] for line in here("list", "adversaries").stdout.splitlines()[1:]} == {"adversaries"}
    assert "KIND = 'bound': expected one of" in here("list", "bound").stderr


def test_audits_of_ones_own_training_take_epochs_too(here, place) -> None:
    """In place of rate and steps; the plan is the same, and mistakes are told like those of `account`."""
    np.savez(place / "my.npz", x=np.eye(8), y=np.arange(8) % 2)
    (place / "mine.py").write_text("def train(data, seed):\n    return lambda x: seed % 7\n")
    own = PlanOptions(data=place / "my.npz", noise_multiplier=2.0)
    people = chosen_plan("mine.py:train", replace(own, epochs=5, batch_size=2, records=8)).plan
    accountants = chosen_plan("mine.py:train", replace(own, sample_rate=0.25, steps=20)).plan
    assert people.fingerprint() == accountants.fingerprint()
    assert people.subject.promise.steps == DpSgd(0.25, 2.0, 20)
    training = ("mine.py:train", "--data", "my.npz", "--noise-multiplier", "2")
    for command in ("audit", "preview"):
        shown = here(command, *training, "--epochs", "5", "--steps", "20", "--sample-rate", "0.25")
        assert shown.returncode == 2
        assert "--epochs = 5.0: expected nothing beside --steps" in shown.stderr
