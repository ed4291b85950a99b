"""What README and docs say is true: their code runs, their commands parse, every option and name is in them."""

import html.parser
import importlib.util
import inspect
import re
import shlex
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from epsilometer import run, summary
from epsilometer.auditing import Spec, parse_spec, template
from epsilometer.watching.checks import catalogue as check_catalogue

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
# Pages whose Python is tested elsewhere: below, or beside what it is about.
ELSEWHERE = {"README.md", "ci.md", "erm.md", "extending.md", "runs.md"}


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def page(name: str) -> str:
    return (DOCS / name).read_text()


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    return loaded(DOCS / "reference.py")


# Python ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", blocks(README, "python"), ids=["audit", "bound", "pilot"])
def test_the_readmes_examples_run(code: str) -> None:
    exec(compile(code, "README.md", "exec"), {})


@pytest.mark.parametrize(
    ("path", "number"),
    [
        pytest.param(path, number, id=f"{path.name}-{number}")
        for path in PAGES
        if path.name not in ELSEWHERE
        for number in range(len(blocks(path.read_text(), "python")))
    ],
)
def test_python_on_every_page_runs(path: Path, number: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code = blocks(path.read_text(), "python")[number]
    for library in ("opacus", "jax"):
        if f"epsilometer.{library}" in code:
            pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Opacus and JAX have many
        exec(compile(code, path.name, "exec"), {"__name__": "own"})


def test_an_adversary_and_a_bound_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole of extending.md: modules, their use, contracts, and names that a package brings to a spec."""
    code, toml = blocks(page("extending.md"), "python"), blocks(page("extending.md"), "toml")
    points = "".join(block for block in toml if "entry-points" in block)
    (spec,) = (block for block in toml if "entry-points" not in block)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(check_catalogue, "_all", check_catalogue._all.__wrapped__)  # nothing of it stays
    info = tmp_path / "own-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
    groups = tomllib.loads(points)["project"]["entry-points"]
    lines = (f"[{group}]\n" + "".join(f"{n} = {p}\n" for n, p in names.items()) for group, names in groups.items())
    (info / "entry_points.txt").write_text("".join(lines))
    importlib.invalidate_caches()
    used = 0
    for block in code:
        named = re.match(r"# (\w+\.py)\n", block)
        if named:
            (tmp_path / named.group(1)).write_text(block)
        else:
            exec(compile(block, "extending.md", "exec"), {})
            used += 1
    assert used == 7  # of blocks that are no modules
    result = run(parse_spec(spec).plan())
    assert type(result.plan.adversary).__name__ == "FaintRecord"
    assert result.plan.adversary.label == 1
    assert result.lower_bound.method.startswith("better-of-two")


def test_a_test_of_the_page_on_ci_plays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from epsilometer.testing import AssertPrivate

    (code,) = blocks(page("ci.md"), "python")
    (train,) = blocks(page("subjects.md"), "python")
    function = train[train.index("def train") : train.index("rng =")]
    (tmp_path / "mypackage.py").write_text(f"import numpy as np\n\n\n{function}")
    monkeypatch.syspath_prepend(tmp_path)
    tests: dict[str, Any] = {}
    exec(compile(code, "ci.md", "exec"), tests)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 20 trials are inconclusive
        tests["test_training_keeps_its_promise"](AssertPrivate(trials=20))
    accepts = inspect.signature(AssertPrivate.__call__)
    tests["test_another_one"](lambda *given, **settings: accepts.bind(None, *given, **settings))


def test_specs_on_every_page_can_be_read() -> None:
    """Whole ones and parts of one; what is no spec is TOML at least."""
    read = 0
    for path in PAGES:
        for text in blocks(path.read_text(), "toml"):
            if set(tomllib.loads(text)) <= Spec.model_fields.keys() and "faint-record" not in text:
                parse_spec(text)
                read += 1
    assert read >= 5
    (faulty,) = blocks(page("tutorial.md"), "toml")
    spec = parse_spec(faulty)
    assert spec.subject.noise_multiplier == 2 * spec.subject.arguments["noise"]


def test_specs_of_studies_can_be_read() -> None:
    from epsilometer.collaborative import parse_property
    from epsilometer.reconstruction import parse_reconstruction

    (shared,), (rebuilt,) = (blocks(page(name), "toml") for name in ("collaborative.md", "reconstruction.md"))
    assert parse_property(shared).study().plan.collaboration.updates.level == "record"
    assert parse_reconstruction(rebuilt).study().plan.attack.hidden == (32,)


def test_a_training_of_ones_own_is_audited_as_its_page_says() -> None:
    spec, ridge = blocks(page("subjects.md"), "toml")
    assert parse_spec(ridge).plan().adversary.name == "ridge-clipbkd"
    assert parse_spec(spec).subject.stated() is not None


def test_the_page_on_runs_has_a_script_that_runs(tmp_path: Path) -> None:
    (script,) = blocks(page("runs.md"), "python")
    (tmp_path / "script.py").write_text(
        script.replace("Spec()", "spec_from_dict({'audit': {'trials': 20}})").replace(
            "import Spec,", "import spec_from_dict,"
        )
    )
    subprocess.run([sys.executable, "script.py"], cwd=tmp_path, check=True, timeout=120)
    assert (tmp_path / "results" / "trials.sqlite").exists()


# Specs ----------------------------------------------------------------------------------------------------------------


def test_the_readme_shows_what_an_audit_prints() -> None:
    (shown,) = blocks(README, "text")
    printed = summary(run(Spec().plan()))
    seconds = re.compile(r"\d+\.\d s$", flags=re.MULTILINE)
    assert seconds.sub("", shown.strip()) == seconds.sub("", printed.strip())


def test_the_spec_page_shows_every_key_with_its_default() -> None:
    (text,) = blocks(page("spec.md"), "toml")
    shown = tomllib.loads(text)
    commented = set(re.findall(r"^# (\w+) =", text, flags=re.MULTILINE))
    for section in Spec.model_fields:
        missing = Spec.keys_of(section).keys() - shown[section].keys() - commented
        assert missing <= {"threshold", "target"}, section  # explained beside `bound`
    assert template("default").endswith(text)
    written = parse_spec(text).plan()
    assert written.fingerprint() == Spec().plan().fingerprint()


# Commands -------------------------------------------------------------------------------------------------------------


def program() -> Any:
    import typer

    from epsilometer.cli.app import program as built

    return typer.main.get_command(built())


def shown_commands() -> Iterator[tuple[str, str]]:
    """(page, command) for every `$ epsilometer …` of a console block; a `…` in it stands for something left out."""
    for path in PAGES:
        for block in blocks(path.read_text(), "console"):
            for line in block.replace("\\\n", " ").splitlines():
                if line.startswith("$ ") and "epsilometer" in line and "…" not in line:
                    yield path.name, line[2:]


def own_words(line: str) -> list[str]:
    """The words after `epsilometer`."""
    words = shlex.split(line, comments=True)
    return words[words.index("epsilometer") + 1 :] if "epsilometer" in words else []


@pytest.mark.parametrize(("path", "line"), list(dict.fromkeys(shown_commands())))
def test_every_command_that_is_shown_can_be_parsed(path: str, line: str) -> None:
    """Names, options and their values, as the program itself takes them."""
    words = own_words(line)
    if not words or words == ["--version"]:
        return
    command = program().commands[words[0]]
    command.make_context(words[0], words[1:])


def test_the_cheap_ones_run(capsys: pytest.CaptureFixture[str]) -> None:
    cheap = [line for _, line in shown_commands() if re.search(r"epsilometer (list|bound --counts)", line)]
    assert cheap
    for line in cheap:
        program()(own_words(line), standalone_mode=False)
        assert capsys.readouterr().out, line


def test_options_in_sentences_exist() -> None:
    """`--like-this` in any page is an option of some command, or another program's."""
    others = {"--junitxml", "--epsilometer-strict", "--epsilometer-trials", "--help", "--executor=ray"}
    root = program()
    known = {
        name
        for one in (root, *root.commands.values())
        for param in one.params
        for name in (*param.opts, *param.secondary_opts)
    }
    for path in PAGES:
        text = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
        for words in re.findall(r"`([^`]*--[^`]*)`", text):
            if words.startswith(("python", "pip", "pytest", "assert_private")):
                continue
            for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", words.split(" -- ")[0]):
                assert option in known | others, f"{path.name}: {words}"


def test_the_page_of_commands_is_as_the_program_has_them(reference: ModuleType) -> None:
    assert page("commands.md") == reference.commands(), "run: python docs/reference.py"


def test_the_page_of_results_is_as_their_types_have_them(reference: ModuleType) -> None:
    assert page("results.md") == reference.results(), "run: python docs/reference.py"


def test_every_option_of_help_is_on_that_page(capsys: pytest.CaptureFixture[str]) -> None:
    sections = dict(
        re.findall(r"^## epsilometer (\w+)\n(.*?)(?=^## |\Z)", page("commands.md"), re.DOTALL | re.MULTILINE)
    )
    commands = program().commands
    assert sections.keys() == commands.keys()
    for name, command in commands.items():
        context = command.make_context(name, ["--help"], resilient_parsing=True)
        options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", command.get_help(context) + capsys.readouterr().out))
        written = set(re.findall(r"--[a-z][a-z-]+", sections[name]))
        assert options - {"--help"} <= written, name


def test_the_readme_lists_the_commands() -> None:
    from epsilometer.cli.app import COMMANDS

    names = set(COMMANDS)
    assert set(re.findall(r"^\| `epsilometer (\w+)", README, flags=re.MULTILINE)) == names
    assert all(f"`{name}`" in (ROOT / "CHANGELOG.md").read_text() for name in names)


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in ("audit", "test", "test-full", "bench", "docs", "lint"):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)


