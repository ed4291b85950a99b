"""Files that hold a hash of themselves: whether somebody has changed one can be told without making it again."""

from __future__ import annotations

import hashlib
import re

EMPTY = "0" * 64  # in the place of the hash, while that is computed
_SEAL = re.compile(rb'epsilometer-sha256(?:" content="|: )([0-9a-f]{64})')


def sealed(text: str) -> bytes:
    """The file's content; a text without a place for the hash (after `epsilometer-sha256: `) gets one as a comment.

    >>> is_sealed(sealed("<svg></svg>")), is_sealed(sealed("<svg></svg>").replace(b"svg", b"SVG"))
    (True, False)
    """
    if EMPTY not in text:
        text = f"{text.rstrip()}\n<!-- epsilometer-sha256: {EMPTY} -->\n"
    content = text.encode()
    return content.replace(EMPTY.encode(), hashlib.sha256(content).hexdigest().encode(), 1)


def is_sealed(content: bytes) -> bool:
    """Whether this is as it was written."""
    found = _SEAL.search(content)
    if found is None:
        return False
    before = content[: found.start(1)] + EMPTY.encode() + content[found.end(1) :]
    return hashlib.sha256(before).hexdigest().encode() == found.group(1)
