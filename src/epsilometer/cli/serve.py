"""`epsilometer serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from epsilometer.cli.manner import AsJson
from epsilometer.cli.output import emit_json, say


def serve(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A folder with runs in it, at any depth.")],
    port: Annotated[int, typer.Option(help="0 takes one that is free.", min=0, max=65535)] = 0,
    address: Annotated[str, typer.Option(help="Where to listen; usually for this machine alone.")] = "127.0.0.1",
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Let --address be one that other machines reach: they see all runs.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show all runs of a folder on a page for your browser: progress while they run, verdicts, reports.

    It reads and never writes, shows nothing outside of DIR, and runs no scripts. Ctrl-C ends it.

    Examples:

    - `epsilometer serve results` prints the address to open.

    - `epsilometer serve results --port 8080`

    - `epsilometer serve results --address 0.0.0.0 --port 8080 --allow-remote` shows them to everybody in the network.
    """
    from epsilometer.cli.progress import broken_pipes_are_errors
    from epsilometer.overview.folder import Folder
    from epsilometer.overview.server import FolderServer

    with FolderServer(Folder(directory), address, port, remote=allow_remote) as server:
        if as_json:
            emit_json({"url": server.url, "folder": str(server.folder.root)})
        else:
            print(server.url, flush=True)
        say(f"showing the runs in {directory}; Ctrl-C ends it")
        if server.remote:
            say("everybody who reaches this machine can read them")
        try:
            with broken_pipes_are_errors():  # of one answer, when a client leaves
                server.serve_forever()
        except KeyboardInterrupt:
            say("ended")
