import ast
import subprocess
import sys
from pathlib import Path

import epsilometer


def test_every_public_name_exists_and_is_documented() -> None:
    for name in epsilometer.__all__:
        value = getattr(epsilometer, name)
        assert name == "__version__" or value.__doc__, name
    assert set(epsilometer.__all__) == set(dir(epsilometer))


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(epsilometer.__file__).read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = [alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert len(seen) == len(set(seen))
    assert {*seen, "__version__"} == set(epsilometer.__all__)


def test_what_a_first_script_needs_is_little() -> None:
    assert len(epsilometer._HOMES) <= 15
    for room in epsilometer._ROOMS:
        assert set(getattr(getattr(epsilometer, room), "__all__", [])) <= set(dir(getattr(epsilometer, room)))


def test_unknown_names_are_attribute_errors() -> None:
    assert not hasattr(epsilometer, "nothing")


def test_rooms_are_loaded_when_they_are_used() -> None:
    code = "import sys, epsilometer; epsilometer.bounds; sys.exit('torch' in sys.modules or 'sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
