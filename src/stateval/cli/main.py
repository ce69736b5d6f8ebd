"""The program's entrance: the list of commands, and what becomes of errors."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from typing import Annotated

import typer

from stateval import __version__
from stateval.cli.run import run
from stateval.errors import ExitStatus, StatevalError
from stateval.redaction import Redaction, secrets_of_environment

app = typer.Typer(
    name="stateval",
    help="Evaluate stateful agents: does an agent with memory remember, correct itself and keep to its policy?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(run)


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    if version:
        typer.echo(f"stateval {__version__}")
        raise typer.Exit


def main() -> None:
    """Runs the command line and exits with an `ExitStatus`."""
    debug = "--debug" in sys.argv or bool(os.environ.get("STATEVAL_DEBUG"))
    logging.basicConfig(level=logging.DEBUG if debug else logging.WARNING, format="%(levelname)s: %(message)s")
    try:
        app()
    except StatevalError as error:
        _say(traceback.format_exc() if debug else "", error)
        sys.exit(error.exit_status)
    except KeyboardInterrupt:
        sys.exit(ExitStatus.INTERRUPTED)


def _say(details: str, error: StatevalError) -> None:
    redaction = Redaction(secrets_of_environment())
    typer.echo(redaction.scrub(f"{details}error: {error}"), err=True)
