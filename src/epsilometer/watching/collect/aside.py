"""A part of an inspection that may fail without the others: what it could not do is said in place of its facts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Aside:
    """Once something went wrong, nothing is looked at any more."""

    def __init__(self) -> None:
        self.trouble = ""

    @contextmanager
    def look(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.trouble = self.trouble or f"could not be followed ({type(error).__name__}: {str(error)[:200]})"
