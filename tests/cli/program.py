"""What the program has shown."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Shown:
    returncode: int
    stdout: str
    stderr: str
