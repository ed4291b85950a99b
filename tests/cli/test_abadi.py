"""Abadi et al. (2016) from the command line: accounting, private PCA under audit, a reproduction."""

import json
from pathlib import Path

import pytest

SGD = ("account", "--sample-rate", "0.01", "--steps", "2900")
AUDIT = ("--epsilon", "1", "--delta", "1e-5", "--curve", "--runs", "20000", "--quiet", "--executor", "inline")


def test_a_release_beside_a_training_is_accounted(here) -> None:
    shown = here(*SGD, "--noise-multiplier", "8", "--also-noise", "16", "--accountant", "all", "--json")
    found = {one["accountant"]: one["epsilon"] for one in json.loads(shown.stdout)["bounds"]}
    assert found["moments"] == pytest.approx(0.5, abs=1e-3)
    assert found["pld"] == pytest.approx(0.312, abs=1e-3)
    assert "strong" not in found
    alone = here(*SGD, "--noise-multiplier", "8", "--json")
    assert json.loads(alone.stdout)["bounds"][0]["epsilon"] < 0.25


def test_private_components_under_audit(here) -> None:
    assert here("mechanism", "gaussian-pca", *AUDIT).returncode == 0
    assert here("mechanism", "gaussian-pca-half", *AUDIT).returncode == 1


def test_the_accountants_beside_the_paper(here, place: Path) -> None:
    shown = here("reproduce", "abadi-accounting", "--only", "epochs=100", "--out", "acc", "--quiet")
    assert shown.returncode == 0
    assert "epochs=100: paper 1.26, measured 1.26 (strong 9.35, rdp 1.04, pld 0.947)" in shown.stdout
    assert (place / "acc" / "figure.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*SGD, "--noise-multiplier", "8", "--also-noise", "-1"), "--also-noise = -1.0: expected a number in (0, inf)"),
        ((*SGD, "--epsilon", "1", "--also-noise", "1"), "nothing where σ is looked for; give --noise-multiplier"),
        (
            (*SGD, "--noise-multiplier", "8", "--also-noise", "1", "--accountant", "strong"),
            "--accountant = 'strong': expected one for unlike parts",
        ),
        (("mechanism", "gaussian-pca", "--epsilon", "1"), "delta = 0.0: expected above 0"),
        (
            (
                "mechanism",
                "gaussian-pca",
                "--epsilon",
                "1",
                "--delta",
                "1e-5",
                "--neighbours",
                "[[1,0]]",
                "[[1,0],[0]]",
            ),
            "expected numbers",
        ),
        (
            ("reproduce", "abadi-mnist", "--out", "r", "--data-dir", "nowhere", "--quiet"),
            "--data-dir = 'nowhere': expected an exist",
        ),
        (("reproduce", "abadi-mnist", "--out", "r", "--only", "eps=3"), "only = '3'"),
    ],
)
def test_bad_input_is_one_line(here, arguments: tuple[str, ...], words: str) -> None:
    shown = here(*arguments)
    assert shown.returncode == 2
    assert words in shown.stderr
    assert len(shown.stderr.strip().splitlines()) == 1
