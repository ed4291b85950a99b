"""The command line: parse, call, print."""

from epsilometer.cli.supervisor import main

__all__ = ["main"]
