"""Words that promise more than an audit can say: in texts of the program, in the README and in the docs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src" / "epsilometer"
# Texts of files that are being rewritten elsewhere; a file that is done leaves this list.
ELSEWHERE = ("src/epsilometer/bounds/",)  # theorems and their docstrings
JSON_KEYS = ("proved",)  # of `runs --json`: programs know it

FORBIDDEN = {
    # An attack errs with probability α: its bound is certified with a confidence.
    r"leaks? at least": "certified: ε ≥ x with 95 % confidence",
    r"\bdisproved?\b": "refuted with 95 % confidence",
    r"for sure, starting|odds for sure": "certified, with its confidence",
    # Power is a probability, of an attack of a named shape.
    r"(would|could) have (been )?(seen|found|refuted|caught)( it| one| an attack)?( if)? (twice|such)": "caught with …",
    r"twice as strong( as [a-z ]+)? would have": "a Gaussian attack twice as strong is caught with …",
    r"audit would have (seen|found)": "catches … of Gaussian attacks",
    # Limits hold under conditions.
    r"no (method|attack|reconstruction)s? (can|could) do better": "the condition under which it is a limit",
    r"nothing more to be had": "for which settings, and by how much",
    r"told everything": "a test that knows both laws beforehand",
    # Numbers of others.
    r"RMIA is not above LiRA|above LiRA with few references; here it is not": "offline RMIA beside online LiRA",
    r"paper has an AUC of \.68": "the README of its code has",
}  # fmt: skip

# "Prove" is for theorems, and for what nothing proves: one of these words stands near it.
PROVE = re.compile(r"\b(dis)?prov(e|es|ed|ing)\b", re.IGNORECASE)
THEORY = re.compile(
    r"accountant|theor|PLD|RDP|sensitivit|classic|Poisson|upper bound|et al\.|proves? (privacy|nothing)|nothing is|"
    r"not prove|prove it|prove bounds",
    re.IGNORECASE,
)
OF_THEOREMS = ("src/epsilometer/accounting/", "src/epsilometer/mechanisms/")  # rooms in which nothing is attacked


def texts_of(path: Path) -> Iterator[str]:
    """What people may read of a file: all of a page or a template, and of Python its strings."""
    content = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield re.sub(r"{{.*?}}|{%.*?%}", "…", content) if path.suffix == ".html" else content
        return
    # Strings that stand next to each other are one; what is filled in may be anything.
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in JSON_KEYS:
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)


def told() -> Iterator[tuple[str, str]]:
    pages = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.py"), *ROOT.glob("examples/**/*.md")]
    programs = [path for suffix in ("py", "html", "toml") for path in SOURCES.rglob(f"*.{suffix}")]
    for path in sorted([*pages, *programs]):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(ELSEWHERE):
            for text in texts_of(path):
                yield name, " ".join(text.split())


@pytest.mark.parametrize(("pattern", "instead"), FORBIDDEN.items())
def test_nothing_promises_too_much(pattern: str, instead: str) -> None:
    found = [(name, one.group()) for name, text in told() for one in re.finditer(pattern, text, re.IGNORECASE)]
    assert found == [], f"say what is so: {instead}"


def test_only_theorems_prove() -> None:
    """An attack certifies a lower bound with a confidence, or shows something; it proves nothing."""
    found = []
    for name, text in told():
        for one in PROVE.finditer(text):
            near = text[max(0, one.start() - 70) : one.end() + 70]
            if not THEORY.search(near) and not name.startswith(OF_THEOREMS):
                found.append((name, near))
    assert found == []


def test_the_words_are_found_where_they_stand(tmp_path: Path) -> None:
    """The tests above have teeth: across lines, in strings in a row, and in what is formatted."""
    (tmp_path / "a.py").write_text(
        'x = f"at least ε = {y} is proved "\nz = ("it leaks "\n     "at least ε")\n# proved\n'
    )
    texts = [" ".join(text.split()) for text in texts_of(tmp_path / "a.py")]
    assert any(PROVE.search(text) and not THEORY.search(text) for text in texts)
    assert any(re.search("leaks? at least", text) for text in texts)
