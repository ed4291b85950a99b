"""Text from outside that is shown as it is written, never obeyed."""

from __future__ import annotations


def visible(text: str) -> str:
    r"""Text from outside (keys of a spec, names in a store, paths) that cannot command a terminal.

    >>> print(visible("a\x1b[31mred\nε"))
    a\x1b[31mred\nε
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
