"""Spec files to start from, with comments."""

from __future__ import annotations

from importlib import resources

from epsilometer.errors import unknown_name

TEMPLATES = {
    "default": "every key with its default: the gradient adversary on logistic regression",
    "black-box": "poisoned records, seen through the final model only",
    "one-run": "one training with many canaries",
    "early-stop": "stops as soon as the claim is refuted",
}


def template(name: str) -> str:
    """The text of a template."""
    if name not in TEMPLATES:
        raise unknown_name("template", name, TEMPLATES)
    return resources.files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
