"""The `epsilometer` program. Commands import what they need when they run: `--help` must be quick."""

from __future__ import annotations

import importlib
import itertools
import os
import sys
import traceback
from collections.abc import Iterable
from contextlib import nullcontext

import typer

from epsilometer import __version__, validate
from epsilometer.cli.output import BAD_INPUT, INTERNAL_ERROR, INTERRUPTED, Interrupted, results_only, say
from epsilometer.errors import EpsilometerError, InvalidInput, one_line

COMMANDS = {
    "init": "spec:init",
    "preview": "spec:preview",
    "audit": "audit:audit",
    "ladder": "ladder:ladder",
    "sweep": "sweep:sweep",
    "mechanism": "mechanism:mechanism",
    "membership": "membership:membership",
    "instances": "instances:instances",
    "property": "property:property_inference",
    "reconstruct": "reconstruct:reconstruct",
    "runs": "runs:runs",
    "report": "report:report",
    "diff": "diff:diff",
    "serve": "serve:serve",
    "account": "account:account",
    "bound": "bound:bound",
    "compare": "bound:compare",
    "coverage": "coverage:coverage",
    "power": "power:power",
    "reproduce": "reproduce:reproduce",
    "extractor": "extractor:extractor",
    "watch": "watch:watch",
    "inspect": "inspect:inspect",
    "list": "catalogue:catalogue",
}  # in the order of `--help`: the module here and the function in it
_FOREIGN_COMMAND = ("watch", "inspect")  # options after the user's own command are its own
_RENAMED = {"check": "preview", "calibrate": "coverage"}  # old names, which will go with the next release
# Where the parser's own errors come from depends on the version of typer; their base class does not.
_UsageError: type[Exception] = typer.BadParameter.__mro__[2]


def _version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


def _root(
    context: typer.Context,
    _: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


def program(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """The program with these commands; of others nothing is imported."""
    app = typer.Typer(
        name="epsilometer",
        help="Measures how private a machine-learning training really is: what theory promises, what an attack "
        "shows, and a verdict.\n\n"
        "Exit codes: 0 consistent or inconclusive, 1 violated, 2 bad input, 3 internal error, 4 not as required, "
        "130 interrupted.",
        invoke_without_command=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for name in names:
        module, _, function = COMMANDS[name].partition(":")
        settings = {"allow_interspersed_args": False} if name in _FOREIGN_COMMAND else None
        app.command(name, context_settings=settings)(
            getattr(importlib.import_module(f"epsilometer.cli.{module}"), function)
        )
    return app


def _asked(arguments: list[str]) -> Iterable[str]:
    """The command that was asked for; all where none is, for help, completion and wrong names."""
    only = arguments[:1] if not _completes(arguments) else []
    return only if only and only[0] in COMMANDS else COMMANDS


def run() -> int:
    """Run the program for its exit code; mistakes of the user end in one line and code 2, never in 1, an accusation."""
    _rename(sys.argv)
    own = _own(sys.argv)
    with results_only() if "--json" in own and own[1] != "inspect" else nullcontext():  # inspect's goes to a file
        return _run()


def _rename(arguments: list[str]) -> None:
    """Old names of commands work, and say what they are called now."""
    if len(arguments) > 1 and arguments[1] in _RENAMED:
        new = _RENAMED[arguments[1]]
        say(f"epsilometer: {arguments[1]} is now called {new}; the old name will go with the next release")
        arguments[1] = new


def _run() -> int:
    try:
        _require_floats(_own(sys.argv[1:]))
        code = program(_asked(sys.argv[1:]))(standalone_mode=False) or 0
        sys.stdout.flush()
        if code == INTERRUPTED:  # how newer versions of typer report Ctrl-C
            raise KeyboardInterrupt
        return int(code)
    except InvalidInput as error:
        option = "--" + error.argument.replace("_", "-")
        given = any(argument.split("=")[0] == option for argument in _own(sys.argv[1:]))
        shown = error.renamed(option) if given else error
        say(f"epsilometer: {shown}" + ("" if error.remedy else f"; {_see_help(_own(sys.argv[1:]))}"))
    except Interrupted as stop:
        say(f"epsilometer: interrupted; {stop}")
        return INTERRUPTED
    except EpsilometerError as error:
        say(f"epsilometer: {error}")
    except _UsageError as error:
        say(f"epsilometer: {_one_line(error, _own(sys.argv[1:]))}")
    except SystemExit:
        if not _completes(sys.argv[1:]):
            raise
        sys.stdout.flush()
        return 0
    except (KeyboardInterrupt, typer.Abort):
        say("epsilometer: interrupted")
        return INTERRUPTED
    except MemoryError:
        say("epsilometer: this does not fit into memory; ask for less")
    except OSError as error:
        say(f"epsilometer: {error.strerror or error}: {error.filename or 'output'}")
    except Exception as error:
        if os.environ.get("EPSILOMETER_DEBUG"):
            traceback.print_exc()
        what = one_line(f"{type(error).__name__}: {error}", limit=200)
        say(f"epsilometer: internal error ({what}); EPSILOMETER_DEBUG=1 shows where")
        return INTERNAL_ERROR
    return BAD_INPUT


def _completes(arguments: list[str]) -> bool:
    """Whether a shell asks how a command goes on, or for the script that asks: typer ends the process then."""
    wanted = arguments[:1] in (["--show-completion"], ["--install-completion"])
    return wanted or "_EPSILOMETER_COMPLETE" in os.environ


def _own(arguments: list[str]) -> list[str]:
    """Those before `--`: what comes after it is a command of the user's own."""
    return arguments[: arguments.index("--")] if "--" in arguments else arguments


def _require_floats(arguments: list[str]) -> None:
    """No number may be too large or too small for a float: the parser would take it for infinity or 0."""
    for word, following in itertools.pairwise([*arguments, ""]):
        name, equals, own = word.partition("=")
        text = own if equals else following
        try:
            float(text)
        except ValueError:
            continue
        if name.startswith("--"):
            validate.written(name, text)


def _one_line(error: Exception, arguments: list[str]) -> str:
    """What is wrong with the command line: argument, value, what was expected, remedy."""
    formatted = error.format_message() if hasattr(error, "format_message") else str(error)
    message = one_line(formatted, limit=300)
    option = next((name for name in getattr(getattr(error, "param", None), "opts", ()) if name in message), "")
    value = ""
    for i, argument in enumerate(arguments):
        if option and argument == option:
            following = []
            for word in arguments[i + 1 :]:
                if word.startswith("--"):
                    break
                following.append(word)
            value = f" (given: {one_line(' '.join(following))!r})"
        elif option and argument.startswith(f"{option}="):
            value = f" (given: {one_line(argument.partition('=')[2])!r})"
    several = ""
    if getattr(error, "option_name", "") == "--counts":
        from epsilometer.cli.bound import COUNTS

        several = f" ({COUNTS})"  # the parser says how many
    return f"{message.rstrip('.')}{several}{value}; {_see_help(arguments)}"


def _see_help(arguments: list[str]) -> str:
    command = next((f"{name} " for name in arguments if name in COMMANDS), "")
    return f"see 'epsilometer {command}--help'"
