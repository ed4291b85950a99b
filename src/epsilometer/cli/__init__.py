"""The command line: parse, call, print."""

from epsilometer.cli.app import main

__all__ = ["main"]
