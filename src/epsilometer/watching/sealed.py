"""Values that a process of a command tells whoever watches, and nobody else who has the recording.

The key is in the command's environment, and written nowhere: a recording that is kept cannot be opened later.
"""

from __future__ import annotations

import base64
import hashlib
import os

from epsilometer.watching.settings import SECRET


def seal(content: bytes) -> tuple[str, str]:
    """A number that is used once, and the content as nobody can read it without the key."""
    once = os.urandom(12).hex()
    return once, base64.b64encode(_covered(content, once)).decode("ascii")


def unseal(once: str, sealed: str) -> bytes:
    """The content; of another command, nothing that makes sense."""
    return _covered(base64.b64decode(sealed, validate=True), once)


def can_seal() -> bool:
    """Does somebody watch from outside?"""
    return bool(os.environ.get(SECRET))


def _covered(content: bytes, once: str) -> bytes:
    cover = hashlib.shake_256(f"{os.environ.get(SECRET, '')}:{once}".encode()).digest(len(content))
    return (int.from_bytes(content, "little") ^ int.from_bytes(cover, "little")).to_bytes(len(content), "little")
