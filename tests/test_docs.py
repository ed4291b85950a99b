"""What README and docs say is true: their code runs, their spec is the default, their commands exist."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from epsilometer import run, summary
from epsilometer.auditing import Spec, parse_spec, template

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


@pytest.mark.parametrize("code", blocks(README, "python"), ids=["audit", "bound", "pilot"])
def test_the_readmes_examples_run(code: str) -> None:
    exec(compile(code, "README.md", "exec"), {})


def test_the_adversary_of_ones_own_plays() -> None:
    (code,) = blocks((ROOT / "docs" / "adversaries.md").read_text(), "python")
    exec(compile(code, "adversaries.md", "exec"), {"__name__": "own"})


def test_a_training_of_ones_own_is_audited_as_its_page_says() -> None:
    text = (ROOT / "docs" / "subjects.md").read_text()
    (code,) = blocks(text, "python")
    exec(compile(code, "subjects.md", "exec"), {"__name__": "own"})
    (spec,) = blocks(text, "toml")
    assert parse_spec(spec).subject.stated() is not None


def test_the_readme_shows_what_an_audit_prints() -> None:
    (shown,) = blocks(README, "text")
    printed = summary(run(Spec().plan()))
    seconds = re.compile(r"\d+\.\d s$", flags=re.MULTILINE)
    assert seconds.sub("", shown.strip()) == seconds.sub("", printed.strip())


def test_the_spec_page_shows_every_key_with_its_default() -> None:
    (text,) = blocks((ROOT / "docs" / "spec.md").read_text(), "toml")
    shown = tomllib.loads(text)
    commented = set(re.findall(r"^# (\w+) =", text, flags=re.MULTILINE))
    defaults = Spec().model_dump()
    for section, keys in defaults.items():
        missing = keys.keys() - shown[section].keys() - commented
        assert missing <= {"threshold", "target"}, section  # explained beside `bound`
    assert template("default").endswith(text)
    written = parse_spec(text).plan()
    assert written.fingerprint() == Spec().plan().fingerprint()


def test_the_page_on_runs_has_a_script_that_runs(tmp_path: Path) -> None:
    (script,) = blocks((ROOT / "docs" / "runs.md").read_text(), "python")
    (tmp_path / "script.py").write_text(
        script.replace("Spec()", "spec_from_dict({'audit': {'trials': 20}})").replace(
            "import Local, Spec,", "import Local, spec_from_dict,"
        )
    )
    subprocess.run([sys.executable, "script.py"], cwd=tmp_path, check=True, timeout=120)
    assert (tmp_path / "results" / "trials.sqlite").exists()


def test_the_readme_lists_the_commands() -> None:
    from epsilometer.cli.app import _COMMANDS, app

    names = {command.name or command.callback.__name__ for command in app.registered_commands}
    assert names == set(_COMMANDS)
    assert set(re.findall(r"^\| `epsilometer (\w+)", README, flags=re.MULTILINE)) == names
    assert all(f"`{name}`" in (ROOT / "CHANGELOG.md").read_text() for name in names)


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in ("audit", "test", "test-full", "bench", "docs", "lint"):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)
