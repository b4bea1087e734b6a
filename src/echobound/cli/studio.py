"""`studio`: identification in the browser."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from echobound.cli.terminal import AsJson, print_json

if TYPE_CHECKING:
    from echobound.studio.security import Gate


def studio(
    folder: Annotated[Path, typer.Argument(metavar="[FOLDER]", help="Folder of data and runs.")] = Path(),
    port: Annotated[int, typer.Option(help="Port to serve at; 0 takes a free one.", min=0, max=65535)] = 8710,
    no_open: Annotated[bool, typer.Option("--no-open", help="Print the address and open no browser.")] = False,
    host: Annotated[
        str, typer.Option(help="Address to serve at. Any but loopback lets others in, and needs --token.")
    ] = "127.0.0.1",
    token: Annotated[
        str | None, typer.Option(help="Secret of the address; a new one, kept in FOLDER/.studio, if not given.")
    ] = None,
    upload_limit: Annotated[int, typer.Option(help="Largest file to take in, in MiB.", min=1)] = 1024,
    as_json: AsJson = False,
) -> None:
    """Identify in the browser: data, plan, live search, certificate, comparison.

    It serves FOLDER to this machine alone until Ctrl-C. The first line printed is the address, with a token that lets
    your browser in. Runs are processes of their own: they go on when the browser or the server ends, and the next start
    finds them again. Nothing leaves the machine.
    """
    from echobound.studio import serve

    def opened(gate: Gate) -> None:
        if as_json:
            print_json({"address": gate.address, "folder": str(folder.resolve()), "port": gate.port})
        else:
            print(gate.address, flush=True)
        sys.stdout.flush()
        if not gate.on_loopback:
            print(
                f"warning: others can reach the studio at port {gate.port} of {gate.host}: whoever has the token reads"
                " the folder's data and uses this machine, and the connection is not encrypted",
                file=sys.stderr,
            )
        if not no_open and not webbrowser.open(gate.address):
            print("no browser was found: open this address in yours", file=sys.stderr)

    serve(folder, host=host, port=port, token=token, upload_limit=upload_limit << 20, opened=opened)