# Names ----------------------------------------------------------------------------------------------------------------


def test_every_public_name_is_in_the_reference_and_says_what_it_is(reference: ModuleType) -> None:
    import epsilometer

    pages, modules = reference.api_pages(), reference.namespaces()
    assert {f"epsilometer.{name}" for name in epsilometer.__all__} >= modules.keys() - {"epsilometer"}
    for namespace, module in modules.items():
        text = pages[f"{namespace}.md"]
        for name in reference.public_names(module):
            assert f"\n## {name}\n" in text, f"{namespace}.{name}"
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                said = inspect.getdoc(value) or ""
                assert said, f"{namespace}.{name} has no docstring"
                assert not said.startswith(f"{name}("), f"{namespace}.{name} has no docstring"


def test_a_name_that_is_forgotten_would_be_noticed(reference: ModuleType) -> None:
    """The test above compares with `__all__`, not with what the generator likes."""
    module = ModuleType("epsilometer.made_up")
    module.__all__ = ["Thing"]
    module.Thing = type("Thing", (), {"__doc__": "What it is."})
    assert reference.public_names(module) == ["Thing"]
    assert "## Thing\n" in reference._page("epsilometer.made_up", module)


# Pages ----------------------------------------------------------------------------------------------------------------


def test_pictures_are_there_and_small() -> None:
    shown = set(re.findall(r"\(pictures/([\w-]+\.svg)\)", page("concepts.md")))
    there = {path.name: path.stat().st_size for path in (DOCS / "pictures").iterdir()}
    assert shown == there.keys()
    assert max(there.values()) < 60_000


