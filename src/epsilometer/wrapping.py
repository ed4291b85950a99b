"""Texts in lines: labels and statements, which read well without colours."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

Row = tuple[str, str]  # label and text
# Where a line should not end: inside of "ε ≥ 0.7", "95 %", "TP 189", "8 s".
_TOGETHER = re.compile(r"(?<=[εδσμqpTkPRN]) (?=[=≥≤≈×\d])|(?<=[=≥≤≈×]) (?=\S)|(?<=\d) (?=(?:%|s|min|h)(?!\w))")


def told(sentences: Sequence[str], rows: Sequence[Row], width: int | None = None) -> str:
    """Sentences, an empty line, and the rows that have a text, each one line if no `width` is given."""
    first = [*(wrapped(text, width) for text in sentences), ""] if sentences else []
    kept = [(label, text) for label, text in rows if text]
    indent = 2 + max((len(label) for label, _ in kept), default=0)
    return "\n".join([*first, *(wrapped(text, width, f"{label:<{indent}}") for label, text in kept)])


def wrapped(text: str, width: int | None = None, label: str = "", hanging: str = "") -> str:
    """Lines of at most `width` characters that end between words, indented below each other after the label, or by
    `hanging` where there is none.

    >>> print(wrapped("it certifies ε ≥ 0.7 at least", 24, "bound   "))
    bound   it certifies
            ε ≥ 0.7 at least
    """
    if width is None:
        return f"{label}{text}".rstrip()
    indent = " " * len(label) or hanging
    if len(label) > width // 3:  # too narrow for a column of labels
        label, indent = f"{label.rstrip()}: " if label.strip() else "  ", "  "
    lines = textwrap.wrap(
        _TOGETHER.sub("\N{NO-BREAK SPACE}", text), width,
        initial_indent=label, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")
