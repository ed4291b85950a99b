"""What numbers were computed with."""

from __future__ import annotations

import platform
from importlib import metadata

from epsilometer import __version__


def versions() -> dict[str, str]:
    """Of Epsilometer, Python and the packages that matter most."""
    packages = ("numpy", "scipy", "numba", "torch", "dp-accounting", "scikit-learn")
    return {
        "epsilometer": __version__,
        "python": platform.python_version(),
        **{package: _version(package) for package in packages},
    }


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "missing"