def test_links_between_files_lead_somewhere() -> None:
    for path in PAGES:
        text = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
            if not target.startswith(("http://", "https://", "api/")):
                assert (path.parent / target).exists(), f"{path.name}: {target}"


class Loads(html.parser.HTMLParser):
    """Addresses that a browser loads by itself; links that a reader may follow are none."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            loads = name in {"src", "srcset", "data", "poster", "xlink:href"} or (name == "href" and tag != "a")
            if value and (loads or name == "style"):
                self.found.append(value)


def external(text: str) -> list[str]:
    return re.findall(r"""(?:url\(\s*["']?|@import\s+["']?|^\s*)((?:https?:)?//[^"')\s]+)""", text)


def test_what_counts_as_a_load() -> None:
    parser = Loads()
    parser.feed('<a href="https://a.b"></a><script src="https://c.d/x.js"></script><link href="//e.f/y.css">')
    assert [address for one in parser.found for address in external(one)] == ["https://c.d/x.js", "//e.f/y.css"]
    assert external("a { background: url('https://g.h/i.png') } @import 'https://j.k/l.css';") != []
    assert external("""a { b: url('data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg">') }""") == []


def test_the_documentation_is_built_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    """As `make docs` does it: a warning is an error."""
    recipe = re.search(
        r"^\t\$\(BIN\)/sphinx-build (.*) docs docs/_build$", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    assert recipe is not None
    command = [sys.executable, "-m", "sphinx", *recipe.group(1).split(), "docs", str(tmp_path)]
    built = subprocess.run(command, check=False, cwd=ROOT, text=True, capture_output=True, timeout=600)
    assert built.returncode == 0, built.stderr
    files = [path for path in tmp_path.rglob("*") if path.suffix in {".html", ".css", ".svg"}]
    assert len(files) > 30
    for path in files:
        text, parser = path.read_text(), Loads()
        if path.suffix == ".css":
            loads = external(text)
        else:
            parser.feed(text)
            styles = re.findall(r"<style[^>]*>(.*?)</style>", text, flags=re.DOTALL)
            loads = [address for one in (*parser.found, *styles) for address in external(one)]
        assert loads == [], path.name
    assert "<math" in (tmp_path / "statistics.html").read_text()


# Examples -------------------------------------------------------------------------------------------------------------

TUTORIAL = ROOT / "examples" / "tutorial"


@pytest.mark.parametrize(("name", "lines"), [("half_noise", 5), ("wrong_loader", 2)])
def test_the_tutorials_faults_are_the_only_difference(name: str, lines: int) -> None:
    right, wrong = ((TUTORIAL / f"{one}.py").read_text().splitlines() for one in ("train", name))
    assert len(set(wrong) - set(right)) <= lines
    assert len(set(right) - set(wrong)) <= 2


@pytest.mark.full
@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("watch --require not-violated -- python train.py", 0, "30 steps do not refute the stated noise"),
        ("watch --require not-violated -- python half_noise.py", 1, "violated: what it states of its steps is refuted"),
        ("inspect --require passed --ignore nonfinite-record -- python train.py", 0, "30 steps taken, all accounted"),
        ("inspect --require passed --ignore nonfinite-record -- python wrong_loader.py", 4,
         "iterate over the loader that make_private returned"),
    ],
)  # fmt: skip
def test_the_tutorial_is_true(words: str, code: int, says: str) -> None:
    pytest.importorskip("opacus")
    command = [sys.executable, "-m", "epsilometer", *words.replace("-- python", f"-- {sys.executable}").split()]
    done = subprocess.run(command, check=False, cwd=TUTORIAL, text=True, capture_output=True, timeout=600)
    assert done.returncode == code, done.stderr
    assert says in done.stdout + done.stderr
    assert np.isfinite(float(re.search(r"epsilon ([\d.]+)", done.stdout).group(1)))
    assert says.split(":", maxsplit=1)[0] in " ".join(page("tutorial.md").split())
