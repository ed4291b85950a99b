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


# What numpy 2 added to its namespace: numpy 1.26 is allowed, and has none of it.
NUMPY_2 = {
    "acos", "acosh", "asin", "asinh", "astype", "atan", "atan2", "atanh", "bitwise_count", "bitwise_invert",
    "bitwise_left_shift", "bitwise_right_shift", "bool", "concat", "cumulative_prod", "cumulative_sum", "isdtype",
    "long", "matrix_transpose", "matvec", "permute_dims", "pow", "strings", "trapezoid", "ulong", "unique_all",
    "unique_counts", "unique_inverse", "unique_values", "unstack", "vecdot", "vecmat",
}  # fmt: skip


def test_nothing_is_used_that_only_numpy_2_has() -> None:
    used = {
        (path.name, node.attr)
        for path in Path(epsilometer.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("np", "numpy")
    }
    assert ("headline.py", "linspace") in used
    assert not {(name, attribute) for name, attribute in used if attribute in NUMPY_2}
