"""The `epsilometer` program. Commands import what they need when they run: `--help` must be quick."""

from __future__ import annotations

import os
import sys

import typer

from epsilometer import __version__
from epsilometer.cli.account import account
from epsilometer.cli.audit import audit
from epsilometer.cli.bound import bound
from epsilometer.cli.catalogue import catalogue
from epsilometer.cli.output import BAD_INPUT, INTERRUPTED, say
from epsilometer.cli.power import power
from epsilometer.errors import EpsilometerError

app = typer.Typer(
    name="epsilometer",
    help="Measures how private a machine-learning training really is: what theory promises, what an attack "
    "proves, and a verdict.\n\n"
    "Exit codes: 0 consistent or inconclusive, 1 violated, 2 bad input, 130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(audit)
app.command()(account)
app.command()(bound)
app.command()(power)
app.command("list")(catalogue)


_COMMANDS = ("audit", "account", "bound", "power", "list")
# Where the parser's own errors come from depends on the version of typer; their base class does not.
_UsageError: type[Exception] = typer.BadParameter.__mro__[2]


def _version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    pass


def main() -> None:
    """Run the program; mistakes of the user end in one line and exit code 2."""
    try:
        code = app(standalone_mode=False) or 0
        if code == INTERRUPTED:  # how newer versions of typer report Ctrl-C
            raise KeyboardInterrupt
        sys.exit(code)
    except EpsilometerError as error:
        say(f"epsilometer: {error}")
    except _UsageError as error:
        say(f"epsilometer: {_one_line(error, sys.argv[1:])}")
    except (KeyboardInterrupt, typer.Abort):
        say("epsilometer: interrupted")
        sys.exit(INTERRUPTED)
    except BrokenPipeError:  # the reader of our output went away, e.g. `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    sys.exit(BAD_INPUT)


def _one_line(error: Exception, arguments: list[str]) -> str:
    """What is wrong with the command line: argument, value, what was expected, remedy."""
    formatted = error.format_message() if hasattr(error, "format_message") else str(error)
    message = " ".join(formatted.split())
    option = next((name for name in getattr(getattr(error, "param", None), "opts", ()) if name in message), "")
    value = ""
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
        if option and argument == option:
            value = f" (given: {following!r})"
        elif option and argument.startswith(f"{option}="):
            value = f" (given: {argument.partition('=')[2]!r})"
    command = next((name for name in arguments if name in _COMMANDS), "")
    return f"{message.rstrip('.')}{value}; see 'epsilometer {command} --help'".replace("  ", " ")
